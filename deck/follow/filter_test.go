package follow_test

import (
	"errors"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/deck/follow"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// filterTape is what TestFilter chooses from; read is told of each record that is read.
func filterTape(read func(seq int)) iter.Seq2[*tape.Record, error] {
	text := func(s string) *tape.Payload {
		return &tape.Payload{Hash: cas.Sum([]byte(s)), Text: s, Inline: true, Len: int64(len(s))}
	}
	kinds := []tape.Kind{
		&tape.ClockSleep{DurationMS: 1},
		&tape.HTTPExchange{Exchange: tape.Exchange{Method: "GET", URL: "http://a/", Status: 200, Response: text("please"), Lane: "http:a"}},
		&tape.HTTPExchange{Exchange: tape.Exchange{Method: "GET", URL: "http://b/", Status: 500, Lane: "http:b.example"}},
		&tape.NetRefused{Addr: "192.0.2.1", Port: 22, Reason: "no"},
		&tape.ProcessSpawn{Program: "false", ExitCode: 1, Stdout: text("teapot")},
		&tape.ClockSleep{DurationMS: 2},
	}
	return func(yield func(*tape.Record, error) bool) {
		for i, k := range kinds {
			if read != nil {
				read(i)
			}
			if !yield(&tape.Record{Seq: uint64(i), MonotonicMS: int64(i) * 100, Kind: k}, nil) {
				return
			}
		}
	}
}

func seqs(t *testing.T, items iter.Seq2[follow.Item, error]) (out []uint64) {
	t.Helper()
	for it, err := range items {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, it.Record.Seq)
	}
	return out
}

func TestFilter(t *testing.T) {
	for name, tt := range map[string]struct {
		set  func(f *follow.Filter)
		want []uint64
	}{
		"nothing asked": {func(*follow.Filter) {}, []uint64{0, 1, 2, 3, 4, 5}},
		"range":         {func(f *follow.Filter) { f.First, f.Last = 2, 3 }, []uint64{2, 3}},
		"kind":          {func(f *follow.Filter) { f.Kinds = []string{"clock_sleep", "net_refused"} }, []uint64{0, 3, 5}},
		"lane":          {func(f *follow.Filter) { f.Lane = follow.MatchLane("http:") }, []uint64{1, 2}},
		"lane pattern":  {func(f *follow.Filter) { f.Lane = follow.MatchLane("http:?.*") }, []uint64{2}},
		"grep":          {func(f *follow.Filter) { f.Grep = regexp.MustCompile("please|teapot") }, []uint64{1, 4}},
		"time":          {func(f *follow.Filter) { f.Since, f.Until = 100, 200 }, []uint64{1, 2}},
		"failed":        {func(f *follow.Filter) { f.Failed = true }, []uint64{2, 3, 4}},
		"tail":          {func(f *follow.Filter) { f.Tail = 2 }, []uint64{4, 5}},
		"long tail":     {func(f *follow.Filter) { f.Tail = 9 }, []uint64{0, 1, 2, 3, 4, 5}},
		"all of it":     {func(f *follow.Filter) { f.Failed, f.Last, f.Tail = true, 3, 1 }, []uint64{3}},
		"none":          {func(f *follow.Filter) { f.Kinds, f.Failed = []string{"clock_sleep"}, true }, nil},
	} {
		f := follow.NewFilter()
		tt.set(f)
		if got := seqs(t, f.Timeline(filterTape(nil), cas.NewMemory(), nil)); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
		if f.All() != (name == "nothing asked" || strings.HasSuffix(name, "tail")) {
			t.Errorf("%s: all is %t", name, f.All())
		}
	}
}

// What stands behind the one record that is asked for is not read.
func TestFilterReadsNoFurther(t *testing.T) {
	last := -1
	f := follow.NewFilter()
	f.First, f.Last = 2, 2
	if got := seqs(t, f.Timeline(filterTape(func(seq int) { last = seq }), cas.NewMemory(), nil)); len(got) != 1 || last != 2 {
		t.Errorf("%d, read up to %d", got, last)
	}
}

func TestFilterKindsThatNobodyKnows(t *testing.T) {
	f := follow.NewFilter()
	f.Kinds = []string{"clock_sleep", "from_the_future", "mistyped"}
	future := &tape.Record{Kind: &tape.Unknown{KindName: "from_the_future", JSON: []byte(`{"kind":"from_the_future"}`)}}
	if _, err := f.Wants(future, nil); err != nil {
		t.Fatal(err)
	}
	kind, known := f.Unknown()
	if kind != "mistyped" || !slices.Contains(known, "llm_call") || !slices.Contains(known, "from_the_future") || !slices.IsSorted(known) {
		t.Errorf("%q, %q", kind, known)
	}
	f.Kinds = []string{"llm_call"}
	if kind, _ := f.Unknown(); kind != "" {
		t.Errorf("%q is not known", kind)
	}
}

// An error of the records, or of a payload that is gone, ends what is chosen.
func TestFilterErrors(t *testing.T) {
	gone := &tape.Payload{Hash: cas.Sum([]byte("gone")), Len: 4}
	records := func(yield func(*tape.Record, error) bool) {
		if yield(&tape.Record{Kind: &tape.RandomRead{Payload: gone}}, nil) {
			yield(nil, errors.New("the tape is damaged"))
		}
	}
	first := func(f *follow.Filter) error {
		for _, err := range f.Timeline(records, cas.NewMemory(), nil) {
			if err != nil {
				return err
			}
		}
		return nil
	}
	f := follow.NewFilter()
	if err := first(f); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Error(err)
	}
	var missing *cas.MissingError
	f.Grep = regexp.MustCompile("x{9}")
	if err := first(f); !errors.As(err, &missing) {
		t.Error(err)
	}
}

func TestPayloadsOf(t *testing.T) {
	p := &tape.Payload{Inline: true}
	for want, k := range map[string]tape.Kind{
		"request response":    &tape.HTTPExchange{Exchange: tape.Exchange{RequestPayload: p, Response: p}},
		"response":            &tape.LLMCall{Exchange: tape.Exchange{Response: p}},
		"stdin stdout stderr": &tape.ProcessSpawn{Stdin: p, Stdout: p, Stderr: p},
		"content":             &tape.FileWrite{File: tape.File{Content: p}},
		"before content":      &tape.FileWrite{File: tape.File{Before: p, Content: p}},
		"names":               &tape.DirList{Names: p},
		"value":               &tape.EnvRead{Value: p},
		"payload 1":           &tape.RandomRead{Payload: p},
		"":                    &tape.ClockSleep{},
	} {
		var names []string
		for _, n := range follow.PayloadsOf(k) {
			names = append(names, n.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s: %q, want %q", fmt.Sprintf("%T", k), got, want)
		}
	}
}

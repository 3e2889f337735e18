package fidelity

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// TestKeys: what another producer never says of a kind cannot differ; what it says of one record counts for all of the kind.
func TestKeys(t *testing.T) {
	theirs := func() []tape.Kind {
		return []tape.Kind{
			&tape.LLMCall{Exchange: tape.Exchange{RequestDigest: sum("r"), Response: inline("a")}},
			&tape.FileWrite{File: tape.File{Path: "a", ContentHash: sum("x"), LenBytes: 1}},
		}
	}
	ours := []tape.Kind{
		&tape.LLMCall{Exchange: tape.Exchange{RequestDigest: sum("r"), Response: inline("a"), RequestPayload: inline("r")}, Model: "m"},
		&tape.FileWrite{File: tape.File{Path: "a", ContentHash: sum("x"), LenBytes: 1, Content: inline("x")}},
	}
	compared := func(foreign []tape.Kind) []Category {
		keys, err := KeysOf(tapeOf(foreign...))
		if err != nil {
			t.Fatal(err)
		}
		return categories(mustCompare(t, ByteIdentical, tapeOf(foreign...), keys.Only(tapeOf(ours...))))
	}
	if got := compared(theirs()); len(got) > 0 {
		t.Errorf("keys of ours alone differ: %v", got)
	}
	rich := theirs()
	rich[1].(*tape.FileWrite).Mode = "100644"
	if diff := cmp.Diff([]Category{FileWriteMode}, compared(rich)); diff != "" {
		t.Error(diff)
	}
	other := theirs()
	other[0].(*tape.LLMCall).Response = inline("b")
	if diff := cmp.Diff([]Category{LLMResponseHash}, compared(other)); diff != "" {
		t.Error(diff)
	}
}

// TestKeysOfAnother: keys that only one side can have are taken away from it: those that are not known here too, and ordinals.
func TestKeysOfAnother(t *testing.T) {
	known := []tape.Field{{Name: "known", Value: []byte(`1`)}}
	theirs := func(yield func(*tape.Record, error) bool) {
		yield(&tape.Record{G: 7, Extra: append(known, tape.Field{Name: "line", Value: []byte(`2`)}), Kind: &tape.ClockRead{
			Source: "wall", ValueMS: 1, Extra: append(known, tape.Field{Name: "trace", Value: []byte(`"x"`)}),
		}}, nil)
	}
	ours := func(yield func(*tape.Record, error) bool) {
		yield(&tape.Record{Extra: known, Kind: &tape.ClockRead{Source: "wall", ValueMS: 1, Extra: known}}, nil)
	}
	keys, err := KeysOf(ours)
	if err != nil {
		t.Fatal(err)
	}
	if got := categories(mustCompare(t, ByteIdentical, keys.Only(theirs), ours)); len(got) > 0 {
		t.Errorf("%v", got)
	}
	if got := categories(mustCompare(t, ByteIdentical, theirs, ours)); len(got) != 3 {
		t.Errorf("as they stand: %v, want the ordinal and two extra keys", got)
	}
}

// TestCopy: a tape and its copy that another producer saved compare equal, ends too; a tape that says anything else of a kind lacks no
// error.
func TestCopy(t *testing.T) {
	ours := []tape.Kind{
		&tape.LLMCall{Model: "m", Exchange: tape.Exchange{RequestDigest: sum("r"), Response: inline(""), Error: "reset",
			Stream: []tape.Chunk{{Length: 1}}, StreamExtra: []tape.ChunkField{{Field: tape.Field{Name: "x", Value: []byte("1")}}}}},
		&tape.ProcessSpawn{Program: "p", ExitCode: 143, Signal: "SIGTERM", SpawnID: 2, Stdout: inline(""), Stderr: inline("")},
	}
	saved := []tape.Kind{
		&tape.LLMCall{Exchange: tape.Exchange{RequestDigest: sum("r"), Response: inline("")}},
		&tape.ProcessSpawn{Program: "p", ExitCode: 143, Stdout: inline(""), Stderr: inline("")},
	}
	compared := func(saved []tape.Kind) []Category {
		keys, err := KeysOf(tapeOf(saved...))
		if err != nil {
			t.Fatal(err)
		}
		return categories(mustCompare(t, ByteIdentical, keys.Only(tapeOf(ours...)), tapeOf(saved...)))
	}
	if got := compared(saved); len(got) > 0 {
		t.Errorf("a copy differs: %v", got)
	}
	saved[0].(*tape.LLMCall).Model = "m"
	if diff := cmp.Diff([]Category{"llm_error"}, compared(saved)); diff != "" {
		t.Error(diff)
	}
}

// TestKeysAreBounded: a tape with keys without end counts as one that has every key.
func TestKeysAreBounded(t *testing.T) {
	many := func(yield func(*tape.Record, error) bool) {
		for i := range 2 * maxKeys {
			if !yield(&tape.Record{Kind: &tape.ClockSleep{}, Extra: []tape.Field{{Name: fmt.Sprint(i), Value: []byte("1")}}}, nil) {
				return
			}
		}
	}
	keys, err := KeysOf(many)
	if err != nil || len(keys.has) > 0 {
		t.Errorf("%d keys, %v", len(keys.has), err)
	}
	differs := []*tape.Record{{G: 1, Kind: &tape.ClockSleep{}}}
	for rec := range keys.Only(func(yield func(*tape.Record, error) bool) { yield(differs[0], nil) }) {
		if rec.G != 1 {
			t.Error("a key was taken away")
		}
	}
}

// TestDigestsOfOthers: a digest of another kind compares as one, a number beyond 63 bits as it stands.
func TestDigestsOfOthers(t *testing.T) {
	tapeWith := func(digest, sleep string) Records {
		const nothing = `{"content_hash":"af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262","text":""}`
		return func(yield func(*tape.Record, error) bool) {
			for _, kind := range []string{`{"kind":"llm_call","request_digest":"` + digest + `","response":` + nothing + `}`,
				`{"kind":"clock_sleep","duration_ms":` + sleep + `}`} {
				if !yield(tape.ParseRecord([]byte(`{"type":"record","seq":0,"virtual_time_ms":0,"monotonic_ms":0,"kind":` + kind + `}`))) {
					return
				}
			}
		}
	}
	for _, c := range []struct {
		digest, sleep string
		want          []Category
	}{
		{"sha256:a", "18446744073709551615", nil},
		{"sha256:b", "18446744073709551615", []Category{LLMRequestDigest}},
		{"sha256:a", "18446744073709551614", []Category{ExtraKeys}},
		{"sha256:a", "9223372036854775807", []Category{ExtraKeys}},
	} {
		a, b := tapeWith("sha256:a", "18446744073709551615"), tapeWith(c.digest, c.sleep)
		keys, err := KeysOf(b)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, categories(mustCompare(t, ByteIdentical, keys.Only(a), b))); diff != "" {
			t.Errorf("%s, %s: %s", c.digest, c.sleep, diff)
		}
	}
}

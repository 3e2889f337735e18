package sessionlog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestSnapshotAt: the state at the end of a turn is that of the log before the first event of a later one.
func TestSnapshotAt(t *testing.T) {
	const log = `{"kind":"memory_retrieval_result"}
{"seq":1,"event":{"kind":"page_in","turn":1}}
{"kind":"memory_retrieval_result"}
{"kind":"page_out","turn":2}
{"kind":"page_out","turn":1}
{"kind":"resumed","turn":3e0}
{"kind":"page_out","turn":4}
{"kind":"page_out","turn":2}
broken`
	for at, want := range map[int][3]uint64{0: {1, 0, 0}, 1: {2, 1, 0}, 2: {2, 1, 2}, 3: {2, 1, 2}} {
		snap, err := SnapshotOf(NewReader(strings.NewReader(log), "log", nil), &FoldOptions{At: &at})
		if err != nil {
			t.Fatalf("turn %d: %v", at, err)
		}
		if got := [3]uint64{snap.MemoryRetrievalResultCount, snap.PageInCount, snap.PageOutCount}; got != want {
			t.Errorf("turn %d: %v, want %v", at, got, want)
		}
	}
	_, err := SnapshotOf(NewReader(strings.NewReader(log), "log", nil), nil)
	var load *LoadError
	if !errors.As(err, &load) || load.Line != 9 {
		t.Errorf("the whole: %v, want an error of line 9", err)
	}
}

// TestSnapshotSays names the line of an event that cannot be read.
func TestSnapshotSays(t *testing.T) {
	const log = "[{\"kind\":\"page_in\"},\n{\"kind\":\"suspended\",\"reason\":[]}]"
	_, err := SnapshotOf(NewReader(strings.NewReader(log), "x.json", nil), nil)
	var load *LoadError
	var event *EventError
	if !errors.As(err, &load) || load.Line != 2 || !errors.As(err, &event) || event.Field != "reason" {
		t.Errorf("%v", err)
	}
}

// TestSnapshotWithout leaves out a field that holds something else where somebody is told of it, in both forms of a log.
func TestSnapshotWithout(t *testing.T) {
	const odd = `{"kind":"suspended","turn":"1","reason":"r","pending_calls":[{"id":"c"}]}`
	want := asJSON(t, foldOf(t, NewFold(), [][]byte{[]byte(`{"kind":"suspended","reason":"r"}`), []byte(`{"kind":"page_in"}`)}))
	for _, log := range []string{odd + "\n" + `{"kind":"page_in"}` + "\n", "[" + odd + "," + `{"kind":"page_in"}` + "]"} {
		var told []string
		snap, err := SnapshotOf(NewReader(strings.NewReader(log), "x", nil), &FoldOptions{Odd: func(e *LoadError) { told = append(told, e.Error()) }})
		if err != nil || asJSON(t, snap) != want || len(told) != 1 || told[0] != `x:1: event "suspended": field turn: want a number, got "1"` {
			t.Errorf("%v, %q, %s", err, told, asJSON(t, snap))
		}
	}
}

// TestSnapshotOfForms: one log in each of its forms comes to one snapshot.
func TestSnapshotOfForms(t *testing.T) {
	all := events(string(readFile(t, "testdata/session.jsonl")))
	want := asJSON(t, foldOf(t, NewFold(), all))
	var bare, envelopes bytes.Buffer
	for i, e := range all {
		bare.Write(append(e, '\n'))
		envelopes.WriteString(`{"seq":` + string(rune('0'+i%10)) + `,"event":` + string(e) + "}\n{\"seq\":1,\"record_type\":\"x\"}\n")
	}
	for name, log := range map[string]string{
		"bare": bare.String(), "envelopes": envelopes.String(),
		"list":              "[" + strings.ReplaceAll(strings.TrimSpace(bare.String()), "\n", ",\n") + "]",
		"list of envelopes": "[" + strings.ReplaceAll(strings.TrimSpace(envelopes.String()), "\n", ",") + "]",
	} {
		snap, err := SnapshotOf(NewReader(strings.NewReader(log), name, nil), nil)
		if err != nil || asJSON(t, snap) != want {
			t.Errorf("%s: %v %s, want %s", name, err, asJSON(t, snap), want)
		}
	}
}

func FuzzSnapshot(f *testing.F) {
	f.Add([]byte("{\"kind\":\"suspended\"}\n"))
	f.Fuzz(func(t *testing.T, log []byte) {
		snap, err := SnapshotOf(tolerant(log), nil)
		if err == nil && strings.Contains(asJSON(t, snap), "[]null") {
			t.Fatal(asJSON(t, snap))
		}
	})
}

// TestBlocks: a log that is folded in blocks gives what one pass over its entries gives: the snapshot, or the error and its place,
// the order, the torn end.
func TestBlocks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var log bytes.Buffer
		for range rapid.IntRange(0, 12).Draw(t, "n") {
			log.WriteString(rapid.SampledFrom([]string{"\n", " \n", "x\n", `{"seq":9,"event":{"kind":"page_in","turn":7}}` + "\r\n", `{"seq":1,"record_type":"x"}` + "\n",
				"[1]\n", `{"kind":"suspended","turn":"x"}` + "\n", "{\"kind\":\"\xff\"}\n", `{"kind":"page_in","kind":"x"}` + "\n", ""}).Draw(t, "odd"))
			for range rapid.IntRange(0, 8).Draw(t, "events") {
				log.Write(genEvent(t))
				log.WriteByte('\n')
			}
		}
		log.WriteString(rapid.SampledFrom([]string{"", `{"kind":"page_in"}`, `{"kind":"pa`, "\n\n"}).Draw(t, "end"))
		var o *FoldOptions
		if rapid.Bool().Draw(t, "up to a turn") {
			at := rapid.IntRange(0, 3).Draw(t, "at")
			o = &FoldOptions{At: &at}
		}
		opts := &ReaderOptions{Tolerant: rapid.Bool().Draw(t, "tolerant")}
		one := NewReader(bytes.NewReader(log.Bytes()), "log", opts)
		f := &logFold{Fold: NewFold(), seen: &FoldSeen{}}
		if o != nil {
			f.at = o.At
		}
		wantErr := oneByOne(f, one)
		in := io.Reader(bytes.NewReader(log.Bytes()))
		if rapid.Bool().Draw(t, "byte by byte") {
			in = iotest.OneByteReader(in)
		}
		blocks := NewReader(in, "log", opts)
		g := &logFold{Fold: NewFold(), log: blocks, seen: &FoldSeen{}, at: f.at, size: rapid.SampledFrom([]int{1, 40, 200, blockOfEntries}).Draw(t, "size")}
		err := g.run()
		snap := &g.snap
		if *g.seen != *f.seen && err == nil {
			t.Fatalf("%+v, want %+v", g.seen, f.seen)
		}
		if fmt.Sprint(err) != fmt.Sprint(wantErr) || err == nil && asJSON(t, snap) != asJSON(t, &f.snap) {
			t.Fatalf("%v\n%v\nwant %v\n%v\nof\n%s", err, snap, wantErr, f.snap, log.Bytes())
		}
		if o == nil && (!cmp.Equal(blocks.Torn(), one.Torn()) || fmt.Sprint(blocks.Order()) != fmt.Sprint(one.Order()) && err == nil) {
			t.Fatalf("%+v %+v, want %+v %+v of\n%s", blocks.Torn(), blocks.Order(), one.Torn(), one.Order(), log.Bytes())
		}
	})
}

// oneByOne folds the entries of a log without blocks.
func oneByOne(f *logFold, log *Reader) error {
	for e, err := range log.Entries() {
		if err != nil {
			return err
		}
		if f.seen.More = f.at != nil && e.HasTurn && e.Turn > *f.at; f.seen.More {
			return nil
		}
		if e.event == nil {
			continue
		}
		f.seen.Events++
		f.seen.LastTurn = max(f.seen.LastTurn, e.Turn)
		if err := f.AddRaw(e.event); err != nil {
			return log.fail(err)
		}
	}
	return nil
}

// TestBlocksOfLongLines cuts a log whose lines are longer than a block, and fails where the reading does.
func TestBlocksOfLongLines(t *testing.T) {
	long := `{"kind":"page_out","turn":1,"summary":"` + strings.Repeat("x", 3*blockOfEntries) + `"}` + "\n"
	short := strings.Repeat(`{"kind":"page_in","turn":1}`+"\n", 100_000)
	snap, err := SnapshotOf(NewReader(strings.NewReader(short+long+long+short), "log", nil), nil)
	if err != nil || snap.PageOutCount != 2 || snap.PageInCount != 200_000 {
		t.Errorf("%v: %+v", err, snap)
	}
	_, err = SnapshotOf(NewReader(strings.NewReader(short+long+"{\n"), "log", nil), nil)
	var load *LoadError
	if !errors.As(err, &load) || load.Line != 100_002 || load.Offset != int64(len(short)+len(long)) {
		t.Errorf("%v at %d, want line 100002 at %d", err, load.Offset, len(short)+len(long))
	}
	bad := errors.New("the disk is gone")
	_, err = SnapshotOf(NewReader(io.MultiReader(strings.NewReader(short), iotest.ErrReader(bad)), "log", nil), nil)
	if !errors.Is(err, bad) || errors.As(err, &load) && errors.Is(load.Err, bad) {
		t.Errorf("%v, want %v", err, bad)
	}
}

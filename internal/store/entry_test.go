package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/runtrace"
)

func TestEntries(t *testing.T) {
	id := runtrace.ID{Agent: "name:a", Run: strings.Repeat("r", 128)}
	for _, want := range []entry{
		{kind: kindStarted, id: id, data: []byte("{}\n")},
		{kind: kindTurns, id: id, offset: 1 << 40, crc: 0xfedcba98, turns: 1999, added: 1, data: []byte("{}\n{}\n")},
		{kind: kindEnded, id: id, offset: 5, data: []byte("x")},
		{kind: kindVerdict, id: id, data: []byte("{}")},
		{kind: kindVerdict, data: []byte("{}")},
	} {
		b := append(want.appendHead(nil), want.data...)
		got, err := parseEntry(b)
		if err != nil || got.id != want.id || got.kind != want.kind || got.offset != want.offset || got.crc != want.crc ||
			got.turns != want.turns || got.added != want.added || !bytes.Equal(got.data, want.data) {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
		for n := range len(b) - len(want.data) {
			if e, err := parseEntry(b[:n]); err == nil {
				t.Errorf("%d of %d bytes were taken as %+v", n, len(b), e)
			}
		}
	}
	bad := entry{kind: kindTurns, id: runtrace.ID{Agent: "../..", Run: "r"}}
	var name *runtrace.NameError
	if _, err := parseEntry(bad.appendHead(nil)); !errors.As(err, &name) {
		t.Errorf("a path out of the directory: %v", err)
	}
}

// FuzzEntry: no bytes make the reader panic or name a file outside, and what it reads is written the same.
func FuzzEntry(f *testing.F) {
	e := entry{kind: kindTurns, id: runtrace.ID{Agent: "a", Run: "r"}, offset: 300, crc: 7, turns: 3, added: 2}
	f.Add(append(e.appendHead(nil), "{}\n{}\n"...))
	e = entry{kind: kindVerdict}
	f.Add(append(e.appendHead(nil), "{}"...))
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := parseEntry(b)
		if err != nil {
			return
		}
		if e.id != (runtrace.ID{}) && e.id.Check() != nil {
			t.Fatalf("%q names %q", b, e.id)
		}
		again, err := parseEntry(append(e.appendHead(nil), e.data...))
		if err != nil || again.id != e.id || again.offset != e.offset || again.crc != e.crc || again.turns != e.turns ||
			again.added != e.added || !bytes.Equal(again.data, e.data) {
			t.Fatalf("%+v became %+v, %v", e, again, err)
		}
	})
}

// Whoever makes more verdicts than the index has taken waits for it: what is in memory is bounded.
func TestVerdictsInMemory(t *testing.T) {
	s, err := Open(t.Context(), t.TempDir(), &Options{IndexEvery: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(context.Background())
	const n = 100
	for i := range n {
		verdict := fmt.Appendf(nil, `"%d %s"`, i, strings.Repeat("x", 200_000))
		if err := s.Verdict(t.Context(), runtrace.ID{}, verdict); err != nil {
			t.Fatal(err)
		}
	}
	all, err := s.Verdicts(t.Context(), runtrace.ID{})
	if err != nil || len(all) != n {
		t.Fatalf("%d verdicts, %v", len(all), err)
	}
	for i, v := range all {
		if !bytes.HasPrefix(v, fmt.Appendf(nil, `"%d x`, i)) {
			t.Errorf("verdict %d is %.20s", i, v)
		}
	}
	if len(s.checkpoints.verdicts.snapshot()) > maxPending/200_000+45 { // and what the log was writing meanwhile
		t.Error("they are all in memory")
	}
}

// A store that is closed takes no verdict, however many its index does not have.
func TestVerdictsAfterClose(t *testing.T) {
	s, err := Open(t.Context(), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.checkpoints.verdicts.put(verdictRow{verdict: strings.Repeat("x", maxPending+1)}) // as a log that failed leaves them
	if err := s.Verdict(t.Context(), runtrace.ID{}, []byte(`1`)); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}

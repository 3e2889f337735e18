package tape_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// seedTapes adds the corpus.
func seedTapes(f *testing.F, add func(tape []byte)) {
	for _, c := range corpusTapes(f) {
		add(c.Body)
	}
}

// Whatever the bytes are, a reader gives records and errors with a place; what loaded saves, and loads again the same.
func FuzzReader(f *testing.F) {
	seedTapes(f, func(b []byte) { f.Add(b, false); f.Add(b, true) })
	f.Fuzz(func(t *testing.T, in []byte, tolerant bool) {
		r, err := tape.NewReaderOptions(bytes.NewReader(in), "fuzz", &tape.ReaderOptions{Tolerant: tolerant})
		if err != nil {
			checkLoadError(t, err)
			return
		}
		var records []*tape.Record
		for rec, err := range r.Records() {
			if err != nil {
				checkLoadError(t, err)
				return
			}
			records = append(records, rec)
		}
		once := save(t, r.Header(), records)
		again, err := tape.NewReader(bytes.NewReader(once), "again")
		if err != nil {
			t.Fatalf("%v in %s", err, once)
		}
		var reread []*tape.Record
		for rec, err := range again.Records() {
			if err != nil {
				t.Fatalf("%v in %s", err, once)
			}
			reread = append(reread, rec)
		}
		if twice := save(t, again.Header(), reread); !bytes.Equal(once, twice) {
			t.Fatalf("saved\n%s\nthen\n%s", once, twice)
		}
	})
}

func checkLoadError(t *testing.T, err error) {
	t.Helper()
	var at *tape.LoadError
	if !errors.As(err, &at) || at.Path != "fuzz" || at.Line < 1 {
		t.Fatalf("error without its place: %v", err)
	}
	for _, sentinel := range sentinels {
		if errors.Is(err, sentinel) {
			return
		}
	}
	t.Fatalf("error of no kind: %v", err)
}

// Every record that a line holds is written to a line that holds the same record.
func FuzzParseRecord(f *testing.F) {
	seedTapes(f, func(b []byte) {
		for line := range bytes.Lines(b) {
			f.Add(line)
		}
	})
	f.Fuzz(func(t *testing.T, in []byte) {
		rec, err := tape.ParseRecord(in)
		if err != nil {
			return
		}
		line := tape.AppendRecord(nil, rec)
		again, err := tape.ParseRecord(line)
		if err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		if diff := cmp.Diff(rec, again); diff != "" {
			t.Fatalf("wrote %s\nand read another record (-written +read):\n%s", line, diff)
		}
		if twice := tape.AppendRecord(nil, again); !bytes.Equal(line, twice) {
			t.Fatalf("wrote\n%s\nthen\n%s", line, twice)
		}
	})
}

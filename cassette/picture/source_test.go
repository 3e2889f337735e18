package picture

import (
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// shared is where recordings of real programs lie, beside the checkout.
const shared = "../../../shared/samples/terminal"

// script is a session of what is written, a step each.
func script(rows, cols int, step time.Duration, writes ...string) *session {
	s := &session{size: size{rows, cols}, largest: size{rows, cols}, duration: step * time.Duration(len(writes))}
	s.events = func(yield func(event, error) bool) {
		for i, w := range writes {
			if !yield(event{at: step * time.Duration(i), output: []byte(w)}, nil) {
				return
			}
		}
	}
	return s
}

// sample is a session of one of the recordings, whose bytes are written in pieces, a step each.
func sample(t testing.TB, name string, piece int, step time.Duration) *session {
	f, err := os.Open(filepath.Join(shared, name+".json.gz"))
	if err != nil {
		t.Skip("no recordings beside the checkout: ", err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var rec struct {
		Cols, Rows int
		Raw        []byte `json:"raw_base64"`
	}
	if err := json.NewDecoder(z).Decode(&rec); err != nil {
		t.Fatal(err)
	}
	var writes []string
	for len(rec.Raw) > 0 {
		n := min(piece, len(rec.Raw))
		writes = append(writes, string(rec.Raw[:n]))
		rec.Raw = rec.Raw[n:]
	}
	return script(rec.Rows, rec.Cols, step, writes...)
}

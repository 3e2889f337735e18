package roundtrip

import (
	"fmt"
	"iter"
	"os"
	"path/filepath"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/bare"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A Tape is what answers.
type Tape struct {
	Name    string // for errors
	Records []*tape.Record
	Store   cas.Store // of their payloads; nil where all are inline
	Rules   int       // by which secrets were found; 0 for the newest
}

// runTape is the tape in the directory of a recording.
const runTape = "run.tape"

// OpenTape reads a tape: a bare one, or that of a recording, whose directory path is then. Its blobs are read where they are
// needed.
func OpenTape(path string) (*Tape, error) {
	file := path
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		file = filepath.Join(path, runTape)
	}
	f, err := tape.Open(file, &tape.ReaderOptions{Tolerant: true})
	if err != nil {
		return nil, fmt.Errorf("network tape: %w", err)
	}
	defer f.Close()
	t := &Tape{Name: path, Store: f.Store}
	if t.Rules, err = bare.RulesOf(f.Header()); err != nil {
		return nil, fmt.Errorf("network tape %s: %w", path, err)
	}
	for r, err := range f.Records() {
		if err != nil {
			return nil, fmt.Errorf("network tape: %w", err)
		}
		if isExchange(r) {
			t.Records = append(t.Records, r)
		}
	}
	return t, nil
}

// isExchange reports whether a record says what was asked over HTTP. A call of a model that no URL names was none: package
// fixture answers it.
func isExchange(r *tape.Record) bool {
	x := tape.ExchangeOf(r.Kind)
	return x != nil && x.URL != ""
}

// book is what the tape answers with.
func (t *Tape) book(c exchange.Classifier) (*exchange.Book, error) {
	var records iter.Seq2[*tape.Record, error] = func(yield func(*tape.Record, error) bool) {
		for _, r := range t.Records {
			if isExchange(r) && !yield(r, nil) {
				return
			}
		}
	}
	return exchange.NewBook(records, c, t.Store)
}

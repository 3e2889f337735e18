package tape

import (
	"errors"
	"fmt"
	"iter"

	"github.com/tapedeck-dev/tapedeck/cas"
)

// Lost gathers the blobs that are named and that a store does not hold. Whether the bytes of the others hash to their names is not
// looked at. It is not safe for concurrent use.
type Lost struct {
	store cas.Store
	there map[cas.Digest]bool // looked for already, or listed
	found []string
	more  int
}

// LostIn returns a Lost that looks for each blob in store.
func LostIn(store cas.Store) *Lost { return &Lost{store: store, there: make(map[cas.Digest]bool)} }

// shownLost bounds how many blobs are named; the rest is counted.
const shownLost = 10

// List says which blobs are missing, and what names each.
func (l *Lost) List() []string {
	if l.more == 0 {
		return l.found
	}
	return append(l.found[:len(l.found):len(l.found)], fmt.Sprintf("and %d more blobs are missing", l.more))
}

// Watch yields records as they are, and looks for the blobs of each: in a list of the store, which takes less than a look at every
// blob, and tells a blob from nothing alone.
func (l *Lost) Watch(records iter.Seq2[*Record, error]) iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		for d, err := range l.store.All() {
			if err == nil { // what cannot be listed is looked for one by one
				l.there[d] = true
			}
		}
		for rec, err := range records {
			if err == nil {
				l.Record(rec)
			}
			if !yield(rec, err) {
				return
			}
		}
	}
}

// Record looks for the blobs of a record. A hash beside which stands no length names none.
func (l *Lost) Record(rec *Record) {
	for _, p := range Payloads(rec.Kind) {
		if !p.Inline {
			l.Blob(p.Hash, fmt.Sprintf("record %d", rec.Seq))
		}
	}
}

// Blob looks for one blob, that of names.
func (l *Lost) Blob(d cas.Digest, of string) {
	if l.there[d] {
		return
	}
	l.there[d] = true
	_, err := l.store.Size(d)
	var gone *cas.MissingError
	switch {
	case err == nil:
	case len(l.found) >= shownLost:
		l.more++
	case errors.As(err, &gone):
		l.found = append(l.found, fmt.Sprintf("%s: blob %s is missing", of, d))
	default:
		l.found = append(l.found, fmt.Sprintf("%s: blob %s: %v", of, d, err))
	}
}

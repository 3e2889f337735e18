package recording

import (
	"errors"
	"fmt"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// shownMissing bounds how many missing blobs are named; the rest is counted.
const shownMissing = 10

// MissingBlobs lists what the recording names and store does not hold. Whether the bytes hold is verify's to say.
func (r *Recording) MissingBlobs(store cas.Store) ([]string, error) {
	m := &missing{store: store, seen: make(map[cas.Digest]bool)}
	f, err := r.OpenTape()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for rec, err := range f.Records() {
		if err != nil {
			return nil, err
		}
		for _, p := range tape.Payloads(rec.Kind) {
			if !p.Inline {
				m.check(p.Hash, fmt.Sprintf("record %d", rec.Seq))
			}
		}
	}
	if f.Torn() && r.Finished() {
		m.found = append(m.found, "the tape of a finished recording ends in a torn line")
	}
	trees, err := r.allTrees()
	if err != nil {
		return m.found, err
	}
	for _, t := range trees {
		for _, e := range t.Entries {
			if !e.Digest.IsZero() {
				m.check(e.Digest, e.Path)
			}
		}
	}
	if m.more > 0 {
		m.found = append(m.found, fmt.Sprintf("and %d more blobs are missing", m.more))
	}
	return m.found, nil
}

// missing gathers blobs that are not there.
type missing struct {
	store cas.Store
	seen  map[cas.Digest]bool
	found []string
	more  int
}

func (m *missing) check(d cas.Digest, of string) {
	if m.seen[d] {
		return
	}
	m.seen[d] = true
	_, err := m.store.Size(d)
	var gone *cas.MissingError
	switch {
	case err == nil:
	case len(m.found) >= shownMissing:
		m.more++
	case errors.As(err, &gone):
		m.found = append(m.found, fmt.Sprintf("%s: blob %s is missing", of, d))
	default:
		m.found = append(m.found, fmt.Sprintf("%s: blob %s: %v", of, d, err))
	}
}

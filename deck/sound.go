package deck

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/tapedeck-dev/tapedeck/axis/files"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// shownMissing bounds how many missing blobs are named; the rest is counted.
const shownMissing = 10

// missingBlobs lists what the recording names and store does not hold. Whether the bytes hold is verify's to say.
func (r *Recording) missingBlobs(store cas.Store) ([]string, error) {
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

// allTrees reads everything that the run found.
func (r *Recording) allTrees() ([]*files.Tree, error) {
	var out []*files.Tree
	t, err := r.Tree()
	if err != nil {
		return nil, err
	}
	if t != nil {
		out = append(out, t)
	}
	found, err := r.Found()
	return slices.AppendSeq(out, maps.Values(found)), err
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

// unfinished says what cannot be compared of a recording whose recorder was killed, or could not go on.
func (r *Recording) unfinished() []string {
	if r.Finished() {
		return nil
	}
	return []string{r.Dir + " is unfinished: its recorder did not come to its end, and what the program did after that is not on the tape"}
}

// offOnOneSide lists the axes that two recordings do not both have: what one of them did not look at cannot be compared.
func offOnOneSide(a, b *Manifest) []string {
	var out []string
	for _, name := range sortedNames(a.Axes, b.Axes) {
		if name == "terminal" || name == axisDaemon || name == axisMCP {
			continue // a stream that was no terminal was recorded as a stream, what was told to a daemon is no input, and of MCP see mcpOnOneSide
		}
		if a.Axes[name].On != b.Axes[name].On {
			out = append(out, fmt.Sprintf("axis %s was on in one recording only", name))
		}
	}
	return out
}

package testbench

import (
	"errors"
	"fmt"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// whole reports the first blob that an answer of the tape needs and that is not there. What is in the blobs is looked at when they are
// used.
func (r *recorded) whole() error {
	seen := make(map[cas.Digest]bool)
	for _, rec := range r.records {
		for _, p := range answerOf(rec.Kind) {
			if p == nil || p.Inline || seen[p.Hash] {
				continue
			}
			seen[p.Hash] = true
			if _, err := r.store.Size(p.Hash); err != nil {
				return fmt.Errorf("%w: record %d of %s (%s) names it", err, rec.Seq, r.path, rec.Kind.Name())
			}
		}
	}
	return nil
}

// lost lists the blobs that the tape names and that are not there, those of what the run wrote too.
func (r *recorded) lost() []string {
	lost := tape.LostIn(r.store)
	for _, rec := range r.records {
		lost.Record(rec)
	}
	return lost.List()
}

// answerOf lists the payloads of a record that a replay answers from, or knows by what it is asked for. What the run itself wrote is
// not among them.
func answerOf(k tape.Kind) []*tape.Payload {
	switch k := k.(type) {
	case *tape.ProcessSpawn:
		return []*tape.Payload{k.Stdout, k.Stderr}
	case *tape.FileWrite:
		if k.SpawnID != 0 { // a command's
			return []*tape.Payload{k.Content}
		}
		return nil
	case *tape.FileDelete, *tape.PolicyVerdict:
		return nil
	}
	return tape.Payloads(k)
}

// lostBlob reports whether err says that a blob is missing or damaged: an answer that cannot be looked at, which is no divergence.
func lostBlob(err error) bool {
	var missing *cas.MissingError
	var corrupt *cas.CorruptError
	return errors.As(err, &missing) || errors.As(err, &corrupt)
}

package exchange

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/internal/lane"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// RefusedStatus is the status of the answer to a request that is not on the tape: one that no SDK retries.
const RefusedStatus = http.StatusBadRequest

// Refusal is what a program is told whose request is not on the tape: what it asked, why nothing answers it (from
// Nearest), and what to do.
func Refusal(r *Request, why string) string {
	return fmt.Sprintf("not on the tape: %s %s; %s; Tapedeck replays offline and answers only what was recorded: "+
		"record the run again, or undo what changed the request", r.Method, r.URL, why)
}

// changes lists what differs between a recorded request and one that was asked: first what the key names, then what
// stands in the bodies.
func (b *Book) changes(rec *Recorded, id *Identity, r *Request) []fidelity.Change {
	changes := keyChanges(rec.Key, id.Key)
	if rec.Key.Kind != id.Key.Kind {
		return append(changes, fidelity.DiffJSON(b.body(rec), r.Body)...)
	}
	was, err := b.classifier.Classify(b.request(rec))
	if err != nil {
		return append(changes, change("body", "cannot be read", "is there"))
	}
	changes = append(changes, fidelity.DiffJSON(was.Params, id.Params)...)
	return append(changes, fidelity.DiffJSON(was.Surface, id.Surface)...)
}

// keyChanges lists the names that differ between two keys.
func keyChanges(was, now Key) []fidelity.Change {
	var changes []fidelity.Change
	for _, f := range []struct{ name, was, now string }{
		{"provider", was.Provider, now.Provider},
		{"endpoint", was.Endpoint, now.Endpoint},
		{"model", was.Model, now.Model},
		{"method", was.Method, now.Method},
		{"url", was.URL, now.URL},
	} {
		if f.was != f.now {
			changes = append(changes, change(f.name, strconv.Quote(f.was), strconv.Quote(f.now)))
		}
	}
	return changes
}

func change(path, was, now string) fidelity.Change {
	return fidelity.Change{Path: path, Op: fidelity.Changed, Was: was, Now: now}
}

// body returns the body of a recorded request, decoded; nil where it cannot be had.
func (b *Book) body(rec *Recorded) []byte {
	stored, err := b.payload(rec.Exchange.RequestPayload)
	if err != nil {
		return nil
	}
	body, err := Decode(HeaderOf(rec.Exchange.RequestHeaders).Get("Content-Encoding"), stored, maxNearestBody)
	if err != nil {
		return nil
	}
	return body
}

// payload reads a payload that is not too long to be compared.
func (b *Book) payload(p *tape.Payload) ([]byte, error) {
	switch {
	case p == nil:
		return nil, nil
	case p.Inline:
		return []byte(p.Text), nil
	case b.store == nil:
		return nil, errors.New("no store")
	case p.Len > maxNearestBody:
		return nil, ErrTooLarge
	}
	return b.store.Get(p.Hash)
}

// describe says what differs in one line.
func describe(changes []fidelity.Change) string {
	if len(changes) == 0 {
		return "which reads the same: it was recorded under other masks, or its body was not kept"
	}
	return lane.Differences(changes)
}

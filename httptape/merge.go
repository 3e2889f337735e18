package httptape

import (
	"bytes"
	"errors"
	"io/fs"
	"net/http"
	"slices"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// merged returns the records of the tape that is to be: in ModeReplayWithNewEpisodes the old ones and then the new, else the
// new ones. Of a new one that says what an old one says, the old one stands, so that a recording that found nothing new
// changes nothing, whoever made it.
func (t *Transport) merged(records []*tape.Record, store *cas.Dir) ([]*tape.Record, error) {
	old, _, err := readTape(t.real)
	var broken *tape.LoadError
	var unknown *scrub.UnknownRulesError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return records, nil
	case t.mode == ModeRecordOnly && (errors.As(err, &broken) || errors.As(err, &unknown)): // it is replaced
		return records, nil
	case err != nil:
		return nil, err
	case t.mode == ModeReplayWithNewEpisodes:
		return append(old, records...), nil
	}
	queues := make(map[exchange.Key][]*tape.Record)
	for _, r := range old {
		if tape.ExchangeOf(r.Kind) != nil {
			key := exchange.KeyOf(r.Kind, t.classifier)
			queues[key] = append(queues[key], r)
		}
	}
	for i, r := range records {
		key := exchange.KeyOf(r.Kind, t.classifier)
		if q := queues[key]; len(q) > 0 {
			queues[key] = q[1:]
			if t.same(q[0], r) && whole(q[0], store) {
				records[i] = q[0]
			}
		}
	}
	return records, nil
}

// whole reports whether the blobs of a record are there.
func whole(r *tape.Record, store *cas.Dir) bool {
	for _, p := range tape.Payloads(r.Kind) {
		if p == nil || p.Inline {
			continue
		}
		if size, err := store.Size(p.Hash); err != nil || size != p.Len {
			return false
		}
	}
	return true
}

// same reports whether two records of one key say the same: the same answer byte for byte, but for the names of secrets, and
// headers that differ in Date and in what is masked alone. Times, and where the answer was cut into chunks, do not count.
func (t *Transport) same(a, b *tape.Record) bool {
	x, y := tape.ExchangeOf(a.Kind), tape.ExchangeOf(b.Kind)
	return x.Status == y.Status && x.Error == y.Error && sameAnswer(x.Response, y.Response) &&
		slices.Equal(t.headerText(x.RequestHeaders), t.headerText(y.RequestHeaders)) &&
		slices.Equal(t.headerText(x.ResponseHeaders), t.headerText(y.ResponseHeaders)) &&
		sameFields(*tape.Extras(a.Kind), *tape.Extras(b.Kind))
}

func sameAnswer(a, b *tape.Payload) bool {
	if a == nil || b == nil || !a.Inline || !b.Inline {
		return a.Same(b)
	}
	return bytes.Equal(scrub.Renumber([]byte(a.Text)), scrub.Renumber([]byte(b.Text)))
}

// headerText is a header as it compares.
func (t *Transport) headerText(fields []tape.HeaderField) []tape.HeaderField {
	var out []tape.HeaderField
	for _, f := range fields {
		if http.CanonicalHeaderKey(f.Name) != "Date" {
			out = append(out, tape.HeaderField{Name: f.Name, Value: t.classifier.comparable(f.Value)})
		}
	}
	return out
}

// sameFields reports whether two records have the same further keys, in whatever order.
func sameFields(a, b []tape.Field) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(f tape.Field) bool {
		other := tape.FieldValue(b, f.Name)
		return other == nil || !bytes.Equal(scrub.Renumber(f.Value), scrub.Renumber(other))
	})
}

package exchange

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/internal/lane"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// maxNearestBody bounds, in bytes, a recorded request body that is compared.
const maxNearestBody = 16 << 20

// Nearest finds the recorded request that is most like one that got no answer, and says what differs; nil where the tape
// holds nothing alike. r is as Classify was given it.
//
// Looked at are, of the first of these groups that has any, the 16 next to be asked for: the same conversation, the same
// provider and endpoint, the same host and path, the same host. The one with the fewest differences is the nearest.
func (b *Book) Nearest(id *Identity, r *Request) (*Recorded, string) {
	if rec, why := b.exhausted(id.Key); rec != nil {
		return rec, why
	}
	best, least, _ := lane.Nearest(b.candidates(id, r), func(rec *Recorded) ([]fidelity.Change, bool) { return b.changes(rec, id, r), true })
	if best == nil {
		return nil, fmt.Sprintf("the tape holds no request to %s", tape.HostOf(r.URL))
	}
	return best, fmt.Sprintf("nearest is %s, %s", nameOf(best), describe(least))
}

// exhausted explains a key that was recorded, but not as often as it was asked for.
func (b *Book) exhausted(k Key) (*Recorded, string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	q := b.queues[k]
	if q == nil || len(q.all) == 0 {
		return nil, ""
	}
	last := q.all[len(q.all)-1]
	return last, fmt.Sprintf("it was asked %s, recorded %s, last as %s", lane.Times(q.asked), lane.Times(len(q.all)), nameOf(last))
}

// nameOf names a record for people.
func nameOf(rec *Recorded) string {
	if rec.Lane == "" {
		return fmt.Sprintf("record %d", rec.Seq)
	}
	return fmt.Sprintf("record %d (lane %s)", rec.Seq, rec.Lane)
}

// candidates lists the recorded requests to compare with: those not asked for yet by arrival, then the others, latest
// first.
func (b *Book) candidates(id *Identity, r *Request) []*Recorded {
	asked, err := url.Parse(r.URL)
	if err != nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	var group []*Recorded
	best := unlike
	named := ""
	if id.Talk != nil {
		named = lanePrefix(id.Talk().Opening)
	}
	for _, rec := range b.recorded {
		likeness := alike(rec, id, named, asked)
		if likeness > best || likeness == unlike {
			continue
		}
		if likeness < best {
			best, group = likeness, nil
		}
		group = append(group, rec)
	}
	slices.SortStableFunc(group, func(x, y *Recorded) int {
		switch sx, sy := x.served, y.served; {
		case sx && sy:
			return cmp.Compare(y.Arrival, x.Arrival)
		case sx:
			return 1
		case sy:
			return -1
		}
		return 0
	})
	return group[:min(len(group), lane.MaxCandidates)]
}

// likeness is a group of candidates; a smaller one is nearer.
type likeness uint8

const (
	sameConversation likeness = iota
	sameEndpoint
	samePath
	sameHost
	unlike
)

// inLane reports whether a record stands in a lane that is called lane but for a number.
func inLane(rec *Recorded, lane string) bool {
	return rec.Lane == lane || strings.HasPrefix(rec.Lane, lane+"#")
}

// alike compares a record with a request to a URL; lane is that of its conversation, without a number, "" for HTTP.
func alike(rec *Recorded, id *Identity, lane string, asked *url.URL) likeness {
	if k := id.Key; k.Kind == LLM && rec.Key.Kind == LLM && rec.Key.Provider == k.Provider && rec.Key.Endpoint == k.Endpoint {
		if inLane(rec, lane) {
			return sameConversation
		}
		return sameEndpoint
	}
	u, err := url.Parse(rec.Exchange.URL)
	switch {
	case err != nil || !strings.EqualFold(u.Host, asked.Host):
		return unlike
	case u.Path == asked.Path:
		return samePath
	}
	return sameHost
}

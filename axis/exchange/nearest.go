package exchange

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/internal/lane"
	"github.com/tapedeck-dev/tapedeck/internal/sidetraffic"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// unlikeness is what differs where nothing does.
const unlikeness = "which reads the same: it was recorded under other masks, or its body was not kept"

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
	return best, fmt.Sprintf("nearest is %s, %s", nameOf(best), lane.Differences(least, unlikeness))
}

// exhausted explains a key that was recorded, but not as often as it was asked for.
func (b *Book) exhausted(k Key) (*Recorded, string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	q := b.queues[k]
	if q == nil || len(q.All) == 0 {
		return nil, ""
	}
	last := q.All[len(q.All)-1]
	return last, fmt.Sprintf("it was asked %s, recorded %s, last as %s", lane.Times(q.asked), lane.Times(len(q.All)), nameOf(last))
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
func (b *Book) candidates(id *Identity, r *Request) (list []*Recorded) {
	asked, err := url.Parse(r.URL)
	if err != nil {
		return nil
	}
	group := b.groups().nearest(id, asked)
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, rec := range group {
		if len(list) == lane.MaxCandidates {
			return list
		}
		if !rec.Served {
			list = append(list, rec)
		}
	}
	for _, rec := range slices.Backward(group) {
		if len(list) == lane.MaxCandidates {
			break
		}
		if rec.Served {
			list = append(list, rec)
		}
	}
	return list
}

// A group is what recorded requests have in common by which one is looked for that is like another. Fields that do not count are empty.
type group struct {
	provider, endpoint, lane string // of calls of a model; lane is without a number
	host, path               string
}

// groups are the recorded requests of each group, by arrival.
type groups map[group][]*Recorded

func groupsOf(recorded []*Recorded) groups {
	all := make(groups)
	for _, rec := range recorded {
		var of []group
		if k := rec.Key; k.Kind == LLM {
			name, _, _ := strings.Cut(rec.Lane, "#")
			of = append(of, group{provider: k.Provider, endpoint: k.Endpoint, lane: name}, group{provider: k.Provider, endpoint: k.Endpoint})
		}
		if u, err := url.Parse(rec.Exchange.URL); err == nil {
			of = append(of, group{host: strings.ToLower(u.Host), path: "/" + u.Path}, group{host: strings.ToLower(u.Host)})
		}
		for _, g := range of {
			all[g] = append(all[g], rec)
		}
	}
	return all
}

// nearest is the first group of a request that has any.
func (all groups) nearest(id *Identity, asked *url.URL) []*Recorded {
	var of []group
	if k := id.Key; k.Kind == LLM {
		if id.Talk != nil {
			of = append(of, group{provider: k.Provider, endpoint: k.Endpoint, lane: lanePrefix(id.Talk().Opening)})
		}
		of = append(of, group{provider: k.Provider, endpoint: k.Endpoint})
	}
	of = append(of, group{host: strings.ToLower(asked.Host), path: "/" + asked.Path}, group{host: strings.ToLower(asked.Host)})
	for _, g := range of {
		if list := all[g]; len(list) > 0 {
			return list
		}
	}
	return nil
}

// inLane reports whether a record stands in a lane that is called lane but for a number.
func inLane(rec *Recorded, lane string) bool {
	return rec.Lane == lane || strings.HasPrefix(rec.Lane, lane+"#")
}

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

// reordered returns the recorded call of a model that differs from a request in nothing but the order of the results of calls that were
// made in one turn; nil for none. It stands in the same conversation, and was not handed out.
func (b *Book) reordered(id *Identity, r *Request) *Recorded {
	if id.Key.Kind != LLM || id.Talk == nil {
		return nil
	}
	asked := b.keyInCallOrder(r)
	if asked == nil {
		return nil
	}
	var all []*Recorded // the next calls, by arrival, that are like this one in all but what was said
	name := lanePrefix(id.Talk().Opening)
	b.mu.Lock()
	for _, rec := range b.recorded {
		like := rec.Key
		like.Request = id.Key.Request
		if !rec.Served && like == id.Key && inLane(rec, name) && len(all) < lane.MaxCandidates {
			all = append(all, rec)
		}
	}
	b.mu.Unlock()
	for _, rec := range all {
		if was := b.keyInCallOrder(b.request(rec)); was != nil && *was == *asked {
			return rec
		}
	}
	return nil
}

// AnswerAlike has the book answer a request that is not on the tape as the recorded one of its path that differs from it in the fewest
// words once both are masked, of equals in the fewest as they stand, and in nothing but words: for a replay that is to find out which of those
// are other ones in every run.
func (b *Book) AnswerAlike() { b.alike = true }

// inShape is the recorded request that AnswerAlike speaks of; nil for none.
func (b *Book) inShape(id *Identity, r *Request) (best *Recorded) {
	if !b.alike || id.Key.Socket || id.Key.Stream {
		return nil
	}
	var least, leastBare int
	for _, rec := range b.candidates(id, r) {
		like := rec.Key
		like.Params, like.Request, like.URL = id.Key.Params, id.Key.Request, id.Key.URL
		if like != id.Key || b.served(rec) {
			continue
		}
		was, err := b.classifier.Classify(b.request(rec))
		if err != nil {
			continue
		}
		pathA, queryA, _ := strings.Cut(was.Key.URL, "?")
		pathB, queryB, _ := strings.Cut(id.Key.URL, "?")
		if pathA != pathB {
			continue
		}
		inURL, okURL := fidelity.OtherWords([]byte(queryA), []byte(queryB))
		inBody, okBody := fidelity.OtherWords(slices.Concat(was.Params, was.Surface), slices.Concat(id.Params, id.Surface))
		bare, ok := fidelity.OtherWords(b.body(rec), r.Body)
		if !ok {
			bare = math.MaxInt
		}
		if n := inURL + inBody; okURL && okBody && (best == nil || cmp.Or(cmp.Compare(n, least), cmp.Compare(bare, leastBare)) < 0) {
			best, least, leastBare = rec, n, bare
		}
	}
	return best
}

func (b *Book) served(rec *Recorded) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return rec.Served
}

// keyInCallOrder is the key of a request whose results were put in order; nil where there are none to order.
func (b *Book) keyInCallOrder(r *Request) *Key {
	sorted := b.classifier.InCallOrder(r)
	if sorted == nil {
		return nil
	}
	id, err := b.classifier.Classify(sorted)
	if err != nil {
		return nil
	}
	return &id.Key
}

// TellSideTraffic has the book answer side traffic (package sidetraffic) that is not on the tape as it was asked: by the last answer of
// its kind, where those are alike. The rules are a project's own.
func (b *Book) TellSideTraffic(rules *sidetraffic.Rules) {
	b.side = &side{rules: rules, reports: make(map[sidetraffic.Route]bool), routes: sync.OnceValue(b.routes)}
}

// routes lists the plain HTTP of each route that was answered, by arrival.
func (b *Book) routes() map[sidetraffic.Route][]*Recorded {
	all := make(map[sidetraffic.Route][]*Recorded)
	for _, rec := range b.recorded {
		if x := rec.Exchange; rec.Key.Kind == HTTP && rec.Socket == nil && x.Status != 0 {
			route := sidetraffic.RouteOf(x.Method, x.URL)
			all[route] = append(all[route], rec)
		}
	}
	return all
}

// answered is the body of a recorded answer, decoded. What cannot be had is not empty.
func (b *Book) answered(rec *Recorded) []byte {
	body, err := b.payload(rec.Exchange.Response)
	if err == nil {
		body, err = Decode(HeaderOf(rec.Exchange.ResponseHeaders).Get("Content-Encoding"), body, maxNearestBody)
	}
	if err != nil {
		return []byte(err.Error() + ": #")
	}
	return body
}

// side finds what answers side traffic that the tape does not hold as it was asked.
type side struct {
	rules  *sidetraffic.Rules
	routes func() map[sidetraffic.Route][]*Recorded // found once something is asked for that is not on the tape

	mu      sync.Mutex
	reports map[sidetraffic.Route]bool // guarded by mu: what was found out of the routes that were asked for
}

// answer returns the recorded exchange that answers a request which no other does; nil for none. It is handed out for nothing, so the
// log of Audit has none of it.
func (s *side) answer(b *Book, k Key, r *Request) *Recorded {
	if s == nil || k.Kind != HTTP || k.Socket || k.Stream {
		return nil
	}
	route := sidetraffic.RouteOf(r.Method, r.URL)
	said := s.rules.Of(route)
	if said == sidetraffic.Gates {
		return nil
	}
	if q := b.queues[k]; q != nil && sidetraffic.AskedAgain(r.Method, len(q.All)) && equalAnswers(q.All) {
		return q.All[len(q.All)-1]
	}
	all := s.routes()[route]
	if len(all) == 0 {
		return nil
	}
	last := all[len(all)-1]
	if said == sidetraffic.Ignored && equalAnswers(all) || last.Exchange.IsTelemetry() || sidetraffic.IsList(r.Body) && s.isReport(b, route, all) {
		return last
	}
	return nil
}

// ignores reports whether a project says of a request that nothing depends on it.
func (s *side) ignores(r *Request) bool {
	return s != nil && s.rules.Of(sidetraffic.RouteOf(r.Method, r.URL)) == sidetraffic.Ignored
}

// isReport reports whether the exchanges of a route report what happened, and remembers it.
func (s *side) isReport(b *Book, route sidetraffic.Route, all []*Recorded) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	is, known := s.reports[route]
	if !known {
		exchanges := make([]sidetraffic.Exchange, len(all))
		for i, rec := range all {
			exchanges[i] = sidetraffic.Exchange{Status: rec.Exchange.Status, Asked: b.body(rec), Answer: b.answered(rec)}
		}
		is = sidetraffic.Reports(exchanges, &b.run)
		s.reports[route] = is
	}
	return is
}

// equalAnswers reports whether the answers of exchanges are equal.
func equalAnswers(all []*Recorded) bool {
	first := all[0].Exchange
	for _, rec := range all {
		if x := rec.Exchange; x.Status != first.Status || x.Error != first.Error || !x.Response.Same(first.Response) {
			return false
		}
	}
	return true
}

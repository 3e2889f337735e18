package exchange

import (
	"sync"

	"github.com/tapedeck-dev/tapedeck/internal/sidetraffic"
)

// side finds what answers side traffic that the tape does not hold as it was asked.
type side struct {
	rules *sidetraffic.Rules

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
	all := b.ofRoute(route)
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

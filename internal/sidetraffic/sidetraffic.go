// Package sidetraffic tells which plain HTTP of a recording nothing depends on, by what the recording holds and never by the words of
// a URL:
//
//   - Reports of what happened in the run. Every request of the route (method, host and path) holds a list of records (a JSON array of
//     objects, as the body or as a member of the object that is the body; one JSON value a line; a protobuf message of such), most of
//     which hold a time of the run itself; and every answer is a bare acknowledgement of the same status: empty, or short and of
//     numbers and plain words alone, or a failure. Batches of events and traces look so. A report of the same data that a person
//     waits for looks so too: docs/reference/limits.md.
//   - A question that is asked again and again: a GET or HEAD that the recording holds three times or more, equal, with equal answers.
//     How often it is asked is a matter of timers; that it is asked counts, and what else is asked there.
//   - What a project says so of (Rules), which may also say that a path is none.
//
// Not goals: calls of models, tool servers, WebSockets. Whoever asks leaves them out.
package sidetraffic

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// A Route is what requests of one kind have in common.
type Route struct{ Method, Host, Path string }

// RouteOf is the route of a request. Of a URL that does not parse the path is all of it.
func RouteOf(method, rawURL string) Route {
	r := Route{Method: method, Host: tape.HostOf(rawURL), Path: rawURL}
	if u, err := url.Parse(rawURL); err == nil {
		r.Path = cmp.Or(u.EscapedPath(), "/")
	}
	return r
}

// String is the route as rules name it: METHOD HOST/PATH.
func (r Route) String() string { return r.Method + " " + r.Host + r.Path }

// Compare orders routes by host, path and method.
func (r Route) Compare(o Route) int {
	return cmp.Or(cmp.Compare(r.Host, o.Host), cmp.Compare(r.Path, o.Path), cmp.Compare(r.Method, o.Method))
}

// Rules are what a project says of paths, each "HOST/PATH" or "METHOD HOST/PATH", where * stands for any characters. A path that both
// lists have gates. Nil says nothing.
type Rules struct {
	Gate   []string `json:"gate,omitempty" yaml:"gate"`     // never side traffic
	Ignore []string `json:"ignore,omitempty" yaml:"ignore"` // side traffic, whatever it holds
}

// Said is what Rules say of a route.
type Said uint8

// What Rules say.
const (
	Nothing Said = iota
	Gates
	Ignored
)

var errRule = errors.New(`want HOST/PATH or METHOD HOST/PATH, as in "POST api.example.com/v1/traces*"`)

// Check refuses a rule that fits nothing.
func (r *Rules) Check() error {
	if r == nil {
		return nil
	}
	for _, rule := range slices.Concat(r.Gate, r.Ignore) {
		if method, rest, ok := strings.Cut(rule, " "); ok && (method == "" || strings.Contains(rest, " ")) || !strings.Contains(rule, "/") {
			return fmt.Errorf("side: %q: %w", rule, errRule)
		}
	}
	return nil
}

// Of is what the rules say of a route.
func (r *Rules) Of(route Route) Said {
	switch {
	case r == nil:
		return Nothing
	case slices.ContainsFunc(r.Gate, route.fits):
		return Gates
	case slices.ContainsFunc(r.Ignore, route.fits):
		return Ignored
	}
	return Nothing
}

// fits reports whether a rule names the route.
func (r Route) fits(rule string) bool {
	name := r.Host + r.Path
	if method, rest, ok := strings.Cut(rule, " "); ok {
		if !strings.EqualFold(method, r.Method) {
			return false
		}
		rule = rest
	}
	pattern := strings.ReplaceAll(regexp.QuoteMeta(rule), `\*`, ".*")
	fits, err := regexp.MatchString("^(?i:"+pattern+")$", name)
	return err == nil && fits
}

// An Exchange is one request of a route and its answer, without Content-Encoding. Bodies that cannot be had are nil.
type Exchange struct {
	Status        int
	Asked, Answer []byte
}

// maxAcknowledgement bounds, in bytes, an answer that acknowledges.
const maxAcknowledgement = 512

// A Span is the time of a run, of which its records tell. The zero Span is ready, and empty.
type Span struct{ first, last int64 } // in Unix epoch ms

// Add adds the time of a record, in Unix epoch ms; 0 is that of none.
func (s *Span) Add(ms int64) {
	if ms > 0 && (s.first == 0 || ms < s.first) {
		s.first = ms
	}
	s.last = max(s.last, ms)
}

// How much earlier than its first record a run may have begun, and how much later than its last it ended, in ms.
const (
	before = 10 * 60 * 1000
	after  = 60 * 1000
)

// holds reports whether a time, in Unix epoch ms, is one of the run.
func (s *Span) holds(ms float64) bool {
	return s.first > 0 && ms >= float64(s.first-before) && ms <= float64(s.last+after)
}

// Reports reports whether the exchanges of a route report what happened in a run.
func Reports(all []Exchange, run *Span) bool {
	records, timed, status := 0, 0, 0
	for i := range all {
		x := &all[i]
		list := recordsOf(x.Asked)
		if x.Status == 0 || status != 0 && x.Status != status || len(list) == 0 || !x.acknowledged() {
			return false
		}
		status = x.Status
		records += len(list)
		for _, r := range list {
			if r.within(run) {
				timed++
			}
		}
	}
	return records > 0 && 2*timed >= records
}

// IsList reports whether a body has the form of a report.
func IsList(body []byte) bool { return len(recordsOf(body)) > 0 }

// acknowledged reports whether an answer told nothing.
func (x *Exchange) acknowledged() bool {
	return x.Status >= http.StatusBadRequest || len(x.Answer) == 0 || len(x.Answer) <= maxAcknowledgement && tellsNothing(x.Answer)
}

// AskedAgain reports whether so many equal requests of a method, which got equal answers, are a question that is asked again and again.
func AskedAgain(method string, recorded int) bool {
	return recorded > 2 && (method == http.MethodGet || method == http.MethodHead)
}

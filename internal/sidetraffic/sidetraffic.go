// Package sidetraffic tells which plain HTTP of a recording nothing depends on, by what the recording holds and never by the words of
// a URL:
//
//   - Reports of what happened in the run. Every request of the route (method, host and path) holds a list of records (a JSON array of
//     objects, as the body or as a member of the object that is the body; one JSON value a line; a protobuf message of such), most of
//     which hold a time of the run itself; and every answer is a bare acknowledgement of the same status: empty, or short and of
//     numbers and plain words alone, or a failure. Batches of events and traces look so. A report of the same data that a person
//     waits for looks so too: docs/reference/limits.md.
//   - A question that is asked again and again: a GET or HEAD that the recording holds three times or more, equal, with equal answers.
//     How often it is asked is a matter of timers (where it is not, who compares says so); that it is asked counts, and what else is asked there.
//   - What a project says so of (Rules), which may also say that a path is none.
//
// Not goals: calls of models, tool servers, WebSockets. Whoever asks leaves them out.
package sidetraffic

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

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

// maxBody bounds, in bytes, a body that is looked into.
const maxBody = 16 << 20

// A record is one thing that is reported: JSON, or a protobuf message.
type record struct {
	value   any
	message []byte
}

// recordsOf returns the records that a body is a list of; none where it is no such list.
func recordsOf(body []byte) []record {
	if len(body) == 0 || len(body) > maxBody {
		return nil
	}
	values, err := jsonValues(body)
	switch {
	case err != nil:
		return messages(body)
	case len(values) == 1:
		return listIn(values[0])
	}
	return objects(values)
}

// jsonValues reads the JSON values that a body consists of.
func jsonValues(body []byte) (values []any, err error) {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	for {
		var v any
		if err = d.Decode(&v); errors.Is(err, io.EOF) {
			return values, nil
		}
		if err != nil {
			return nil, err
		}
		values = append(values, v)
	}
}

// listIn returns the list that a value is, or the longest that a member of it is.
func listIn(v any) []record {
	switch v := v.(type) {
	case []any:
		return objects(v)
	case map[string]any:
		var longest []record
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if list, ok := v[key].([]any); ok && len(list) > len(longest) {
				if all := objects(list); all != nil {
					longest = all
				}
			}
		}
		return longest
	}
	return nil
}

// objects returns values as records; none where one of them is no object.
func objects(values []any) []record {
	all := make([]record, 0, len(values))
	for _, v := range values {
		if _, ok := v.(map[string]any); !ok {
			return nil
		}
		all = append(all, record{value: v})
	}
	return all
}

// messages returns the records of a protobuf message all of whose fields are messages, as those of OTLP are.
func messages(body []byte) (all []record) {
	const lengthDelimited = 2
	for len(body) > 0 {
		tag, n := binary.Uvarint(body)
		if n <= 0 || tag&7 != lengthDelimited || tag>>3 == 0 {
			return nil
		}
		size, m := binary.Uvarint(body[n:])
		if m <= 0 || size > uint64(len(body)-n-m) {
			return nil
		}
		all = append(all, record{message: body[n+m : n+m+int(size)]})
		body = body[n+m+int(size):]
	}
	return all
}

// within reports whether the record holds a time of the run.
func (r record) within(run *Span) bool {
	if r.value != nil {
		return anywhere(r.value, isTimeOf(run))
	}
	for i := 0; i+8 <= len(r.message); i++ { // fixed64, in ns, as all of OTLP
		if run.holds(float64(binary.LittleEndian.Uint64(r.message[i:])) / 1e6) {
			return true
		}
	}
	return false
}

// anywhere reports whether something is true of a value, or of one in it that is neither an object nor a list.
func anywhere(v any, is func(v any) bool) bool {
	inside := func(v any) bool { return anywhere(v, is) }
	switch v := v.(type) {
	case map[string]any:
		return slices.ContainsFunc(slices.Collect(maps.Values(v)), inside)
	case []any:
		return slices.ContainsFunc(v, inside)
	}
	return is(v)
}

// isTimeOf says of which values a time of the run is told.
func isTimeOf(run *Span) func(v any) bool {
	return func(v any) bool {
		switch v := v.(type) {
		case json.Number:
			return isTime(v.String(), run)
		case string:
			if t, err := time.Parse(time.RFC3339, v); err == nil {
				return run.holds(float64(t.UnixMilli()))
			}
			return isTime(v, run)
		}
		return false
	}
}

// isTime reports whether a number is a time of the run in s, ms, us or ns.
func isTime(number string, run *Span) bool {
	f, err := strconv.ParseFloat(number, 64)
	return err == nil && slices.ContainsFunc([]float64{1e3, 1, 1e-3, 1e-6}, func(unit float64) bool { return run.holds(f * unit) })
}

// tellsNothing reports whether a short answer holds numbers and plain words alone: anything else may be needed later.
func tellsNothing(answer []byte) bool {
	values, err := jsonValues(answer)
	if err != nil {
		return !tells(string(answer))
	}
	return !slices.ContainsFunc(values, func(v any) bool { return anywhere(v, tells) })
}

// tells reports whether a value is a text that may be needed later.
func tells(v any) bool {
	text, ok := v.(string)
	return ok && (len(text) > 32 || strings.ContainsFunc(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsSpace(r) && !strings.ContainsRune("_-.,!'", r)
	}))
}

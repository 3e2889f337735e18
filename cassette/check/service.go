package check

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
	"github.com/tapedeck-dev/tapedeck/internal/lazyregexp"
)

// A serviceProbe counts the service events that are as wanted.
type serviceProbe struct {
	eventProbe
	want   *serviceWant
	where  []placeWant
	equals any
	n      int     // as wanted
	seen   int     // those that where lets through
	other  string  // what the last one had there that was not as wanted
	at     *moment // of that one
	first  []FrameTime
	left   []Nearby // before the first one
}

// A placeWant is a path and the value that stands there.
type placeWant struct {
	path  jsonPath
	value any
}

func newServiceProbe(w *serviceWant) *serviceProbe {
	p := &serviceProbe{want: w}
	for _, path := range slices.Sorted(maps.Keys(w.Where)) {
		v, _ := decodeJSON(w.Where[path]) // JSON, by the scenario's own reader
		p.where = append(p.where, placeWant{parsePath(path), v})
	}
	if w.Equals != nil {
		p.equals, _ = decodeJSON(w.Equals)
	}
	p.v.wanted = p.text()
	return p
}

// text says what is wanted.
func (p *serviceProbe) text() string {
	w := p.want
	s := "a service event"
	switch c := w.Count; {
	case c == nil && w.Exists != nil && !*w.Exists:
		s = "every service event"
	case c == nil:
	case c.Max < 0:
		s = sprintf("at least %s", countOf(c.Min, "service event"))
	case c.Min == c.Max:
		s = countOf(c.Min, "service event")
	default:
		s = sprintf("%d to %s", c.Min, countOf(c.Max, "service event"))
	}
	for _, x := range p.where {
		s += sprintf(" where %s is %s,", x.path.text, jsonText(x.value))
	}
	switch {
	case w.Equals != nil:
		s += sprintf(" with %s = %s", w.Path.text, jsonText(p.equals))
	case w.Matches.Regexp != nil:
		s += sprintf(" with %s that matches %s", w.Path.text, quote(w.Matches.String()))
	case w.Exists != nil && !*w.Exists:
		s += " without " + w.Path.text
	case w.Path.text != "":
		s += " with " + w.Path.text
	}
	return strings.TrimSuffix(s, ",") + windowText(w.Between)
}

func jsonText(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return "?"
	}
	return shorten(string(b), maxPayload)
}

func (p *serviceProbe) event(e *event, x *recent) {
	if e.kind != isService || !inWindow(e, p.want.Between) {
		return
	}
	v, err := decodeJSON(e.payload)
	if err != nil {
		return
	}
	for _, w := range p.where {
		if !slices.ContainsFunc(w.path.in(v), func(got any) bool { return sameJSON(got, w.value) }) {
			return
		}
	}
	p.seen++
	at := p.want.Path.in(v)
	if p.good(at) {
		p.n++
		if len(p.first) < maxListed {
			p.first = append(p.first, FrameTime{"found", e.seq, ms(e.t)})
		}
		return
	}
	p.at = &moment{e.seq, e.t}
	p.left = x.list()
	p.other = "nothing there"
	if len(at) > 0 {
		p.other = jsonText(at[0])
	}
}

// good tells whether what stands at the path is as wanted.
func (p *serviceProbe) good(at []any) bool {
	w := p.want
	switch {
	case w.Path.text == "":
		return true
	case w.Equals != nil:
		return slices.ContainsFunc(at, func(v any) bool { return sameJSON(v, p.equals) })
	case w.Matches.Regexp != nil:
		return slices.ContainsFunc(at, func(v any) bool {
			s, ok := v.(string)
			if !ok {
				s = jsonText(v)
			}
			return w.Matches.MatchString(s)
		})
	case w.Exists != nil && !*w.Exists:
		return len(at) == 0
	}
	return len(at) > 0
}

func (p *serviceProbe) finish(end *ending) verdict {
	least, most := 1, -1
	if c := p.want.Count; c != nil {
		least, most = c.Min, c.Max
	} else if p.want.Exists != nil && !*p.want.Exists {
		least, most = p.seen, -1
	}
	why := notSeen(p.want.Between, end)
	bounded := most >= 0 || p.want.Exists != nil && !*p.want.Exists
	switch {
	case most >= 0 && p.n > most, p.n < least:
		p.settle(Failed, p.came()+because(why), end.context)
		p.v.evidence.Frames = p.first
		if p.at != nil {
			p.v.evidence.Frames = append(p.v.evidence.Frames, FrameTime{"other", p.at.seq, ms(p.at.t)})
			p.v.evidence.Context = p.left
		}
	case p.want.Exists != nil && !*p.want.Exists && p.want.Count == nil && p.seen == 0:
		p.settle(Unchecked, "there is no such event to look at"+because(why), end.context)
	case bounded:
		p.holds(why)
	default:
		p.holds("")
	}
	return p.v
}

func (p *serviceProbe) came() string {
	s := sprintf("%d of %s", p.n, countOf(p.seen, "event"))
	if p.other != "" && p.at != nil {
		s += sprintf("; the last other one, at %s, has %s", seconds(p.at.t), p.other)
	}
	return s
}

// is tells whether a payload is as a moment wants it.
func (w *servicePoint) is(payload []byte) bool {
	v, err := decodeJSON(payload)
	if err != nil {
		return false
	}
	at := w.Path.in(v)
	if w.Equals == nil {
		return len(at) > 0
	}
	want, _ := decodeJSON(w.Equals)
	return slices.ContainsFunc(at, func(got any) bool { return sameJSON(got, want) })
}

// A jsonPath names places of a JSON value: $, .name, ['name'], [3], [-1], .*, [*] and ..name, a part of RFC 9535.
type jsonPath struct {
	text  string
	steps []pathStep
}

type pathStep struct {
	name  string
	index int
	kind  stepKind
	deep  bool // at any depth
}

type stepKind uint8

const (
	stepName stepKind = iota
	stepIndex
	stepAll
)

var pathPart = lazyregexp.New(`^(?:(\.\.?)([A-Za-z_][A-Za-z0-9_-]*|\*)|\[(?:(-?[0-9]{1,9})|(\*)|'([^']*)'|"([^"]*)")\])`)

// UnmarshalJSON reads a text that has the form of a path.
func (p *jsonPath) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	*p = parsePath(s)
	return nil
}

func parsePath(s string) jsonPath {
	p := jsonPath{text: s}
	rest := strings.TrimPrefix(s, "$")
	for rest != "" {
		m := pathPart.FindStringSubmatch(rest)
		if m == nil {
			break // the pattern of the scenario's shape lets none through
		}
		rest = rest[len(m[0]):]
		step := pathStep{name: m[2] + m[5] + m[6], deep: m[1] == ".."}
		switch {
		case m[2] == "*" || m[4] != "":
			step.kind = stepAll
		case m[3] != "":
			step.kind = stepIndex
			step.index, _ = strconv.Atoi(m[3])
		}
		p.steps = append(p.steps, step)
	}
	return p
}

// maxPlaces is how many places of one value a path is followed to.
const maxPlaces = 100_000

// in returns what stands at the path's places in v.
func (p *jsonPath) in(v any) []any {
	at := []any{v}
	for _, s := range p.steps {
		var next []any
		for _, x := range at {
			if len(next) > maxPlaces {
				break
			}
			next = s.from(next, x)
		}
		at = next
	}
	return at
}

func (s *pathStep) from(to []any, v any) []any {
	to = s.child(to, v)
	if !s.deep || len(to) > maxPlaces {
		return to
	}
	switch v := v.(type) {
	case map[string]any:
		for _, x := range v {
			to = s.from(to, x)
		}
	case []any:
		for _, x := range v {
			to = s.from(to, x)
		}
	}
	return to
}

func (s *pathStep) child(to []any, v any) []any {
	switch v := v.(type) {
	case map[string]any:
		switch x, ok := v[s.name]; {
		case s.kind == stepAll:
			for _, x := range v {
				to = append(to, x)
			}
		case s.kind == stepName && ok:
			to = append(to, x)
		}
	case []any:
		i := s.index
		if i < 0 {
			i += len(v)
		}
		switch {
		case s.kind == stepAll:
			to = append(to, v...)
		case s.kind == stepIndex && i >= 0 && i < len(v):
			to = append(to, v[i])
		}
	}
	return to
}

// decodeJSON reads a value with its numbers as they are written.
func decodeJSON(b []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}

// canonical is a value as it compares: numbers by their value, objects in any order.
func canonical(v any) string {
	b, err := json.Marshal(v)
	if err == nil {
		b, err = canonjson.Canonical(b)
	}
	if err != nil {
		return fmt.Sprint(v) // no JSON of a service event comes here
	}
	return string(b)
}

func sameJSON(a, b any) bool { return canonical(a) == canonical(b) }

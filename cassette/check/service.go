package check

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
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

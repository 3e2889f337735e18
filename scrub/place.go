package scrub

import (
	"strings"

	"github.com/tapedeck-dev/tapedeck/scrub/internal/placeholders"
)

// A Place is where in a text a value stands that its name told to be a secret, and that is searched for nowhere, for as many
// as are were learnt before it (LearnNamed). It is hidden there.
type Place struct {
	Start, End  int64  // bytes of the text
	Name, Value string // Value is what stands there, escapes undone
}

// HideAt returns b with a placeholder in each of places, which lie in b. It never writes to b.
func (s *Scrubber) HideAt(b []byte, places []Place) []byte {
	spans := make([]span, 0, len(places))
	for _, p := range places {
		spans = append(spans, s.spanOf(p, b[p.Start:p.End], int(p.Start)))
	}
	out, _ := s.without(b, spans)
	return out
}

// spanOf is what hides a place whose bytes are raw, and which begins at start of a buffer.
func (s *Scrubber) spanOf(p Place, raw []byte, start int) span {
	value := strings.TrimSpace(p.Value)
	k := &known{rule: placeholders.RuleName(p.Name), value: value, placeholder: s.conceal(p.Name, value)}
	return span{from: start, start: start, end: start + len(raw), rank: knownRank, rule: k.rule, known: k, form: formOn(k, raw)}
}

// formOn is the form in which a value stands as raw; "" where it stands as it is, or in none that has a name.
func formOn(k *known, raw []byte) string {
	if string(raw) == k.value || !searchable(k.value) {
		return ""
	}
	p := &pattern{of: k, text: []byte(k.value), percent: strings.Contains(k.value, "%")}
	p.second, p.third = p.text[1], p.text[2]
	spans, o := p.match(wholeText(string(raw)), 0)
	if o != hit || len(spans) != 1 || spans[0].end != len(raw) {
		return ""
	}
	return spans[0].form
}

// HideAt hides places of the stream, whose offsets are of the stream as it comes: all that Write has been given stands before
// them, and before each stands the one that was named first.
func (w *Writer) HideAt(places []Place) { w.places = append(w.places, places...) }

// placed adds what hides the places that lie in buf. Of one that has not come whole, its beginning bounds what is decided.
func (w *Writer) placed(spans []span, safe int, final bool) ([]span, int) {
	for _, p := range w.places {
		start, end := int(p.Start-w.at), int(p.End-w.at)
		switch {
		case start >= len(w.buf):
			return spans, safe
		case start < w.past: // passed on
		case end <= len(w.buf) || final:
			end = min(end, len(w.buf))
			spans = append(spans, w.s.spanOf(p, w.buf[start:end], start))
		default:
			return spans, min(safe, start)
		}
	}
	return spans, safe
}

// forget drops the places that were passed on.
func (w *Writer) forget() {
	for len(w.places) > 0 && w.places[0].End <= w.at+int64(w.past) {
		w.places = w.places[1:]
	}
}

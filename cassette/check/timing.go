package check

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/vt"
)

// An eventProbe is the part of a probe that looks at no screens.
type eventProbe struct{ v verdict }

func (p *eventProbe) screen(*showing)       {}
func (p *eventProbe) event(*event, *recent) {}
func (p *eventProbe) over() bool            { return p.v.status != "" }

func (p *eventProbe) settle(s Status, came string, x *recent) {
	p.v.status, p.v.came = s, came
	if s != Passed && x != nil {
		p.v.evidence = &Evidence{Context: x.list()}
	}
}

// holds settles that it is so, as far as it was looked at: why says what was not seen, "" for nothing.
func (p *eventProbe) holds(why string) {
	if why != "" {
		p.settle(Unchecked, "so far it is so, but "+why, nil)
		return
	}
	p.settle(Passed, "", nil)
}

// A sighting is when a text came. Its place orders texts of one chunk: how many characters of output were before it.
type sighting struct {
	moment
	place int64
}

// sightings look for a text that the output brings: in what was printed, sequences left out, or on the screen where it was not
// there before.
type sightings struct {
	text    []byte
	key     string
	shown   bool
	printed []byte         // the end of what was printed: less than the text
	tell    func(sighting) // each time that it comes
}

func newSightings(text string, tell func(sighting)) *sightings {
	return &sightings{text: []byte(text), key: text, tell: tell}
}

func (s *sightings) look(all *stripper, fresh []byte, v *view, at moment) {
	was := s.shown
	s.shown = strings.Contains(v.area(areaKey{joined: true}).text, s.key)
	s.printed = append(s.printed, fresh...)
	b := s.printed
	start := all.total - int64(len(b))
	found := false
	for i := bytes.Index(b, s.text); i >= 0; {
		s.tell(sighting{at, start + int64(i)})
		found = true
		b, start = b[i+len(s.text):], start+int64(i+len(s.text))
		i = bytes.Index(b, s.text)
	}
	if !found && s.shown && !was {
		s.tell(sighting{at, all.total})
	}
	s.printed = slices.Delete(s.printed, 0, len(s.printed)-min(len(b), len(s.text)-1))
}

// An orderProbe wants texts to come for the first time in their order.
type orderProbe struct {
	eventProbe
	texts []string
	first []*sighting
}

func newOrderProbe(texts []string) (*orderProbe, []*sightings) {
	p := &orderProbe{texts: texts, first: make([]*sighting, len(texts))}
	p.v.wanted = "the output brings in this order: " + quotedList(texts)
	all := make([]*sightings, len(texts))
	for i, t := range texts {
		all[i] = newSightings(t, func(s sighting) {
			if p.first[i] == nil {
				p.first[i] = &s
			}
		})
	}
	return p, all
}

func (p *orderProbe) finish(end *ending) verdict {
	var frames []FrameTime
	status, came := Passed, ""
	for i, s := range p.first {
		switch {
		case s == nil && came == "":
			status, came = Failed, quote(p.texts[i])+" never comes"
		case s != nil:
			frames = append(frames, FrameTime{quote(p.texts[i]), s.seq, ms(s.t)})
		}
		if i > 0 && came == "" && s.place <= p.first[i-1].place {
			status = Failed
			came = sprintf("%s comes at %s, after %s at %s", quote(p.texts[i-1]), seconds(p.first[i-1].t), quote(p.texts[i]), seconds(s.t))
		}
	}
	p.settle(status, came, end.context)
	if p.v.evidence != nil {
		p.v.evidence.Frames = frames
	}
	return p.v
}

// A gapProbe wants no long silence between two outputs.
type gapProbe struct {
	eventProbe
	most    time.Duration
	in      span
	last    *moment
	longest time.Duration
	from    moment
	to      moment
	context []Nearby
	outputs int
}

func newGapProbe(most time.Duration, in *span) *gapProbe {
	p := &gapProbe{most: most, in: wholeSpan, longest: -1}
	if in != nil {
		p.in = *in
	}
	p.v.wanted = sprintf("no two outputs are more than %s apart%s", seconds(most), p.in.String())
	return p
}

func (p *gapProbe) event(e *event, x *recent) {
	if e.kind != isOutput || e.t < p.in.From || p.in.To >= 0 && e.t > p.in.To {
		return
	}
	p.outputs++
	at := moment{e.seq, e.t}
	if p.last != nil && e.t-p.last.t > p.longest {
		p.longest, p.from, p.to = e.t-p.last.t, *p.last, at
		if p.longest > p.most {
			p.context = x.list()
		}
	}
	p.last = &at
}

func (p *gapProbe) finish(end *ending) verdict {
	switch {
	case p.longest > p.most:
		p.settle(Failed, sprintf("%s from %s to %s", seconds(p.longest), seconds(p.from.t), seconds(p.to.t)), nil)
		p.v.evidence = &Evidence{Context: p.context, Frames: []FrameTime{{"before", p.from.seq, ms(p.from.t)}, {"after", p.to.seq, ms(p.to.t)}}}
	case p.outputs < 2:
		p.settle(Unchecked, sprintf("there is %s", countOf(p.outputs, "output")), end.context)
	case p.in.To > end.end:
		p.settle(Unchecked, sprintf("so far it is so, but the cassette ends at %s, before the window does", seconds(end.end)), nil)
	default:
		p.settle(Passed, "", nil)
	}
	return p.v
}

// A totalProbe wants the session to be of a length.
type totalProbe struct {
	eventProbe
	want bounds
}

func newTotalProbe(w *bounds) *totalProbe {
	p := &totalProbe{want: *w}
	p.v.wanted = "the session is " + w.String()
	return p
}

// String says, as in: at least 1 s and at most 2 s long.
func (b *bounds) String() string {
	switch {
	case b.Max == nil:
		return sprintf("at least %s long", seconds(time.Duration(*b.Min)))
	case b.Min == nil:
		return sprintf("at most %s long", seconds(time.Duration(*b.Max)))
	}
	return sprintf("at least %s and at most %s long", seconds(time.Duration(*b.Min)), seconds(time.Duration(*b.Max)))
}

func (b *bounds) holds(d time.Duration) bool {
	return (b.Min == nil || d >= time.Duration(*b.Min)) && (b.Max == nil || d <= time.Duration(*b.Max))
}

func (p *totalProbe) finish(end *ending) verdict {
	came := "it is " + seconds(end.end)
	switch {
	case !end.whole && (p.want.Max == nil || end.end <= time.Duration(*p.want.Max)):
		p.settle(Unchecked, "the recording was not finished; so far "+came, end.context)
	case p.want.holds(end.end):
		p.settle(Passed, "", nil)
	default:
		p.settle(Failed, came, end.context)
	}
	return p.v
}

// A delayProbe measures from one moment to the next one of another kind.
type delayProbe struct {
	eventProbe
	want     *delayWant
	from, to *sighting
}

func newDelayProbe(w *delayWant) (*delayProbe, []*sightings) {
	p := &delayProbe{want: w}
	p.v.wanted = sprintf("from %s to %s it is %s", w.From.String(), w.To.String(), w.String())
	var all []*sightings
	if w.From.Text != "" {
		all = append(all, newSightings(w.From.Text, func(s sighting) { p.begin(s) }))
	}
	if w.To.Text != "" {
		all = append(all, newSightings(w.To.Text, func(s sighting) { p.arrive(s) }))
	}
	if w.From.At == "start" {
		p.from = new(sighting)
	}
	return p, all
}

func (p *delayProbe) begin(s sighting) {
	if p.from == nil {
		p.from = &s
	}
}

func (p *delayProbe) arrive(s sighting) {
	later := p.from != nil && (s.seq > p.from.seq || s.seq == p.from.seq && s.place > p.from.place)
	if p.to == nil && later {
		p.to = &s
	}
}

func (p *delayProbe) event(e *event, _ *recent) {
	at := sighting{moment{e.seq, e.t}, math.MaxInt64}
	if p.to == nil && p.from != nil && p.want.To.is(e) {
		p.arrive(at)
	}
	if p.want.From.is(e) {
		p.begin(at)
	}
}

func (p *delayProbe) finish(end *ending) verdict {
	last := sighting{moment{math.MaxInt64, end.end}, math.MaxInt64}
	if p.want.From.At == "end" {
		p.begin(last)
	}
	if p.want.To.At == "end" && p.from != nil {
		p.to = &last
	}
	switch {
	case p.from == nil:
		p.settle(Failed, p.want.From.String()+" never comes", end.context)
	case p.to == nil:
		p.settle(Failed, sprintf("%s comes at %s, %s never after it", p.want.From.String(), seconds(p.from.t), p.want.To.String()), end.context)
	case p.want.To.At == "end" && !end.whole:
		p.settle(Unchecked, "the recording was not finished, its end is not known", end.context)
	case p.want.holds(p.to.t - p.from.t):
		p.settle(Passed, "", nil)
	default:
		p.settle(Failed, sprintf("it is %s, from %s to %s", seconds(p.to.t-p.from.t), seconds(p.from.t), seconds(p.to.t)), end.context)
	}
	if p.v.evidence != nil && p.from != nil {
		p.v.evidence.Frames = append(p.v.evidence.Frames, FrameTime{"from", p.from.seq, ms(p.from.t)})
		if p.to != nil && p.to.seq < math.MaxInt64 {
			p.v.evidence.Frames = append(p.v.evidence.Frames, FrameTime{"to", p.to.seq, ms(p.to.t)})
		}
	}
	return p.v
}

// String names the moment.
func (w *pointWant) String() string {
	switch {
	case w.Text != "":
		return "the text " + quote(w.Text)
	case w.Input != "":
		return "the input " + quote(w.Input)
	case w.Key != "":
		return "the key " + quote(w.Key)
	case w.Resize != nil:
		return sprintf("the resize to %dx%d", w.Resize.Rows, w.Resize.Cols)
	case w.Service != nil:
		if w.Service.Equals == nil {
			return "the service event with " + w.Service.Path.text
		}
		return sprintf("the service event with %s = %s", w.Service.Path.text, shorten(string(w.Service.Equals), maxPayload))
	}
	return "the " + w.At
}

// is tells whether e is the moment. Texts are told by sightings.
func (w *pointWant) is(e *event) bool {
	switch e.kind {
	case isInput:
		return w.Input != "" && bytes.Contains(e.bytes, []byte(w.Input)) || w.Key != "" && hasKey(e, w.Key)
	case isResize:
		return w.Resize != nil && e.size == *w.Resize
	case isService:
		return w.Service != nil && w.Service.is(e.payload)
	}
	return false
}

// A stripper takes the sequences out of output. What moves the cursor leaves a NUL, so that texts from two places do not become
// one; a new line is a newline.
type stripper struct {
	lexer *vt.Lexer
	total int64 // of what was printed
	out   []byte
	gap   bool // nothing stands behind the last gap
}

func newStripper() *stripper {
	s := &stripper{gap: true}
	s.lexer = vt.NewLexer(s.token)
	return s
}

// strip returns what of b is text; it is valid until the next call.
func (s *stripper) strip(b []byte) []byte {
	s.out = s.out[:0]
	_, _ = s.lexer.Write(b) // never fails
	s.total += int64(len(s.out))
	return s.out
}

func (s *stripper) token(t *vt.Token) {
	switch {
	case t.Kind == vt.TokenText:
		s.out, s.gap = append(s.out, t.Data...), false
	case t.Kind == vt.TokenControl && t.Final == '\n':
		s.out, s.gap = append(s.out, '\n'), true
	case s.gap, t.Kind == vt.TokenCSI && t.Final == 'm', t.Kind >= vt.TokenOSC,
		t.Kind == vt.TokenControl && (t.Final == '\r' || t.Final == 7 || t.Final == 0),
		t.Kind == vt.TokenEscape && (t.Final == '\\' || len(t.Inter) > 0):
	default:
		s.out, s.gap = append(s.out, 0), true
	}
}

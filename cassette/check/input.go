package check

import (
	"bytes"
	"slices"
	"strings"
	"time"
)

// inWindow tells whether e came in s.
func inWindow(e *event, s *span) bool {
	return s == nil || e.t >= s.From && (s.To < 0 || e.t <= s.To)
}

// windowText says which window, with a blank before it.
func windowText(s *span) string {
	if s == nil {
		return ""
	}
	return s.String()
}

// notSeen says why a window was not looked at as a whole, or "".
func notSeen(s *span, end *ending) string {
	switch {
	case s != nil && max(s.From, s.To) > end.end:
		return sprintf("the cassette ends at %s, before the window does", seconds(end.end))
	case !end.whole && (s == nil || s.To < 0):
		return "the recording was not finished"
	}
	return ""
}

// A bytesProbe wants exactly some bytes typed, or some in a row.
type bytesProbe struct {
	eventProbe
	want  []byte
	exact bool
	in    *span

	total int64  // bytes that came
	tail  []byte // the end of what came, as long as what is looked for; of an exact one what came around the first difference
	wrong int64  // where the first difference is; below 0 none
	at    moment
	left  []Nearby
}

func newBytesProbe(want []byte, exact bool, in *span) *bytesProbe {
	p := &bytesProbe{want: want, exact: exact, in: in, wrong: -1}
	p.v.wanted = "the input contains " + quote(string(want)) + windowText(in)
	if exact {
		p.v.wanted = "the input is " + quote(string(want)) + windowText(in)
	}
	return p
}

func (p *bytesProbe) event(e *event, x *recent) {
	if e.kind != isInput || !inWindow(e, p.in) {
		return
	}
	if p.exact {
		p.compare(e, x)
	} else {
		p.tail = append(p.tail, e.bytes...)
		if bytes.Contains(p.tail, p.want) {
			p.v.status = Passed
		}
		p.tail = slices.Delete(p.tail, 0, max(0, len(p.tail)-len(p.want)+1))
	}
	p.total += int64(len(e.bytes))
}

func (p *bytesProbe) compare(e *event, x *recent) {
	if p.wrong >= 0 {
		return
	}
	for i, c := range e.bytes {
		at := p.total + int64(i)
		if at >= int64(len(p.want)) || p.want[at] != c {
			p.wrong, p.at, p.left = at, moment{e.seq, e.t}, x.list()
			p.tail = append([]byte(nil), e.bytes[i:min(len(e.bytes), i+maxInputTxt)]...)
			return
		}
	}
}

func (p *bytesProbe) finish(end *ending) verdict {
	why := notSeen(p.in, end)
	switch {
	case p.v.status != "":
	case p.wrong >= 0:
		before := string(p.want[max(0, int(p.wrong)-20):p.wrong])
		after := "the end"
		if rest := p.want[p.wrong:]; len(rest) > 0 {
			after = quote(string(rest[:min(len(rest), maxInputTxt)]))
		}
		p.settle(Failed, sprintf("at byte %d, behind %s, comes %s where %s was expected", p.wrong, quote(before), quote(string(p.tail)), after), nil)
		p.v.evidence = &Evidence{Context: p.left, Frames: []FrameTime{{"at", p.at.seq, ms(p.at.t)}}}
	case p.exact && p.total < int64(len(p.want)):
		p.settle(failedOr(why), sprintf("it ends after %d bytes, %s did not come", p.total, quote(string(p.want[p.total:])))+because(why), end.context)
	case p.exact:
		p.holds(why)
	default:
		p.settle(Failed, sprintf("%d bytes came without it", p.total)+because(why), end.context)
	}
	return p.v
}

// failedOr is Failed, or Unchecked where not everything was seen.
func failedOr(why string) Status {
	if why != "" {
		return Unchecked
	}
	return Failed
}

func because(why string) string {
	if why == "" {
		return ""
	}
	return "; " + why
}

// A keysProbe wants keys in an order, others between them or not.
type keysProbe struct {
	eventProbe
	want []string
	in   *span
	read keyReader
	next int
	last []string // the latest keys that came
}

func newKeysProbe(want []string, in *span) *keysProbe {
	p := &keysProbe{in: in}
	for _, name := range want {
		p.want = append(p.want, keyName(name))
	}
	p.v.wanted = "these keys in this order: " + strings.Join(want, " ") + windowText(in)
	p.read = keyReader{key: p.key, paste: func([]byte, bool) {}}
	return p
}

func (p *keysProbe) key(name string) {
	if p.next < len(p.want) && name == p.want[p.next] {
		p.next++
	}
	if p.last = append(p.last, name); len(p.last) > 8 {
		p.last = p.last[1:]
	}
}

func (p *keysProbe) event(e *event, _ *recent) {
	if e.kind != isInput || !inWindow(e, p.in) {
		return
	}
	before := p.next
	p.read.read(e.bytes)
	if p.next == before && e.key != "" && p.next < len(p.want) && keyName(e.key) == p.want[p.next] {
		p.next++ // the recorder knew it under this name
	}
	if p.next == len(p.want) {
		p.v.status = Passed
	}
}

func (p *keysProbe) finish(end *ending) verdict {
	if p.v.status == "" {
		came := "none came"
		if len(p.last) > 0 {
			came = "the last keys are " + quotedList(p.last)
		}
		p.settle(Failed, sprintf("%q, the %d. of them, did not come; %s", p.want[p.next], p.next+1, came)+because(notSeen(p.in, end)), end.context)
	}
	return p.v
}

// A pasteProbe wants exactly these pastes.
type pasteProbe struct {
	eventProbe
	want  []string
	in    *span
	read  keyReader
	now   []byte // the paste that is open, as much as a wanted one can be long and one byte more
	long  int    // what it is in whole
	n     int    // pastes that ended
	wrong string
	ctx   *recent
	left  []Nearby
}

func newPasteProbe(want []string, in *span) *pasteProbe {
	p := &pasteProbe{want: want, in: in}
	p.v.wanted = countOf(len(want), "paste") + windowText(in) + ": " + quotedList(want)
	p.read = keyReader{key: func(string) {}, paste: p.part}
	return p
}

func (p *pasteProbe) part(b []byte, end bool) {
	most := 64
	if p.n < len(p.want) {
		most = len(p.want[p.n]) + 64
	}
	p.long += len(b)
	p.now = append(p.now, b[:min(len(b), max(0, most-len(p.now)))]...)
	if !end {
		return
	}
	if p.wrong == "" {
		p.judge()
	}
	p.now, p.long = p.now[:0], 0
	p.n++
}

func (p *pasteProbe) judge() {
	switch got := string(p.now); {
	case p.n >= len(p.want):
		p.wrong = sprintf("there is one more, %s", quote(got))
	case got != p.want[p.n] || p.long != len(got):
		p.wrong = sprintf("paste %d is %s (%d bytes)", p.n+1, quote(got), p.long)
	}
	if p.wrong != "" {
		p.left = p.ctx.list()
	}
}

func (p *pasteProbe) event(e *event, x *recent) {
	if e.kind == isInput && inWindow(e, p.in) {
		p.ctx = x
		p.read.read(e.bytes)
	}
}

func (p *pasteProbe) finish(end *ending) verdict {
	why := notSeen(p.in, end)
	switch {
	case p.wrong != "":
		p.settle(Failed, p.wrong, nil)
		p.v.evidence = &Evidence{Context: p.left}
	case p.read.in:
		p.settle(failedOr(why), sprintf("paste %d has no end mark, it begins with %s", p.n+1, quote(string(p.now)))+because(why), end.context)
	case p.n < len(p.want):
		p.settle(failedOr(why), sprintf("there are %d", p.n)+because(why), end.context)
	default:
		p.holds(why)
	}
	return p.v
}

// A listProbe wants exactly these resizes or signals.
type listProbe struct {
	eventProbe
	want []string
	of   eventKind
	in   *span
	got  []string
	more int
	at   []time.Duration
}

// maxListed is how many entries more than wanted a failure shows.
const maxListed = 20

func newListProbe(what string, of eventKind, want []string, in *span) *listProbe {
	p := &listProbe{want: want, of: of, in: in}
	p.v.wanted = "the " + what + windowText(in) + " are " + listed(want)
	return p
}

func listed(all []string) string {
	if len(all) == 0 {
		return "none"
	}
	return strings.Join(all, ", ")
}

func (p *listProbe) event(e *event, _ *recent) {
	if e.kind != p.of || !inWindow(e, p.in) {
		return
	}
	s := e.signal
	if p.of == isResize {
		s = sprintf("%dx%d", e.size.Rows, e.size.Cols)
	}
	if len(p.got) >= len(p.want)+maxListed {
		p.more++
		return
	}
	p.got, p.at = append(p.got, s), append(p.at, e.t)
}

func (p *listProbe) finish(end *ending) verdict {
	why := notSeen(p.in, end)
	same := len(p.got) == len(p.want)
	for i := range p.got {
		same = same && sameSignal(p.got[i], p.want[i])
	}
	switch {
	case same:
		p.holds(why)
	default:
		all := make([]string, len(p.got))
		for i, s := range p.got {
			all[i] = s + " at " + seconds(p.at[i])
		}
		if p.more > 0 {
			all = append(all, sprintf("%d more", p.more))
		}
		p.settle(Failed, "they are "+listed(all), end.context)
	}
	return p.v
}

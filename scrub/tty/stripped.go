package tty

import (
	"bytes"
	"encoding/base64"
	"sort"

	"github.com/tapedeck-dev/tapedeck/scrub"
)

const (
	maxBlock = 64 << 10 // bytes of text that are passed on at once
	maxLine  = 8 << 10  // of one line that are looked at at once
	overlap  = 1 << 10  // of a longer one that are looked at again
)

// A segment says that text from an offset on stands in the stream from an offset on, without sequences.
type segment struct {
	text, raw int64
	jump      bool // it is the end that a jump makes
}

// A stripped scans the text of a stream without its control sequences, line ends kept, and the control strings in it by
// themselves. What it holds is bounded, and what it finds does not depend on how the stream is cut.
type stripped struct {
	rules  *rules
	ledger *ledger
	lex    lexer
	finder *scrub.Writer
	at     int64     // of the next byte of the stream
	n      int64     // of the next byte of text
	segs   []segment // of the text that is undecided and of what comes
	buf    []byte    // text that is not passed on
	line   []byte    // the last line, which has not ended
	first  int64     // where in the text it begins
	parts  []span    // scratch

	str controlString
}

func newStripped(r *rules, l *ledger) *stripped {
	s := &stripped{rules: r, ledger: l}
	s.finder = r.scrub.Finder(func(f scrub.Range) { s.found(f.Start, f.End, f.Rule, f.Part) })
	s.str = controlString{rules: r, ledger: l}
	return s
}

func (s *stripped) write(p []byte) {
	from := -1 // where in p text began that goes on
	for i := 0; i < len(p); {
		k, n := s.lex.next(p[i:])
		if isText := k <= tab; isText && from < 0 {
			from = i
			s.segment(s.at + int64(i))
		} else if !isText && from >= 0 {
			s.take(p[from:i])
			from = -1
		}
		if k == moves && s.lex.jumps(p[i+n-1]) {
			s.jump(s.at + int64(i+n-1))
		}
		if k == payload {
			s.str.take(s.lex.osc, p[i:i+n], s.at+int64(i))
		} else if s.str.isOpen {
			s.str.end()
		}
		i += n
	}
	switch {
	case from < 0:
		s.flush()
	case len(s.buf) == 0: // plain text, which need not be copied
		s.n += int64(len(p) - from)
		s.pass(p[from:])
	default:
		s.take(p[from:])
		s.flush()
	}
	s.at += int64(len(p))
	s.forget()
}

// typed takes text that stands at an offset of the stream.
func (s *stripped) typed(b []byte, raw int64) {
	s.segment(raw)
	s.take(b)
	s.flush()
	s.at = raw + int64(len(b))
	s.forget()
}

// segment notes that the next byte of text stands at raw.
func (s *stripped) segment(raw int64) {
	if last := len(s.segs) - 1; last >= 0 && !s.segs[last].jump && raw-s.segs[last].raw == s.n-s.segs[last].text {
		return
	}
	s.segs = append(s.segs, segment{text: s.n, raw: raw})
}

// jump ends the text where the cursor goes elsewhere: what follows does not stand beside it.
// The end of the line that this makes stands for the last byte of a sequence, at raw, which no mask may touch.
func (s *stripped) jump(raw int64) {
	if n := len(s.buf); n > 0 && s.buf[n-1] == '\n' || n == 0 && len(s.line) == 0 {
		return
	}
	s.segs = append(s.segs, segment{text: s.n, raw: raw, jump: true})
	s.take([]byte{'\n'})
}

func (s *stripped) take(b []byte) {
	s.buf = append(s.buf, b...)
	s.n += int64(len(b))
	if len(s.buf) >= maxBlock {
		s.flush()
	}
}

func (s *stripped) flush() {
	if len(s.buf) > 0 {
		s.pass(s.buf)
		s.buf = s.buf[:0]
	}
}

// pass has b looked at, which is the end of the text.
func (s *stripped) pass(b []byte) {
	_, _ = s.finder.Write(b) // never fails (Scrubber.Finder)
	if i := bytes.IndexByte(b, '\n'); len(s.line) > 0 && i >= 0 {
		s.line = append(s.line, b[:i+1]...)
		s.lines(true)
		b = b[i+1:]
	}
	if i := bytes.LastIndexByte(b, '\n'); i >= 0 {
		s.look(b[:i+1], s.n-int64(len(b)), true)
		b = b[i+1:]
	}
	if len(s.line) == 0 {
		s.first = s.n - int64(len(b))
	}
	s.line = append(s.line, b...)
	s.lines(false)
}

// lines looks at the line that is kept, or at as much of it as is long enough.
func (s *stripped) lines(ended bool) {
	for len(s.line) >= maxLine {
		s.look(s.line[:maxLine], s.first, false)
		s.first += maxLine - overlap
		s.line = append(s.line[:0], s.line[maxLine-overlap:]...)
	}
	if ended {
		s.look(s.line, s.first, true)
		s.line = s.line[:0]
	}
}

// look looks at lines, which stand at an offset of the text. What reaches to the end of one that goes on is looked at again.
func (s *stripped) look(b []byte, at int64, ended bool) {
	for _, f := range withoutMasks(b, s.rules.inLines(b)) {
		if ended || f.End < int64(len(b)) {
			s.found(at+f.Start, at+f.End, f.Rule, false)
		}
	}
}

// found takes a secret that stands in the text from start to before end.
func (s *stripped) found(start, end int64, rule string, part bool) {
	s.ledger.add(rule, s.ranges(start, end), part)
}

// ranges returns where in the stream a range of the text stands.
func (s *stripped) ranges(start, end int64) []span {
	s.parts = s.parts[:0]
	i := s.segmentOf(start)
	for ; i < len(s.segs) && s.segs[i].text < end; i++ {
		g := s.segs[i]
		stop := end
		if i+1 < len(s.segs) {
			stop = min(end, s.segs[i+1].text)
		}
		from := max(start, g.text)
		if from < stop && !g.jump {
			s.parts = append(s.parts, span{g.raw + from - g.text, g.raw + stop - g.text})
		}
	}
	return s.parts
}

// segmentOf returns the index of the segment in which a byte of the text stands.
func (s *stripped) segmentOf(at int64) int {
	return max(0, sort.Search(len(s.segs), func(i int) bool { return s.segs[i].text > at })-1)
}

// forget drops the segments of what is decided.
func (s *stripped) forget() {
	if i := s.segmentOf(min(s.n-int64(s.finder.Held()), s.lineStart())); i > 64 {
		s.segs = append(s.segs[:0], s.segs[i:]...)
	}
}

// lineStart returns where in the text the last line begins, as far as it is looked at again.
func (s *stripped) lineStart() int64 {
	if len(s.line) > 0 {
		return s.first
	}
	return s.n
}

// decided returns up to where in the stream nothing depends on what comes.
func (s *stripped) decided() int64 {
	at := s.at
	if undecided := min(s.n-int64(s.finder.Held()), s.lineStart()); undecided < s.n {
		g := s.segs[s.segmentOf(undecided)]
		at = g.raw + undecided - g.text
	}
	if s.str.isOpen {
		at = min(at, s.str.start)
	}
	return at
}

// close looks at what was undecided: nothing follows.
func (s *stripped) close() {
	s.flush()
	_ = s.finder.Close()
	s.lines(true)
	s.str.end()
}

// maxString bounds how much of a control string is looked at at once, in bytes, and again of a longer one what could be a part of
// a secret.
const (
	maxString     = 1 << 20
	stringOverlap = 16 << 10
)

// A controlString looks at what stands in OSC, DCS and their like: titles, links, the clipboard.
type controlString struct {
	rules  *rules
	ledger *ledger
	isOpen bool
	osc    bool
	start  int64
	buf    []byte // from start on
}

// take takes a part of a control string that stands at an offset of the stream.
func (c *controlString) take(osc bool, p []byte, at int64) {
	if !c.isOpen {
		c.isOpen, c.osc, c.start = true, osc, at
		c.buf = c.buf[:0]
	}
	for len(c.buf)+len(p) >= maxString {
		n := maxString - len(c.buf)
		c.buf = append(c.buf, p[:n]...)
		p = p[n:]
		c.look()
		c.start += maxString - stringOverlap
		c.buf = append(c.buf[:0], c.buf[maxString-stringOverlap:]...)
	}
	c.buf = append(c.buf, p...)
}

func (c *controlString) end() {
	if c.isOpen {
		c.look()
	}
	c.isOpen = false
	if cap(c.buf) > maxBlock {
		c.buf = nil
	}
}

func (c *controlString) look() {
	c.tell(c.rules.in(c.buf))
	if c.osc {
		c.clipboard()
	}
}

func (c *controlString) tell(found []scrub.Range) {
	for _, f := range found {
		c.ledger.add(f.Rule, []span{{c.start + f.Start, c.start + f.End}}, f.Part)
	}
}

// clipboard looks at what OSC 52 sets the clipboard to, which is base64. Digits that were masked stand for zeros.
func (c *controlString) clipboard() {
	rest, ok := bytes.CutPrefix(c.buf, []byte("52;"))
	if !ok {
		return
	}
	_, data, ok := bytes.Cut(rest, []byte(";"))
	if !ok {
		return
	}
	at, size := int64(len(c.buf)-len(data)), int64(len(c.buf))
	digits := bytes.TrimRight(bytes.ReplaceAll(data, []byte("*"), []byte("A")), "=")
	plain := make([]byte, base64.RawStdEncoding.DecodedLen(len(digits)))
	n, _ := base64.RawStdEncoding.Decode(plain, digits) // as far as it is base64
	found := c.rules.in(plain[:n])
	for i, f := range found {
		found[i].Start, found[i].End = at+f.Start*8/6, min(at+(f.End*8+5)/6, size)
	}
	c.tell(found)
}

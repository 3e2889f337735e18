package vt

import "unicode/utf8"

// TokenKind says what a Token is.
type TokenKind uint8

// The kinds of Token.
const (
	TokenText    TokenKind = iota + 1 // printable text; Data is its bytes
	TokenControl                      // one of C0, C1 (in UTF-8), DEL; Final is it
	TokenEscape                       // ESC, Inter, Final
	TokenCSI                          // ESC [, Prefix, Params, Inter, Final
	TokenOSC                          // ESC ], Data, BEL or ST
	TokenDCS                          // ESC P, Prefix, Params, Inter, Final, Data, ST
	TokenSOS                          // ESC X, Data, ST
	TokenPM                           // ESC ^, Data, ST
	TokenAPC                          // ESC _, Data, ST
)

// A Token is a piece of a terminal's stream. It and its slices are valid during the call that gets it.
type Token struct {
	Kind TokenKind
	// Start and End are where it stands in the stream, in bytes. Of a control string the end is behind BEL or behind the ESC
	// of ST, whose backslash is a TokenEscape of its own. A TokenControl may stand within a sequence, and comes before it.
	Start, End int64
	// Data is the text, or what a control string holds, as it stands in the stream from DataStart on; of a control string no
	// more than MaxString bytes.
	Data      []byte
	DataStart int64
	Final     byte
	Prefix    byte   // one of '<', '=', '>', '?', or 0
	Inter     []byte // intermediates, at most 2
	Params    []int  // -1 where one is left out; those behind a colon too
}

// A Lexer tells the text of a terminal's stream from its sequences, with no screen. However the stream is cut, the sequences
// are the same; a text may come in several tokens.
type Lexer struct {
	m    machine
	h    func(*Token)
	t    Token
	par  [maxParams]int
	p    []byte // of the call to Write
	base int64
	from int64 // the text that was not told of yet, in p
	to   int64
}

// NewLexer returns a Lexer that gives each token to h. What is open at the end of the stream is not given.
func NewLexer(h func(*Token)) *Lexer { return &Lexer{h: h} }

// Write reads the next bytes of the stream. It does not fail.
func (l *Lexer) Write(p []byte) (int, error) {
	l.p, l.base = p, l.m.pos
	l.from, l.to = l.base, l.base
	l.m.feed(p, l)
	l.flush()
	l.p = nil
	return len(p), nil
}

func (l *Lexer) give(t Token) {
	l.t = t
	l.h(&l.t)
}

func (l *Lexer) flush() {
	if l.from < l.to {
		l.give(Token{Kind: TokenText, Start: l.from, End: l.to, DataStart: l.from, Data: l.p[l.from-l.base : l.to-l.base]})
	}
	l.from = l.to
}

func (l *Lexer) extend(at int64, n int) {
	if at != l.to {
		l.flush()
		l.from = at
	}
	l.to = at + int64(n)
}

func (l *Lexer) text(p []byte, at int64) { l.extend(at, len(p)) }

func (l *Lexer) char(_ rune, raw []byte, at int64) {
	if at >= l.base {
		l.extend(at, len(raw))
		return
	}
	end := at + int64(len(raw)) // it began in an earlier call
	l.give(Token{Kind: TokenText, Start: at, End: end, DataStart: at, Data: raw})
	l.from, l.to = end, end
}

func (l *Lexer) chars(p []byte, at int64) int {
	n := 3
	for rune3(p[n:]) != 0 {
		n += 3
	}
	l.extend(at, n)
	return n
}

func (l *Lexer) control(c byte, at int64, n int) {
	l.flush()
	l.give(Token{Kind: TokenControl, Start: at, End: at + int64(n), Final: c})
}

func (l *Lexer) escape(m *machine, final byte) {
	l.flush()
	l.give(Token{Kind: TokenEscape, Start: m.start, End: m.end, Final: final, Inter: m.inter[:m.inters]})
}

func (l *Lexer) csi(m *machine, final byte) {
	l.flush()
	t := l.sequence(m, TokenCSI)
	t.Final = final
	l.give(t)
}

func (l *Lexer) str(m *machine, kind strKind) {
	l.flush()
	kinds := [...]TokenKind{strDCS: TokenDCS, strOSC: TokenOSC, strSOS: TokenSOS, strPM: TokenPM, strAPC: TokenAPC}
	t := l.sequence(m, kinds[kind])
	if kind == strDCS {
		t.Final = m.final
	}
	t.Data, t.DataStart = m.data, m.dataAt
	l.give(t)
}

func (l *Lexer) sequence(m *machine, k TokenKind) Token {
	n := min(m.nparams, maxParams)
	for i, p := range m.params[:n] {
		l.par[i] = int(p.value)
	}
	return Token{Kind: k, Start: m.start, End: m.end, Prefix: m.prefix, Inter: m.inter[:min(m.inters, 2)], Params: l.par[:n]}
}

// A state of the machine, after the state diagram of the VT500's parser (vt100.net/emu/dec_ansi_parser).
type state uint8

const (
	ground state = iota
	escape
	escapeInter
	csiEntry
	csiParam
	csiInter
	csiIgnore
	dcsEntry
	dcsParam
	dcsInter
	// What follows is read up to the end of the string.
	dcsData
	dcsIgnore
	stringData
	states
)

// An action on a byte.
type action uint8

const (
	doNothing action = iota
	doControl
	doOpen
	doCollect
	doPrefix
	doParam
	doEscape
	doCSI
	doDCS
	doSkipDCS
	doString
)

// A transition is what the machine does on a byte in a state, and the state after it.
type transition struct {
	next state
	do   action
}

// table holds the transitions of every state on every byte below 0x80. The states inside a control string need none.
var table = transitions()

func transitions() (t [dcsData][128]transition) {
	in := func(from state, lo, hi byte, do action, next state) {
		for c := int(lo); c <= int(hi); c++ {
			t[from][c] = transition{next, do}
		}
	}
	for s := ground; s < dcsData; s++ {
		in(s, 0, 0x7f, doNothing, s)
		if s < dcsEntry {
			in(s, 0, 0x1f, doControl, s)
		}
		in(s, 0x18, 0x18, doControl, ground)
		in(s, 0x1a, 0x1a, doControl, ground)
		in(s, 0x1b, 0x1b, doOpen, escape)
	}
	in(ground, 0x7f, 0x7f, doControl, ground)

	for _, s := range []state{escape, escapeInter} {
		in(s, 0x20, 0x2f, doCollect, escapeInter)
		in(s, 0x30, 0x7e, doEscape, ground)
	}
	in(escape, '[', '[', doNothing, csiEntry)
	in(escape, 'P', 'P', doNothing, dcsEntry)
	for _, c := range []byte("]X^_") {
		in(escape, c, c, doString, stringData)
	}

	for _, s := range []state{csiEntry, csiParam, csiInter, csiIgnore} {
		in(s, 0x40, 0x7e, doCSI, ground)
		in(s, 0x20, 0x2f, doCollect, csiInter)
	}
	in(csiEntry, 0x30, 0x3b, doParam, csiParam)
	in(csiEntry, 0x3c, 0x3f, doPrefix, csiParam)
	in(csiParam, 0x30, 0x3b, doParam, csiParam)
	in(csiParam, 0x3c, 0x3f, doNothing, csiIgnore)
	in(csiInter, 0x30, 0x3f, doNothing, csiIgnore)
	in(csiIgnore, 0x20, 0x3f, doNothing, csiIgnore)
	in(csiIgnore, 0x40, 0x7e, doNothing, ground)

	for _, s := range []state{dcsEntry, dcsParam, dcsInter} {
		in(s, 0x40, 0x7e, doDCS, dcsData)
		in(s, 0x20, 0x2f, doCollect, dcsInter)
	}
	in(dcsEntry, 0x30, 0x3b, doParam, dcsParam)
	in(dcsEntry, 0x3c, 0x3f, doPrefix, dcsParam)
	in(dcsParam, 0x30, 0x3b, doParam, dcsParam)
	in(dcsParam, 0x3c, 0x3f, doSkipDCS, dcsIgnore)
	in(dcsInter, 0x30, 0x3f, doSkipDCS, dcsIgnore)
	return t
}

// A decoder puts code points of UTF-8 together. What is not UTF-8 becomes U+FFFD, one for each longest beginning of a code
// point, as the Encoding standard has it, however the bytes are cut.
type decoder struct {
	buf    [utf8.UTFMax]byte
	n      int  // bytes of the open code point in buf
	need   int  // bytes that it has
	lo, hi byte // bounds of the next byte
	at     int64
	raw    int // bytes of the last code point in buf
}

// decode reads p until a code point ends: the code point, how many bytes of p were read (0 where the open code point ended
// before p[0]), and whether one ended.
func (d *decoder) decode(p []byte) (rune, int, bool) {
	i := 0
	if d.n == 0 {
		if !d.begin(p[0]) {
			return utf8.RuneError, 1, true
		}
		i = 1
	}
	for ; i < len(p); i++ {
		c := p[i]
		if c < d.lo || c > d.hi {
			d.raw, d.n = d.n, 0
			return utf8.RuneError, i, true
		}
		d.lo, d.hi = 0x80, 0xbf
		d.buf[d.n] = c
		d.n++
		if d.n == d.need {
			r, _ := utf8.DecodeRune(d.buf[:d.n])
			d.raw, d.n = d.n, 0
			return r, i + 1, true
		}
	}
	return 0, i, false
}

// begin takes a first byte; it is false for a byte that begins nothing.
func (d *decoder) begin(c byte) bool {
	d.buf[0], d.lo, d.hi = c, 0x80, 0xbf
	switch {
	case c >= 0xc2 && c <= 0xdf:
		d.need = 2
	case c >= 0xe0 && c <= 0xef:
		d.need = 3
		switch c {
		case 0xe0:
			d.lo = 0xa0
		case 0xed:
			d.hi = 0x9f
		}
	case c >= 0xf0 && c <= 0xf4:
		d.need = 4
		switch c {
		case 0xf0:
			d.lo = 0x90
		case 0xf4:
			d.hi = 0x8f
		}
	default:
		d.raw = 1
		return false
	}
	d.n = 1
	return true
}

// take is the bytes of the last code point.
func (d *decoder) take() []byte { return d.buf[:d.raw] }

package vt

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

// Ground reports whether the stream is between sequences and code points.
func (l *Lexer) Ground() bool { return l.m.ground() }

// Offset is where in the stream the next byte stands.
func (l *Lexer) Offset() int64 { return l.m.pos }

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

package tty

import (
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/internal/vt"
)

// A model scans the screens of a stream.
//
// While a program writes lines of text and colours, one below the other onto blank rows (plain), nothing is looked at: what then
// stands on the screen is what stands in the stripped stream. The screen is not even drawn, but for its last rows when somebody
// asks. Everything else is drawn, and before each control that may move or erase (a moment) the rows are looked at that changed
// since the last one.
type model struct {
	screen *vt.Screen
	rows   *screenRows
	lex    lexer
	p      []byte   // that is being read
	at     int64    // of p, or of what comes
	sizes  []Resize // that come later
	cols   int

	plain   bool
	begun   int64   // where the last line begins, while plain
	width   int     // columns of text in it, had none two
	above   int     // those of the line above it
	word    int     // bytes of the word that it ends in
	last    byte    // of it
	framed  bool    // it may have a border
	border  bool    // its last byte may begin one
	cr      bool    // it ends in CR
	lines   []int64 // where the last lines begin, one more than the screen has rows at most
	fed     int64   // up to where the screen is drawn
	fedLex  lexer   // as of fed, while plain
	pending []byte  // from fed to at, while plain

	drawn   bool // there was text since the last moment
	odd     bool // there was more than plain text since the last line end
	margins bool // a part of the screen scrolls
}

// maxPending is how much plain text is kept for the screen, in bytes, where fewer would do.
const maxPending = 64 << 10

func newModel(r *rules, l *ledger, rows, cols int) *model {
	screen := vt.New(&vt.Options{Rows: rows, Cols: cols, Scrollback: -1, Origins: true})
	m := &model{screen: screen, rows: newScreenRows(screen, r, l), plain: true}
	_, m.cols = screen.Size()
	return m
}

func (m *model) write(p []byte) {
	for len(m.sizes) > 0 && m.sizes[0].Offset <= m.at+int64(len(p)) {
		n := int(m.sizes[0].Offset - m.at)
		m.read(p[:n])
		p = p[n:]
		m.setSize(m.sizes[0])
		m.sizes = m.sizes[1:]
	}
	m.read(p)
}

func (m *model) resize(z Resize) {
	if z.Offset > m.at {
		m.sizes = append(m.sizes, z)
		return
	}
	m.setSize(z)
}

func (m *model) setSize(z Resize) {
	m.leave(m.at)
	m.moment()
	m.screen.Resize(z.Rows, z.Cols)
	_, m.cols = m.screen.Size()
	m.rows.earn(bonus)
	m.drawn, m.margins = true, false
}

func (m *model) read(p []byte) {
	m.p = p
	m.rows.earn(len(p))
	for i := 0; i < len(p); {
		k, n := m.lex.next(p[i:])
		if k == quiet && !m.rows.panels && p[i+n-1] == 'm' {
			m.rows.panels = m.lex.setsBackground()
		}
		if m.plain {
			m.plainToken(k, i, n)
		} else {
			m.token(k, i, n)
		}
		i += n
	}
	if m.plain {
		m.keep()
	} else {
		m.draw(m.at + int64(len(p)))
	}
	m.at += int64(len(p))
	m.p = nil
}

// plainToken takes a token of plain text, or the first that is none.
func (m *model) plainToken(k kind, i, n int) {
	switch {
	case k == text && !m.cr:
		m.measure(m.p[i : i+n])
		return
	case k == carriage:
		m.cr = true
		return
	case k == newline && m.cr && !m.goesOn():
		m.begun = m.at + int64(i+n)
		m.addLine()
		m.cr, m.above, m.width, m.word, m.framed = false, m.width, 0, 0, false
		return
	case k == tab || k == quiet || k == payload:
		return
	}
	m.leave(m.at + int64(i))
	m.token(k, i, n)
}

// measure takes text of the last line.
func (m *model) measure(p []byte) {
	n := 0
	for n < len(p) && isToken(p[len(p)-1-n]) {
		n++
	}
	if n == len(p) {
		n += m.word
	}
	m.word, m.last = n, p[len(p)-1]
	if !hasBorder(p) {
		m.width += len(p)
		m.border = false
		return
	}
	for _, c := range p {
		if utf8.RuneStart(c) {
			m.width++
		}
		m.framed = m.framed || c == '|' || m.border && c >= 0x94 && c <= 0x97
		m.border = c == borders
	}
}

// goesOn reports whether the line may go on in the next one, of which the stream without sequences does not tell: it has a border, is
// about as long as the screen is wide, ends as the one above it in a word that may have been cut, or may begin a private key.
func (m *model) goesOn() bool {
	return m.framed || m.width == m.cols || m.word > 0 && m.width >= m.cols-maxPadding && m.width < m.cols ||
		m.word >= longPiece && m.width == m.above || m.word >= len("KEY-----") && m.last == '-'
}

// leave ends plain text: from an offset on everything is drawn.
func (m *model) leave(to int64) {
	if !m.plain {
		return
	}
	m.plain, m.odd = false, true
	m.skip()
	m.draw(to)
	m.rows.pass()
}

// token takes a token of a stream that is drawn.
func (m *model) token(k kind, i, n int) {
	switch k {
	case text:
		m.drawn = true
		return
	case quiet, payload:
		return
	}
	if m.drawn {
		m.draw(m.at + int64(i))
		m.moment()
	}
	switch k {
	case newline:
		m.newline(m.at + int64(i+n))
	case carriage:
		m.cr = true
		return
	case moves:
		m.odd = true
		m.drawn = m.edits(m.p[i+n-1])
		if m.lex.final == 'r' && m.p[i+n-1] == 'r' {
			m.margins = m.lex.n > 0
		}
	}
	m.cr = false
}

// edits tells by its last byte whether a sequence moves what stands on the screen, or repeats it: what was apart may stand together
// then, and be wiped before more is printed.
func (m *model) edits(final byte) bool {
	switch final {
	case '@', 'P', 'L', 'M', 'S', 'T', '^', 'b', '6', '9':
		return true
	case 'A', 'v', '}', '~':
		return m.lex.inter != 0
	}
	return false
}

// newline begins plain text behind a line that was plain, where nothing stands on the rows that come.
func (m *model) newline(end int64) {
	plain := !m.odd && m.cr && !m.margins && !m.rows.key
	m.odd = false
	if !plain {
		return
	}
	m.draw(end)
	if !m.freshRows() {
		return
	}
	m.plain, m.fedLex, m.begun, m.width, m.word, m.framed = true, m.lex, end, 0, 0, false
	m.lines = m.lines[:0]
	m.addLine()
}

// addLine notes that a line begins.
func (m *model) addLine() {
	if rows, _ := m.screen.Size(); len(m.lines) > rows {
		m.lines = append(m.lines[:0], m.lines[1:]...)
	}
	m.lines = append(m.lines, m.begun)
}

// freshRows reports whether text goes onto blank rows from here on, as far as the modes of the screen say.
func (m *model) freshRows() bool {
	const origin, autowrap, sideMargins, insert = 6, 7, 69, 4
	if !m.isSet(true, autowrap) || m.isSet(true, origin) || m.isSet(true, sideMargins) || m.isSet(false, insert) {
		return false
	}
	rows, _ := m.screen.Size()
	for i := m.screen.Cursor().Row; i < rows; i++ {
		if m.screen.Row(i) != "" {
			return false
		}
	}
	return true
}

func (m *model) isSet(dec bool, mode int) bool {
	set, _ := m.screen.Mode(dec, mode)
	return set
}

// settled returns up to where nothing can be found any more, but for what the program goes back to.
func (m *model) settled() int64 {
	if m.plain {
		return m.begun
	}
	return 0
}

// rest looks at the screen as it is now.
func (m *model) rest() {
	m.shown()
	if m.plain {
		m.rows.pass()
		return
	}
	m.moment()
	m.rows.look(true)
}

// shown is the screen as of all that was read.
func (m *model) shown() *vt.Screen {
	if m.plain {
		m.skip()
		m.draw(m.at)
		m.fedLex = m.lex
	}
	return m.screen
}

func (m *model) moment() {
	m.drawn = false
	m.rows.look(false)
}

func (m *model) draw(to int64) {
	if len(m.pending) > 0 {
		m.show(m.pending)
		m.pending = m.pending[:0]
	}
	if to > m.fed {
		m.show(m.p[m.fed-m.at : to-m.at])
	}
}

func (m *model) show(p []byte) {
	_, _ = m.screen.Write(p) // never fails
	m.fed += int64(len(p))
}

// keep keeps what was read for the screen, or as much of it as is needed.
func (m *model) keep() {
	end := m.at + int64(len(m.p))
	if end-m.fed > maxPending {
		m.skip()
	}
	if end-m.fed > 2*maxPending { // lines without an end
		m.draw(end)
		m.fedLex = m.lex
		return
	}
	m.pending = append(m.pending, m.p[max(m.fed-m.at, 0):]...)
}

// skip passes over plain text that has left the screen. Of the sequences in it those count that say how what follows is drawn.
func (m *model) skip() {
	rows, _ := m.screen.Size()
	if len(m.lines) <= rows || m.lines[0] <= m.fed { // what stood on the screen before that line is gone
		return
	}
	to := m.lines[0]
	var seen sequences
	n := min(int64(len(m.pending)), to-m.fed)
	seen.in(&m.fedLex, m.pending[:n])
	m.pending = append(m.pending[:0], m.pending[n:]...)
	m.fed += n
	if to > m.fed {
		seen.in(&m.fedLex, m.p[m.fed-m.at:to-m.at])
		m.fed = to
	}
	_, _ = m.screen.Write(append(append(seen.others, seen.colours...), '\r')) // never fails
	m.rows.moved(m.screen.Offset(), to)
}

// sequences are those of a part of the stream, without the text.
type sequences struct {
	others, colours []byte
	from            int // where in others the last one begins
}

// in adds those of p. Of colours, those count that were set since the last reset.
func (s *sequences) in(x *lexer, p []byte) {
	for i := 0; i < len(p); {
		k, n := x.next(p[i:])
		if k == quiet || k == payload {
			s.others = append(s.others, p[i:i+n]...)
			if k == quiet && x.state == ground {
				s.ended(x, p[i+n-1])
			}
		}
		i += n
	}
}

// ended takes the last byte of a sequence.
func (s *sequences) ended(x *lexer, last byte) {
	if last == 'm' && x.final == 'm' && s.from < len(s.others) && s.others[s.from] == 0x1b {
		if x.isReset() && x.inter == 0 {
			s.colours = s.colours[:0]
		}
		s.colours = append(s.colours, s.others[s.from:]...)
		s.others = s.others[:s.from]
	}
	s.from = len(s.others)
}

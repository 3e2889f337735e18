package check

import "github.com/tapedeck-dev/tapedeck/internal/vt"

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

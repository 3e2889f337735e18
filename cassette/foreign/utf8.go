package foreign

import "unicode/utf8"

// text makes a stream of bytes one of valid UTF-8, whatever it is cut into.
type text struct {
	held     []byte // the beginning of a sequence
	out      []byte
	replaced int // bytes, or beginnings of sequences, that became U+FFFD
}

// add returns what is whole of what was held and b. It is valid until the next call.
func (t *text) add(b []byte) []byte {
	if len(t.held) == 0 && utf8.Valid(b) {
		return b
	}
	t.held = append(t.held, b...)
	t.out = t.out[:0]
	b = t.held
	for len(b) > 0 {
		if !utf8.FullRune(b) {
			break
		}
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && n == 1 {
			t.replaced++
		}
		t.out = utf8.AppendRune(t.out, r)
		b = b[n:]
	}
	t.held = append(t.held[:0], b...)
	return t.out
}

// end returns what is still held: an unfinished sequence is none.
func (t *text) end() []byte {
	if len(t.held) == 0 {
		return nil
	}
	t.held = t.held[:0]
	t.replaced++
	return utf8.AppendRune(t.out[:0], utf8.RuneError)
}

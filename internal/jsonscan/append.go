package jsonscan

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"
	"unsafe"
)

// AppendText appends s as a JSON string, in quotes. It escapes the quote, the backslash and control characters, and nothing
// else: what other producers of our formats do, so that equal values are equal bytes. Every byte that is not UTF-8 becomes
// U+FFFD. Behind the string, as far as dst's memory reaches, bytes are overwritten.
func AppendText(dst []byte, s string) []byte {
	start := len(dst)
	buf := grown(dst, min(1+most(s), len(s)+len(s)/4+2*step))
	buf[start] = '"'
	buf, n, seen := escape(buf, start+1, s)
	if seen&highs != 0 && !utf8.ValidString(s) {
		return AppendText(buf[:start], string([]rune(s)))
	}
	buf[n] = '"'
	return buf[:n+1]
}

// step is the room that sixteen bytes of text may need: each an escape, and each written in eight bytes.
const step = 16*len(`\u0000`) + 8

// most is the room that s and the quote behind it may need.
func most(s string) int { return len(s)*len(`\u0000`) + 8 + 1 }

// grown is all the memory of buf, with room for n bytes more than it holds.
func grown(buf []byte, n int) []byte {
	buf = slices.Grow(buf, n)
	return buf[:cap(buf)]
}

// escape writes s to buf from n on, sixteen bytes at a time. It returns buf, which it grows where it must and which has
// room for a byte more, where s ends in it, and all words of s or-ed, which tell whether it is ASCII.
func escape(buf []byte, n int, s string) ([]byte, int, uint64) {
	var seen uint64
	whole := s
	dense := false // the sixteen bytes before had an escape: those that follow are not asked first
	for len(s) >= 16 {
		x, y := load8(s), load8(s[8:])
		seen |= x | y
		if len(buf)-n < step {
			buf = grown(buf[:n], len(s)+len(s)/4+2*step)
		}
		room := (*[step]byte)(buf[n:])
		if !dense && escapable(x)|escapable(y) == 0 {
			binary.LittleEndian.PutUint64(room[:], x)
			binary.LittleEndian.PutUint64(room[8:], y)
			n += 16
		} else {
			put := putEscaped(room, s[:16])
			dense = put > 16
			n += put
		}
		s = s[16:]
	}
	if len(buf)-n < most(s) {
		buf = grown(buf[:n], most(s))
	}
	if len(s) >= 8 {
		if x := load8(s); escapable(x) == 0 {
			binary.LittleEndian.PutUint64(buf[n:], x)
			seen |= x
			n += 8
			s = s[8:]
		}
	}
	if len(s) > 0 && len(s) < 8 && len(whole) >= 8 {
		// The last eight bytes: where none needs an escape, those of them that are written stand as they are.
		if x := load8(whole[len(whole)-8:]); escapable(x) == 0 {
			n += len(s)
			binary.LittleEndian.PutUint64(buf[n-8:], x)
			return buf, n, seen | x
		}
	}
	for _, c := range []byte(s) {
		seen |= uint64(c)
		*(*[8]byte)(buf[n:]) = escapes.text[c]
		n += int(escapes.len[c])
	}
	return buf, n, seen
}

// putEscaped writes s, of sixteen bytes, escaped, and returns the length of that. Text that is JSON itself has an escape
// every few bytes. So each byte is looked up and written in eight bytes, of which the next one leaves as many as count:
// no branch depends on the text. The pointer stays within room, which is step long; with an index, of which every use is
// checked, the function would take half as long again, and it is half of what an append takes.
func putEscaped(room *[step]byte, s string) int {
	at := unsafe.Pointer(room)
	_ = s[15]
	for i := 0; i < 16; i += 4 {
		at = putByte(at, s[i])
		at = putByte(at, s[i+1])
		at = putByte(at, s[i+2])
		at = putByte(at, s[i+3])
	}
	return int(uintptr(at) - uintptr(unsafe.Pointer(room)))
}

// putByte writes what stands for c in eight bytes, and returns where that ends.
func putByte(at unsafe.Pointer, c byte) unsafe.Pointer {
	*(*[8]byte)(at) = escapes.text[c]
	return unsafe.Add(at, escapes.len[c])
}

// escapes holds what stands for a byte in a string, itself or its escape, and the length of that.
var escapes = func() (t struct {
	text [256][8]byte
	len  [256]uint8
}) {
	const digits = "0123456789abcdef"
	letters := map[int]byte{'"': '"', '\\': '\\', '\b': 'b', '\f': 'f', '\n': 'n', '\r': 'r', '\t': 't'}
	for c := range t.text {
		letter, short := letters[c]
		switch {
		case short:
			t.text[c], t.len[c] = [8]byte{'\\', letter}, 2
		case c < ' ':
			t.text[c], t.len[c] = [8]byte{'\\', 'u', '0', '0', digits[c>>4], digits[c&0xf]}, 6
		default:
			t.text[c], t.len[c] = [8]byte{byte(c)}, 1
		}
	}
	return t
}()

// Marshal is json.Marshal without the escapes that are for web pages.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// MustMarshal is Marshal for a type that always has a JSON form.
func MustMarshal(v any) []byte {
	b, err := Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("%T has no JSON form: %v", v, err))
	}
	return b
}

// AppendLine appends JSON that is Valid, without the line ends that may stand between its tokens. (Within strings there are
// none.)
func AppendLine(dst []byte, v []byte) []byte {
	if bytes.IndexByte(v, '\n') < 0 {
		return append(dst, v...)
	}
	for _, c := range v {
		if c != '\n' && c != '\r' {
			dst = append(dst, c)
		}
	}
	return dst
}

package placeholders

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/internal/lazyregexp"
	"github.com/tapedeck-dev/tapedeck/scrub/internal/chars"
)

// A Form says in which disguise a known value stood, so that on replay another value can be put there in the same. It
// stands in the placeholder, after the rule, where the value did not stand as it is:
//
//	td_api_key_zb10c_98b66c2c11ef
//	form = "z" [ kind ] [ lines ] [ JSON ] [ percent ]
//	kind = "h" | "u" | ( "b" | "v" ) shift bits bits    hex in lower or upper case; base64, or that for URLs, that begins
//	                                                    shift bytes into a group of three; the bits of both neighbours in
//	                                                    the digits that they share with the value, as hex; x: none
//	lines = "n" digits [ "w" digits ] [ "c" ]           how many digits stand before the first end of a line, and between
//	                                                    two; c: CR LF
//	JSON = "j" times [ "k" ] [ "m" ] [ "a" ] [ "s" ]    how often it was quoted, and whether <, > and &, or what is not
//	                                                    ASCII, or all, stood as \u00xx, and / as \/
//	percent = ( "p" | "r" ) [ "e" ] [ "s" ] [ "d" ]     hex digits in upper or lower case; e: every byte was escaped;
//	                                                    s: a blank as +; d: twice
//
// The digits of the placeholder are those of the value whatever its form, so a form changes no comparison.
type Form struct {
	Kind                     byte // 0 for the value itself
	Shift                    int
	Head, Tail               byte // bits of the neighbours; NoBits for none
	First, Width             int  // digits; 0 for no lines
	CRLF                     bool
	JSON                     int
	HTML, NonASCII, All      bool
	Slash                    bool
	Percent, Lower, Everyone bool
	Plus, Twice              bool
}

// The kinds of a Form.
const (
	KindHex       = 'h'
	KindUpperHex  = 'u'
	KindBase64    = 'b'
	KindBase64URL = 'v'
	NoBits        = 0xff
)

func (f *Form) String() string {
	var b strings.Builder
	add := func(on bool, s string) {
		if on {
			b.WriteString(s)
		}
	}
	add(f.Kind != 0, string(f.Kind))
	add(f.Kind == KindBase64 || f.Kind == KindBase64URL, strconv.Itoa(f.Shift)+bitsText(f.Head)+bitsText(f.Tail))
	if f.First > 0 {
		fmt.Fprintf(&b, "n%d", f.First)
		add(f.Width > 0, fmt.Sprintf("w%d", f.Width))
		add(f.CRLF, "c")
	}
	if f.JSON > 0 {
		fmt.Fprintf(&b, "j%d", f.JSON)
		add(f.HTML, "k")
		add(f.NonASCII, "m")
		add(f.All, "a")
		add(f.Slash, "s")
	}
	if f.Percent {
		add(!f.Lower, "p")
		add(f.Lower, "r")
		add(f.Everyone, "e")
		add(f.Plus, "s")
		add(f.Twice, "d")
	}
	if b.Len() == 0 {
		return ""
	}
	return "z" + b.String()
}

func bitsText(bits byte) string {
	if bits == NoBits {
		return "x"
	}
	return strconv.FormatUint(uint64(bits&15), 16)
}

var formText = lazyregexp.New(`^z(?:([hu])|([bv])([012])([0-9a-fx])([0-9a-fx]))?(?:n([0-9]{1,4})(?:w([0-9]{1,4}))?(c)?)?` +
	`(?:j([1-3])(k)?(m)?(a)?(s)?)?(?:([pr])(e)?(s)?(d)?)?$`)

// parse reads a form. ok is false where s is none.
func parse(s string) (f Form, ok bool) {
	m := formText.FindStringSubmatch(s)
	if m == nil || s == "z" {
		return f, false
	}
	number := func(s string) int {
		n, _ := strconv.Atoi(s)
		return n
	}
	bits := func(s string) byte {
		if n, err := strconv.ParseUint(s, 16, 8); err == nil {
			return byte(n)
		}
		return NoBits
	}
	f = Form{Shift: number(m[3]), Head: bits(m[4]), Tail: bits(m[5]), First: number(m[6]), Width: number(m[7]), CRLF: m[8] != "",
		JSON: number(m[9]), HTML: m[10] != "", NonASCII: m[11] != "", All: m[12] != "", Slash: m[13] != "",
		Percent: m[14] != "", Lower: m[14] == "r", Everyone: m[15] != "", Plus: m[16] != "", Twice: m[17] != ""}
	if kind := m[1] + m[2]; kind != "" {
		f.Kind = kind[0]
	}
	return f, true
}

// hasForm tells whether the end of a rule's name reads as a form.
func hasForm(rule string) bool {
	i := strings.LastIndexByte(rule, '_')
	_, ok := parse(rule[i+1:])
	return ok && i > 0
}

// With returns the placeholder of a value that stood in a form.
func With(placeholder, form string) string {
	if form == "" {
		return placeholder
	}
	end := len(placeholder) - HexLen - 1
	rule := placeholder[len(Prefix):end]
	rule = strings.TrimRight(rule[:min(len(rule), maxRule-len(form)-1)], "_")
	return Prefix + rule + "_" + form + placeholder[end:]
}

// Split returns the placeholder of the value itself, as far as its rule was kept, and the form.
func Split(placeholder string) (plain, form string) {
	rule := Rule(placeholder)
	if !hasForm(rule) {
		return placeholder, ""
	}
	i := strings.LastIndexByte(rule, '_')
	return Prefix + rule[:i] + placeholder[len(placeholder)-HexLen-1:], rule[i+1:]
}

// Disguise returns value in a form; value itself where form is none.
func Disguise(value, form string) string {
	f, ok := parse(form)
	if !ok {
		return value
	}
	switch f.Kind {
	case KindHex:
		value = hex.EncodeToString([]byte(value))
	case KindUpperHex:
		value = strings.ToUpper(hex.EncodeToString([]byte(value)))
	case KindBase64, KindBase64URL:
		value = f.base64(value)
	}
	for times := range f.JSON {
		value = f.quote(value, times == 0)
	}
	if f.Percent {
		value = f.escape(value, f.Everyone)
		if f.Twice {
			value = (&Form{Lower: f.Lower}).escape(value, false)
		}
	}
	return value
}

// An Edge is a base64 digit of which only the bits of Mask are known: it shares the others with a neighbour. A zero Mask is none.
type Edge struct{ Mask, Bits byte }

// Fits tells whether digit can stand there, in the standard alphabet or that for URLs.
func (e Edge) Fits(digit byte) bool {
	v := DigitValue(digit)
	return v < 64 && (v^e.Bits)&e.Mask == 0
}

// shift is by how much the bits of a neighbour that stands before are shifted.
func (e Edge) shift() (n int) {
	for mask := e.Mask; mask&1 == 1; mask >>= 1 {
		n++
	}
	return n
}

// Before returns the bits of the neighbour that stands before in a digit that it shares with the value.
func (e Edge) Before(digit byte) byte { return digit &^ e.Mask >> e.shift() }

// After is Before for the neighbour that stands behind.
func (e Edge) After(digit byte) byte { return digit &^ e.Mask }

// DigitValue returns the six bits of a base64 digit, and 64 for another byte.
func DigitValue(c byte) byte {
	switch {
	case chars.IsUpper(c):
		return c - 'A'
	case chars.IsLower(c):
		return c - 'a' + 26
	case chars.IsDigit(c):
		return c - '0' + 52
	case c == '+' || c == '-':
		return 62
	case c == '/' || c == '_':
		return 63
	}
	return 64
}

// Base64 returns the digits that hold bits of value alone where it begins shift bytes after the beginning of a group of three, and
// those that it shares with what stands before and behind it.
func Base64(value string, enc *base64.Encoding, shift int) (digits string, head, tail Edge) {
	padded := append(append(make([]byte, shift, shift+len(value)+2), value...), 0, 0)
	end := (shift + len(value)) * 8 // in bits
	all := enc.EncodeToString(padded)
	first, last := (shift*8+5)/6, end/6 // the digits that hold bits of the value alone
	if n := shift * 8 % 6; n > 0 {
		head = Edge{1<<(6-n) - 1, DigitValue(all[first-1])}
	}
	if n := end % 6; n > 0 {
		tail = Edge{(1<<n - 1) << (6 - n), DigitValue(all[last])}
	}
	return all[first:last], head, tail
}

func (f *Form) encoding() *base64.Encoding {
	if f.Kind == KindBase64URL {
		return base64.RawURLEncoding
	}
	return base64.RawStdEncoding
}

// base64 returns the digits that hold bits of value; of an empty one there are none.
func (f *Form) base64(value string) string {
	if value == "" {
		return ""
	}
	enc := f.encoding()
	digits, head, tail := Base64(value, enc, f.Shift)
	digit := func(v byte) string { return enc.EncodeToString([]byte{v << 2})[:1] }
	last := len(digits) // a line may end before the digit that is shared with what comes
	if tail.Mask == 0 || f.Tail == NoBits {
		last--
	}
	text := digits
	for at := f.First; at > 0 && at <= last; at += f.Width {
		end := "\n"
		if f.CRLF {
			end = "\r\n"
		}
		text = text[:at+len(text)-len(digits)] + end + text[at+len(text)-len(digits):]
		if f.Width == 0 {
			break
		}
	}
	if head.Mask != 0 && f.Head != NoBits {
		text = digit(head.Bits&head.Mask|f.Head<<head.shift()) + text
	}
	if tail.Mask != 0 && f.Tail != NoBits {
		text += digit(tail.Bits&tail.Mask | f.Tail&^tail.Mask)
	}
	return text
}

// quote writes v as a JSON string, without its quotation marks. Only the first time are there choices.
func (f *Form) quote(v string, first bool) string {
	var b strings.Builder
	for _, r := range v {
		short := strings.IndexRune("\b\f\n\r\t\"\\", r)
		switch {
		case first && f.All, r == utf8.RuneError, first && f.NonASCII && r >= utf8.RuneSelf, first && f.HTML && strings.ContainsRune("<>&", r),
			r < ' ' && short < 0:
			writeCodeUnits(&b, r)
		case short >= 0:
			b.WriteString(`\` + `bfnrt"\`[short:short+1])
		case first && f.Slash && r == '/':
			b.WriteString(`\/`)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func writeCodeUnits(b *strings.Builder, r rune) {
	if r > 0xffff {
		r -= 0x10000
		fmt.Fprintf(b, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		return
	}
	fmt.Fprintf(b, `\u%04x`, r)
}

// escape percent-encodes v: all of it, or all but letters, digits and - _ . ~.
func (f *Form) escape(v string, all bool) string {
	format := "%%%02X"
	if f.Lower {
		format = "%%%02x"
	}
	var b strings.Builder
	for i := range len(v) {
		switch c := v[i]; {
		case !all && (chars.IsAlnum(c) || strings.IndexByte("-_.~", c) >= 0):
			b.WriteByte(c)
		case c == ' ' && f.Plus:
			b.WriteByte('+')
		default:
			fmt.Fprintf(&b, format, c)
		}
	}
	return b.String()
}

// Undisguise returns the value that stands in text in a form; text itself where form is none. ok is false where text cannot be
// of that form, or does not have all of the value: that is not known without whoever made the text.
func Undisguise(text, form string) (value string, ok bool) {
	f, isForm := parse(form)
	if !isForm {
		return text, true
	}
	if text, ok = f.unescape(text); !ok {
		return "", false
	}
	for range f.JSON {
		if json.Unmarshal([]byte(`"`+text+`"`), &text) != nil {
			return "", false
		}
	}
	switch f.Kind {
	case KindHex, KindUpperHex:
		b, err := hex.DecodeString(text)
		return string(b), err == nil
	case KindBase64, KindBase64URL:
		if f.Shift > 0 && f.Head == NoBits { // the digit that it shared with what came before was left
			return "", false
		}
		text = strings.Repeat("A", f.Shift) + text // the first group, as it is with nothing before the value
		b, err := f.encoding().DecodeString(text)  // which skips the ends of lines
		if err != nil || len(b) < f.Shift {
			return "", false
		}
		return string(b[f.Shift:]), true
	}
	return text, true
}

// unescape undoes the percent-encoding.
func (f *Form) unescape(text string) (plain string, ok bool) {
	if !f.Percent {
		return text, true
	}
	var err error
	if f.Twice {
		if text, err = url.PathUnescape(text); err != nil {
			return "", false
		}
	}
	if f.Plus {
		plain, err = url.QueryUnescape(text)
	} else {
		plain, err = url.PathUnescape(text)
	}
	return plain, err == nil
}

package scrub

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/internal/lazyregexp"
)

// A form says in which disguise a known value stood, so that on replay another value can be put there in the same. It
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
// The digits of the HMAC are those of the value whatever its form, so a form changes no comparison.
type form struct {
	kind                     byte // 0 for the value itself
	shift                    int
	head, tail               byte // bits of the neighbours; noBits for none
	first, width             int  // digits; 0 for no lines
	crlf                     bool
	json                     int
	html, nonASCII, all      bool
	slash                    bool
	percent, lower, everyone bool
	plus, twice              bool
}

const (
	kindHex       = 'h'
	kindUpperHex  = 'u'
	kindBase64    = 'b'
	kindBase64URL = 'v'
	noBits        = 0xff
)

// A trace is what a walker met on its way through one value.
type trace struct {
	head, tail byte // base64 digits that are shared
	units      int
	percents   int // of them with percent-encoding in it
	full       int // of them percent-encoded altogether
	lower      bool
	twice      bool
	plus       bool
	nesting    int // of the JSON that something was escaped in; 0 for nothing
	html       bool
	nonASCII   bool
	ascii      bool
	slash      bool
	lines      int    // ends of lines
	at         [2]int // digits before the first two
	crlf       bool
}

// unit notes the bytes of the text that stand for a part of the value.
func (m *trace) unit(raw []byte) {
	m.units++
	escapes := bytes.Count(raw, []byte("%"))
	if escapes == 0 || len(raw) == 1 {
		return
	}
	m.percents++
	twice := bytes.HasPrefix(raw, []byte("%25")) && len(raw) > 3
	m.twice = m.twice || twice
	if len(raw) == 3*escapes || twice {
		m.full++
	}
	for i, c := range raw {
		if c == '%' {
			m.lower = m.lower || bytes.ContainsAny(raw[i:min(i+3, len(raw))], "abcdef")
		}
	}
}

func (m *trace) codePoint(r rune) {
	switch {
	case r == '<' || r == '>' || r == '&':
		m.html = true
	case r >= utf8.RuneSelf:
		m.nonASCII = true
	case r >= ' ' && r != 0x7f:
		m.ascii = true
	}
}

// line notes the end of a line behind at digits.
func (m *trace) line(at int, raw []byte) {
	if m.lines < len(m.at) {
		m.at[m.lines] = at
	}
	m.lines++
	m.crlf = m.crlf || bytes.ContainsAny(raw, "\rrDd") // as a byte, \r or %0D
	if raw[0] == '\\' {
		m.nesting = max(m.nesting, 1)
	}
	if raw[0] == '%' {
		m.percents++
	}
}

// form returns the form of what was walked through, "" for the value as it is.
func (w *walker) form() string {
	m, p := &w.met, w.p
	f := form{kind: p.kind, shift: p.shift, head: noBits, tail: noBits, crlf: m.crlf, json: m.nesting, html: m.html,
		nonASCII: m.nonASCII, all: m.ascii, slash: m.slash, percent: m.percents > 0 || m.plus, lower: m.lower,
		everyone: m.full > 1 && m.full == m.units, plus: m.plus, twice: m.twice}
	if p.base64 {
		if p.head.mask != 0 {
			f.head = m.head &^ p.head.mask >> onesOf(p.head.mask)
		}
		if p.tail.mask != 0 {
			f.tail = m.tail &^ p.tail.mask
		}
	}
	if m.lines > 0 {
		f.first = m.at[0]
	}
	if m.lines > 1 {
		f.width = m.at[1] - m.at[0]
	}
	return f.String()
}

// onesOf returns how many low bits of a mask are set.
func onesOf(mask byte) (n int) {
	for ; mask&1 == 1; mask >>= 1 {
		n++
	}
	return n
}

func (f *form) String() string {
	var b strings.Builder
	if f.kind != 0 {
		b.WriteByte(f.kind)
	}
	if f.kind == kindBase64 || f.kind == kindBase64URL {
		b.WriteString(strconv.Itoa(f.shift) + bitsText(f.head) + bitsText(f.tail))
	}
	if f.first > 0 {
		fmt.Fprintf(&b, "n%d", f.first)
		if f.width > 0 {
			fmt.Fprintf(&b, "w%d", f.width)
		}
		writeIf(&b, f.crlf, "c")
	}
	if f.json > 0 {
		fmt.Fprintf(&b, "j%d", f.json)
		writeIf(&b, f.html, "k")
		writeIf(&b, f.nonASCII, "m")
		writeIf(&b, f.all, "a")
		writeIf(&b, f.slash, "s")
	}
	if f.percent {
		writeIf(&b, !f.lower, "p")
		writeIf(&b, f.lower, "r")
		writeIf(&b, f.everyone, "e")
		writeIf(&b, f.plus, "s")
		writeIf(&b, f.twice, "d")
	}
	if b.Len() == 0 {
		return ""
	}
	return "z" + b.String()
}

func writeIf(b *strings.Builder, on bool, s string) {
	if on {
		b.WriteString(s)
	}
}

func bitsText(bits byte) string {
	if bits == noBits {
		return "x"
	}
	return strconv.FormatUint(uint64(bits&15), 16)
}

var formText = lazyregexp.New(`^z(?:([hu])|([bv])([012])([0-9a-fx])([0-9a-fx]))?(?:n([0-9]{1,4})(?:w([0-9]{1,4}))?(c)?)?` +
	`(?:j([1-3])(k)?(m)?(a)?(s)?)?(?:([pr])(e)?(s)?(d)?)?$`)

// parseForm reads a form. ok is false where s is none.
func parseForm(s string) (f form, ok bool) {
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
		return noBits
	}
	f = form{shift: number(m[3]), head: bits(m[4]), tail: bits(m[5]), first: number(m[6]), width: number(m[7]), crlf: m[8] != "",
		json: number(m[9]), html: m[10] != "", nonASCII: m[11] != "", all: m[12] != "", slash: m[13] != "",
		percent: m[14] != "", lower: m[14] == "r", everyone: m[15] != "", plus: m[16] != "", twice: m[17] != ""}
	if kind := m[1] + m[2]; kind != "" {
		f.kind = kind[0]
	}
	return f, true
}

// hasForm tells whether the end of a rule's name reads as a form.
func hasForm(rule string) bool {
	i := strings.LastIndexByte(rule, '_')
	_, ok := parseForm(rule[i+1:])
	return ok && i > 0
}

// withForm returns the placeholder of a value that stood in a form.
func withForm(placeholder, form string) string {
	if form == "" {
		return placeholder
	}
	end := len(placeholder) - hexLen - 1
	rule := placeholder[len(prefix):end]
	rule = strings.TrimRight(rule[:min(len(rule), maxRule-len(form)-1)], "_")
	return prefix + rule + "_" + form + placeholder[end:]
}

// formOf returns the placeholder of the value itself, as far as its rule was kept, and the form.
func formOf(placeholder string) (plain, form string) {
	rule := placeholderName(placeholder)
	i := strings.LastIndexByte(rule, '_')
	if i <= 0 {
		return placeholder, ""
	}
	if _, ok := parseForm(rule[i+1:]); !ok {
		return placeholder, ""
	}
	return prefix + rule[:i] + placeholder[len(placeholder)-hexLen-1:], rule[i+1:]
}

// disguise returns value in a form; value itself where s is none.
func disguise(value, s string) string {
	f, ok := parseForm(s)
	if !ok {
		return value
	}
	switch f.kind {
	case kindHex:
		value = hex.EncodeToString([]byte(value))
	case kindUpperHex:
		value = strings.ToUpper(hex.EncodeToString([]byte(value)))
	case kindBase64, kindBase64URL:
		value = f.base64(value)
	}
	for times := range f.json {
		value = f.quote(value, times == 0)
	}
	if f.percent {
		value = f.escape(value, f.everyone)
		if f.twice {
			value = (&form{lower: f.lower}).escape(value, false)
		}
	}
	return value
}

// base64 returns the digits that hold bits of value; of an empty one there are none.
func (f *form) base64(value string) string {
	if value == "" {
		return ""
	}
	enc := base64.RawStdEncoding
	if f.kind == kindBase64URL {
		enc = base64.RawURLEncoding
	}
	p := base64Pattern(&known{value: value}, enc, f.shift)
	digit := func(v byte) string { return enc.EncodeToString([]byte{v << 2})[:1] }
	text := string(p.text)
	last := len(p.text) // a line may end before the digit that is shared with what comes
	if p.tail.mask == 0 || f.tail == noBits {
		last--
	}
	for at := f.first; at > 0 && at <= last; at += f.width {
		end := "\n"
		if f.crlf {
			end = "\r\n"
		}
		text = text[:at+len(text)-len(p.text)] + end + text[at+len(text)-len(p.text):]
		if f.width == 0 {
			break
		}
	}
	if p.head.mask != 0 && f.head != noBits {
		text = digit(p.head.bits&p.head.mask|f.head<<onesOf(p.head.mask)) + text
	}
	if p.tail.mask != 0 && f.tail != noBits {
		text += digit(p.tail.bits&p.tail.mask | f.tail&^p.tail.mask)
	}
	return text
}

// quote writes v as a JSON string, without its quotation marks. Only the first time are there choices.
func (f *form) quote(v string, first bool) string {
	var b strings.Builder
	for _, r := range v {
		short := strings.IndexRune("\b\f\n\r\t\"\\", r)
		switch {
		case first && f.all, r == utf8.RuneError, first && f.nonASCII && r >= utf8.RuneSelf, first && f.html && strings.ContainsRune("<>&", r),
			r < ' ' && short < 0:
			writeCodeUnits(&b, r)
		case short >= 0:
			b.WriteString(`\` + `bfnrt"\`[short:short+1])
		case first && f.slash && r == '/':
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
func (f *form) escape(v string, all bool) string {
	format := "%%%02X"
	if f.lower {
		format = "%%%02x"
	}
	var b strings.Builder
	for i := range len(v) {
		switch c := v[i]; {
		case !all && (isAlnum(c) || strings.IndexByte("-_.~", c) >= 0):
			b.WriteByte(c)
		case c == ' ' && f.plus:
			b.WriteByte('+')
		default:
			fmt.Fprintf(&b, format, c)
		}
	}
	return b.String()
}

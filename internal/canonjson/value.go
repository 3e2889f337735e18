// Package canonjson brings JSON into the one form of RFC 8785 (JSON Canonicalization Scheme), so that equal values have
// equal bytes and a digest can stand for a value. It departs from the RFC in numbers that no double holds, see below.
//
// The canonical form has no white space; the members of an object are sorted by the UTF-16 code units of their keys;
// numbers are IEEE 754 doubles written as ECMAScript writes them; strings are UTF-8 and escape only the quotation mark,
// the backslash and the control characters below U+0020 (with the short forms \b \t \n \f \r, else \u00xx lowercase).
//
// Parse gives the value as a tree that keeps the source's order, for callers that canonicalise only parts of a text.
//
// Strictness: what has no single meaning is refused, never repaired: a key that occurs twice in one object, half of a
// surrogate pair, bytes that are not UTF-8, a number beyond the range of a double, anything after the value. Every
// refusal is an *Error with its offset.
//
// Digits: the RFC rounds every number to a double, so that two ids of 19 digits can have one form. Here a number that RFC
// 8785 would write as another one keeps its own text (Holds): integers have one form only where they are equal. A number
// with a point or an exponent is the nearest double up to 17 significant digits, and beyond them its text as it is written:
// two spellings of such a number are two numbers. All that doubles hold has the form that the RFC gives it.
//
// Bounds: nesting ends at MaxDepth; memory is a small multiple of the source's length.
package canonjson

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// Kind says which of JSON's six kinds a Value is of.
type Kind uint8

// The kinds of values. The zero Value is null.
const (
	Null Kind = iota
	Bool
	Number
	String
	Array
	Object
)

var kindNames = [...]string{"null", "boolean", "number", "string", "array", "object"}

// String returns the kind's name as JSON's grammar has it: "null", "boolean", "number", "string", "array", "object".
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "invalid"
}

// A Value is one JSON value. Only the field that its Kind names is set, but for the text of a Number. The strings of a
// parsed tree share the memory of one copy of the source. Values may be read by several goroutines at once.
type Value struct {
	Kind    Kind
	Bool    bool
	Num     float64
	Str     string   // UTF-8; of a Number as it is written where Num does not hold it (Holds), else ""
	Elems   []Value  // of an Array
	Members []Member // of an Object, in the order of the source
}

// A Member is one key of an object with its value.
type Member struct {
	Key   string
	Value Value
}

// Get returns the value of key, and false where v is no object or has no such key.
func (v Value) Get(key string) (Value, bool) {
	for i := range v.Members {
		if v.Members[i].Key == key {
			return v.Members[i].Value, true
		}
	}
	return Value{}, false
}

// Path follows keys from object to object, and returns false where one is missing.
func (v Value) Path(keys ...string) (Value, bool) {
	for _, key := range keys {
		next, ok := v.Get(key)
		if !ok {
			return Value{}, false
		}
		v = next
	}
	return v, true
}

// Text returns the string that v is, and "" where v is of another kind.
func (v Value) Text() string {
	if v.Kind != String {
		return ""
	}
	return v.Str
}

// Append appends the canonical form of v to dst. In a tree that was built by hand, a number that JSON cannot hold (NaN,
// an infinity) becomes null and a byte that is not UTF-8 becomes U+FFFD, as in ECMAScript.
func (v Value) Append(dst []byte) []byte { return v.append(dst) }

func (v *Value) append(dst []byte) []byte {
	switch v.Kind {
	case Bool:
		if v.Bool {
			return append(dst, "true"...)
		}
		return append(dst, "false"...)
	case Number:
		if v.Str != "" {
			return append(dst, v.Str...)
		}
		return appendNumber(dst, v.Num)
	case String:
		return AppendString(dst, v.Str)
	case Array:
		return v.appendArray(dst)
	case Object:
		return v.appendObject(dst)
	}
	return append(dst, "null"...)
}

func (v *Value) appendArray(dst []byte) []byte {
	dst = append(dst, '[')
	for i := range v.Elems {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = v.Elems[i].append(dst)
	}
	return append(dst, ']')
}

func (v *Value) appendObject(dst []byte) []byte {
	dst = append(dst, '{')
	var few [smallObject]int32
	order := few[:0] // a tree that others read is never changed, and indices are smaller than members
	for i := range v.Members {
		order = append(order, int32(i))
	}
	slices.SortFunc(order, func(a, b int32) int { return compareUTF16(v.Members[a].Key, v.Members[b].Key) })
	for n, i := range order {
		if n > 0 {
			dst = append(dst, ',')
		}
		m := &v.Members[i]
		dst = AppendString(dst, m.Key)
		dst = append(dst, ':')
		dst = m.Value.append(dst)
	}
	return append(dst, '}')
}

// AppendString appends s as a canonical JSON string, quotation marks included. A byte that is not UTF-8 becomes U+FFFD.
func AppendString(dst []byte, s string) []byte { return jsonscan.AppendText(dst, s) }

// appendNumber writes f as ECMAScript's Number::toString does: the shortest digits that read back as f, plain from 1e-6
// up to 1e21, else with an exponent.
func appendNumber(dst []byte, f float64) []byte {
	switch abs := math.Abs(f); {
	case math.IsNaN(f) || math.IsInf(f, 0):
		return append(dst, "null"...)
	case f == 0:
		return append(dst, '0') // minus zero too
	case abs >= 1e-6 && abs < 1e21:
		return strconv.AppendFloat(dst, f, 'f', -1, 64)
	}
	dst = strconv.AppendFloat(dst, f, 'e', -1, 64)
	// Go pads the exponent to two digits, ECMAScript does not.
	if n := len(dst); dst[n-2] == '0' && (dst[n-3] == '-' || dst[n-3] == '+') {
		dst[n-2] = dst[n-1]
		dst = dst[:n-1]
	}
	return dst
}

// compareUTF16 orders two UTF-8 strings by their UTF-16 code units. That is the order of the bytes, but for runes beyond
// U+FFFF: their first unit is a surrogate, which comes before U+E000 to U+FFFF.
func compareUTF16(a, b string) int {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	if i == len(a) || i == len(b) {
		return len(a) - len(b)
	}
	for i > 0 && !utf8.RuneStart(a[i]) {
		i--
	}
	ra, _ := utf8.DecodeRuneInString(a[i:])
	rb, _ := utf8.DecodeRuneInString(b[i:])
	if wide := ra > 0xFFFF; wide != (rb > 0xFFFF) {
		if wide {
			ra = 0xD800
		} else {
			rb = 0xD800
		}
		return int(ra) - int(rb)
	}
	return strings.Compare(a[i:], b[i:])
}

// What a double holds of a number in decimal: any number of maxExact significant digits reads back as it was written, and
// every double is told from all others by maxShortest of them.
const (
	maxExact    = 15
	maxShortest = 17
)

// Holds reports whether f, the double nearest to a JSON number, stands for that number as it is written. Where it does not,
// RFC 8785 would write another one, so the canonical form is the number's own text:
//
//   - an integer (no point, no exponent) whose digits are not those that RFC 8785 writes for f, but for zeros at the end:
//     9007199254740993, of which a double makes 9007199254740992;
//   - any other number of more than 17 significant digits, which nothing writes that holds a double.
//
// A number too small for a double is 0, as the RFC has it.
func Holds(f float64, number string) bool {
	if len(number) <= maxExact || f == 0 {
		return true
	}
	digits, integer := significant(number)
	if digits <= maxExact || !integer {
		return digits <= maxShortest
	}
	var buf [32]byte
	return string(strconv.AppendFloat(buf[:0], f, 'f', -1, 64)) == number
}

// significant counts the digits of a JSON number without the zeros before and behind, and says whether it is written as an
// integer.
func significant(number string) (digits int, integer bool) {
	integer = true
	zeros := 0
	for i := range len(number) {
		switch c := number[i]; {
		case c == 'e' || c == 'E':
			return digits, false
		case c == '.':
			integer = false
		case c == '0' && digits > 0:
			zeros++
		case c >= '1' && c <= '9':
			digits += zeros + 1
			zeros = 0
		}
	}
	return digits, integer
}

// MaxDepth is how deeply arrays and objects may nest.
const MaxDepth = 1000

// An Error says why a text is refused and where.
type Error struct {
	Offset int    // in bytes, from the start of the source
	Reason string // for people
}

func (e *Error) Error() string { return fmt.Sprintf("json, byte %d: %s", e.Offset, e.Reason) }

// Canonical returns the canonical form of the one JSON value in src. The error is an *Error.
func Canonical(src []byte) ([]byte, error) { return Append(make([]byte, 0, len(src)), src) }

// Append appends the canonical form of the one JSON value in src to dst. The error is an *Error; dst is then returned as
// it came.
func Append(dst, src []byte) ([]byte, error) {
	v, err := Parse(src)
	if err != nil {
		return dst, err
	}
	return v.Append(dst), nil
}

// Parse reads the one JSON value in src. The error is an *Error.
func Parse(src []byte) (Value, error) {
	err := jsonscan.ValidUTF8(src)
	if err == nil {
		p := parser{src: string(src)}
		p.s.Reset(src)
		v := p.value(0)
		if err = p.s.End(); err == nil {
			return v, nil
		}
	}
	var wrong *jsonscan.SyntaxError
	errors.As(err, &wrong)
	return Value{}, &Error{int(wrong.Offset), wrong.Err.Error()}
}

type parser struct {
	s   jsonscan.Scanner
	src string // the same, for strings to be parts of
	// Of the objects and arrays that are open, one above another, so that each is allocated once and no larger than it is.
	members []Member
	elems   []Value
}

func (p *parser) value(depth int) Value {
	switch c := p.s.Peek(); c {
	case '{', '[':
		if depth == MaxDepth {
			p.s.Fail("nested deeper than %d", MaxDepth)
			return Value{}
		}
		if c == '{' {
			return p.object(depth + 1)
		}
		return p.array(depth + 1)
	case '"':
		return Value{Kind: String, Str: p.text()}
	case 't', 'f':
		return Value{Kind: Bool, Bool: p.s.Bool()}
	case 'n':
		p.s.Null()
		return Value{}
	}
	return p.number()
}

func (p *parser) array(depth int) Value {
	from := len(p.elems)
	for p.s.Begin('['); p.s.More(']'); {
		e := p.value(depth)
		p.elems = append(p.elems, e)
	}
	all := slices.Clone(p.elems[from:])
	p.elems = p.elems[:from]
	return Value{Kind: Array, Elems: all}
}

func (p *parser) object(depth int) Value {
	from := len(p.members)
	var keys map[string]bool
	for p.s.Begin('{'); p.s.More('}'); {
		p.s.Peek()
		at := p.s.Mark()
		key := p.text()
		own := p.members[from:]
		if keys == nil && len(own) == smallObject { // more are not looked through one by one
			keys = make(map[string]bool, 2*smallObject)
			for i := range own {
				keys[own[i].Key] = true
			}
		}
		if keys[key] || keys == nil && slices.ContainsFunc(own, func(m Member) bool { return m.Key == key }) {
			p.s.Back(at)
			p.s.Fail("key %q a second time in one object", key)
		}
		if keys != nil {
			keys[key] = true
		}
		p.s.Colon()
		m := Member{key, p.value(depth)}
		p.members = append(p.members, m)
	}
	all := slices.Clone(p.members[from:])
	p.members = p.members[:from]
	return Value{Kind: Object, Members: all}
}

const smallObject = 16

// text reads a string. One without escapes is a part of the source.
func (p *parser) text() string {
	p.s.Peek()
	at, from := p.s.Mark(), p.s.Offset()
	b := p.s.TextBytes()
	raw := p.s.Since(from)
	if len(raw) == len(b)+2 {
		return p.src[from+1 : from+1+len(b)]
	}
	if p.s.Half() {
		p.s.Back(at)
		p.s.Fail("half of a surrogate pair")
	}
	return string(b)
}

func (p *parser) number() Value {
	at := p.s.Mark()
	text := string(p.s.Number())
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		p.s.Back(at)
		p.s.Fail("a number beyond the range of a double")
	}
	if Holds(f, text) {
		text = ""
	}
	return Value{Kind: Number, Num: f, Str: text}
}

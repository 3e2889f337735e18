package canonjson

import (
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

// Package chars tells the characters of texts that are looked through byte by byte: sets of them, where words begin, and by three bytes
// whether anything may begin at a place at all (Filter).
package chars

// A Set is a set of bytes.
type Set [256]bool

// NewSet returns the ASCII letters and digits and the bytes of others.
func NewSet(others string) *Set {
	var s Set
	for c := '0'; c <= 'z'; c++ {
		s[c] = IsAlnum(byte(c))
	}
	for i := range len(others) {
		s[others[i]] = true
	}
	return &s
}

// The sets that more than one rule uses.
var (
	Alnum  = NewSet("")
	Word   = NewSet("_")
	Token  = NewSet("_-")
	Bearer = NewSet("_-.~+/=")
	Base64 = NewSet("+/=")
	Name   = NewSet("_-.")
	Digits = func() *Set {
		var s Set
		for c := '0'; c <= '9'; c++ {
			s[c] = true
		}
		return &s
	}()
)

// Run returns the end of the run of set at i.
func (set *Set) Run(b []byte, i int) int {
	for i < len(b) && set[b[i]] {
		i++
	}
	return i
}

// IsDigit and those below tell the kinds of ASCII.
func IsDigit(c byte) bool { return c-'0' < 10 }

// IsLower tells a small letter.
func IsLower(c byte) bool { return c >= 'a' && c <= 'z' }

// IsUpper tells a capital.
func IsUpper(c byte) bool { return c >= 'A' && c <= 'Z' }

// IsLetter tells a letter.
func IsLetter(c byte) bool { return IsLower(c | 0x20) }

// IsAlnum tells a letter or a digit.
func IsAlnum(c byte) bool { return IsDigit(c) || IsLetter(c) }

// IsHex tells a hex digit.
func IsHex(c byte) bool { return IsDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'f' }

// IsLowerHex tells one in lower case.
func IsLowerHex(c byte) bool { return IsDigit(c) || c >= 'a' && c <= 'f' }

// IsBlank tells a blank, a tab or the end of a line.
func IsBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// Unhex returns the value of a hex digit.
func Unhex(c byte) byte {
	if IsDigit(c) {
		return c - '0'
	}
	return c | 0x20 - 'a' + 10
}

// Mixture counts the digits and the letters of b.
func Mixture[T string | []byte](b T) (digits, letters int) {
	for i := range len(b) {
		switch c := b[i]; {
		case IsDigit(c):
			digits++
		case IsLetter(c):
			letters++
		}
	}
	return digits, letters
}

// HasPrefix tells whether s stands at i.
func HasPrefix(b []byte, i int, s string) bool {
	return len(b)-i >= len(s) && string(b[i:i+len(s)]) == s
}

// LookBehind is how far Boundary looks back from where it stands, in bytes. A stream keeps so many after it passed them on.
const LookBehind = 16

// Boundary tells whether a word can begin at i: no letter, digit or underscore stands before it, or one that is the end of an escape
// (\n and \u003c of JSON, %3D of a URL, a colour of a terminal).
func Boundary(b []byte, i int) bool {
	return i == 0 || !Word[b[i-1]] || AfterEscape(b[max(0, i-LookBehind):i])
}

// AfterEscape tells whether what ends in before ends in an escape.
func AfterEscape(before []byte) bool {
	n := len(before)
	at := func(back int) byte {
		if back > n {
			return 0
		}
		return before[n-back]
	}
	switch last := at(1); {
	case at(2) == '\\' && (last == 'n' || last == 'r' || last == 't' || last == 'b' || last == 'f'):
		return true
	case at(3) == '%' && IsHex(at(2)) && IsHex(last):
		return true
	case at(6) == '\\' && at(5) == 'u' && IsHex(at(4)) && IsHex(at(3)) && IsHex(at(2)) && IsHex(last):
		return true
	case last == 'm' || last == 'K' || last == 'G' || last == 'H':
		return afterParameters(before[:n-1])
	}
	return false
}

// afterParameters tells whether b ends in the introducer and the parameters of a terminal's control sequence. The introducer may stand
// as a byte or escaped (\u001b, \x1b, \033, \e).
func afterParameters(b []byte) bool {
	for len(b) > 0 && (IsDigit(b[len(b)-1]) || b[len(b)-1] == ';') {
		b = b[:len(b)-1]
	}
	n := len(b)
	if n < 2 || b[n-1] != '[' {
		return false
	}
	c := b[n-2]
	return c == 0x1b || c == 'b' || c == 'B' || c == '3' || c == 'e'
}

// UUIDLen is the length of a UUID in bytes.
const UUIDLen = 36

// UUIDAt returns the end of the UUID at i: 8-4-4-4-12 hex digits.
func UUIDAt(b []byte, i int) (end int, ok bool) {
	const dashes = 1<<8 | 1<<13 | 1<<18 | 1<<23
	if len(b)-i < UUIDLen || b[i+8] != '-' {
		return 0, false
	}
	for k, c := range b[i : i+UUIDLen] {
		if dash := dashes>>k&1 == 1; dash != (c == '-') || !dash && !IsHex(c) {
			return 0, false
		}
	}
	return i + UUIDLen, true
}

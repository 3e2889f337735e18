package scrub

// An outcome is what a matcher found out about one place of a text.
type outcome uint8

const (
	miss outcome = iota
	hit
	more // undecided: it depends on bytes that have not come yet
)

// A text is what is scanned: the whole, or what has come of a stream so far.
type text struct {
	b       []byte
	final   bool // nothing follows
	streams bool // it is a stream of server-sent events
}

// ended is the outcome of a matcher that came to the end of the text while all fitted.
func (t text) ended() outcome {
	if t.final {
		return miss
	}
	return more
}

// endedOr is o, or more where something may follow.
func (t text) endedOr(o outcome) outcome {
	if t.final {
		return o
	}
	return more
}

// literal tells whether lit stands at i.
func (t text) literal(i int, lit string) outcome {
	rest := t.b[min(i, len(t.b)):]
	if len(rest) >= len(lit) {
		if string(rest[:len(lit)]) == lit {
			return hit
		}
		return miss
	}
	if string(rest) == lit[:len(rest)] {
		return t.ended()
	}
	return miss
}

// literalFold is literal for a lowercase lit, whatever the case of the text.
func (t text) literalFold(i int, lit string) outcome {
	for k := range len(lit) {
		if i+k >= len(t.b) {
			return t.ended()
		}
		c := t.b[i+k]
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		if c != lit[k] {
			return miss
		}
	}
	return hit
}

// run returns the end of the longest run of set at i. Its outcome is a miss where the run is longer than limit bytes.
func (t text) run(i int, set *charset, limit int) (end int, o outcome) {
	end = i
	for end < len(t.b) && set[t.b[end]] {
		if end++; end-i > limit {
			return end, miss
		}
	}
	if end == len(t.b) && !t.final {
		return end, more
	}
	return end, hit
}

// A charset is a set of bytes.
type charset [256]bool

// newSet returns the ASCII letters and digits and the bytes of others.
func newSet(others string) *charset {
	var s charset
	for c := '0'; c <= 'z'; c++ {
		s[c] = isAlnum(byte(c))
	}
	for i := range len(others) {
		s[others[i]] = true
	}
	return &s
}

var (
	alnum       = newSet("")
	wordChars   = newSet("_")
	tokenChars  = newSet("_-")
	bearerChars = newSet("_-.~+/=")
	base64Chars = newSet("+/=")
)

func isDigit(c byte) bool { return c-'0' < 10 }

func isAlnum(c byte) bool { return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'z' }

func isHex(c byte) bool { return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'f' }

func isLowerHex(c byte) bool { return isDigit(c) || c >= 'a' && c <= 'f' }

// unhex returns the value of a hex digit.
func unhex(c byte) byte {
	if isDigit(c) {
		return c - '0'
	}
	return c | 0x20 - 'a' + 10
}

// lookBehind is how far a matcher looks back from where it stands, in bytes. A stream keeps so many after it passed
// them on.
const lookBehind = 16

// boundary tells whether a word can begin at i: no letter, digit or underscore stands before it, or one that is the end
// of an escape (\n and \u003c of JSON, %3D of a URL, a colour of a terminal).
func boundary(b []byte, i int) bool {
	if i == 0 || !wordChars[b[i-1]] {
		return true
	}
	return afterEscape(b[max(0, i-lookBehind):i])
}

func afterEscape(before []byte) bool {
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
	case at(3) == '%' && isHex(at(2)) && isHex(last):
		return true
	case at(6) == '\\' && at(5) == 'u' && isHex(at(4)) && isHex(at(3)) && isHex(at(2)) && isHex(last):
		return true
	case last == 'm' || last == 'K' || last == 'G' || last == 'H':
		return afterParameters(before[:n-1])
	}
	return false
}

// afterParameters tells whether b ends in the introducer and the parameters of a terminal's control sequence. The
// introducer may stand as a byte or escaped (\u001b, \x1b, \033, \e).
func afterParameters(b []byte) bool {
	for len(b) > 0 && (isDigit(b[len(b)-1]) || b[len(b)-1] == ';') {
		b = b[:len(b)-1]
	}
	n := len(b)
	if n < 2 || b[n-1] != '[' {
		return false
	}
	c := b[n-2]
	return c == 0x1b || c == 'b' || c == 'B' || c == '3' || c == 'e'
}

// uuidAt returns the end of the UUID at i: 8-4-4-4-12 hex digits.
func uuidAt(b []byte, i int) (end int, ok bool) {
	const dashes = 1<<8 | 1<<13 | 1<<18 | 1<<23
	if len(b)-i < uuidLen || b[i+8] != '-' {
		return 0, false
	}
	for k, c := range b[i : i+uuidLen] {
		if dash := dashes>>k&1 == 1; dash != (c == '-') || !dash && !isHex(c) {
			return 0, false
		}
	}
	return i + uuidLen, true
}

// wholeText is a text to which nothing is added.
func wholeText(s string) text { return text{b: []byte(s), final: true} }

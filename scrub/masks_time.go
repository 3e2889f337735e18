package scrub

import (
	"bytes"
	"slices"
	"strings"
)

// A cursor reads the parts of a date or a time. After a part that is not there it has failed, and reads nothing more.
type cursor struct {
	b      []byte
	i      int
	failed bool
}

// number reads a number of min to max digits, between low and high.
func (c *cursor) number(minDigits, maxDigits, low, high int) {
	n, start := 0, c.i
	for c.i < len(c.b) && isDigit(c.b[c.i]) && c.i-start < maxDigits {
		n = n*10 + int(c.b[c.i]-'0')
		c.i++
	}
	more := c.i < len(c.b) && isDigit(c.b[c.i])
	c.failed = c.failed || c.i-start < minDigits || more || n < low || n > high
}

func (c *cursor) year()  { c.number(4, 4, 1970, 2099) }
func (c *cursor) month() { c.number(1, 2, 1, 12) }
func (c *cursor) day()   { c.number(1, 2, 1, 31) }

// one reads one byte of set and returns it.
func (c *cursor) one(set string) byte {
	if c.failed || c.i >= len(c.b) || strings.IndexByte(set, c.b[c.i]) < 0 {
		c.failed = true
		return 0
	}
	c.i++
	return c.b[c.i-1]
}

// try reads what f reads, or nothing.
func (c *cursor) try(f func(c *cursor)) bool {
	next := *c
	if f(&next); next.failed {
		return false
	}
	*c = next
	return true
}

// word reads one of the words, or its first three letters.
func (c *cursor) word(full []string) {
	end := c.i
	for end < len(c.b) && isAlnum(c.b[end]) && !isDigit(c.b[end]) {
		end++
	}
	w := string(c.b[c.i:end])
	c.failed = c.failed || !slices.ContainsFunc(full, func(f string) bool { return w == f || len(w) == 3 && f[:3] == w })
	c.i = end
}

// blanks reads one blank or two, as dates with a day of one digit have.
func (c *cursor) blanks() {
	c.one(" ")
	c.try(func(c *cursor) { c.one(" ") })
}

func (c *cursor) comma() { c.try(func(c *cursor) { c.one(",") }) }

// clock reads H:MM:SS with an optional fraction.
func (c *cursor) clock() {
	c.minutes()
	c.one(":")
	c.number(2, 2, 0, 60)
	c.try(func(c *cursor) {
		if c.one(".,") == ',' {
			c.number(3, 3, 0, 999) // as log4j and Python's logging write milliseconds
		} else {
			c.number(1, 9, 0, 999999999)
		}
		c.failed = c.failed || c.i < len(c.b) && wordChars[c.b[c.i]] && c.b[c.i]|0x20 != 'z'
	})
}

func (c *cursor) minutes() {
	c.number(1, 2, 0, 23)
	c.one(":")
	c.number(2, 2, 0, 59)
}

// half reads AM or PM, with a blank before it or the narrow one that ICU puts there.
func (c *cursor) half() {
	if !c.try(func(c *cursor) { c.one(" ") }) && hasPrefix(c.b, c.i, "\u202f") {
		c.i += len("\u202f")
	}
	c.one("AaPp")
	c.one("Mm")
}

func (c *cursor) offset() {
	if c.try(func(c *cursor) { c.one("Zz") }) {
		return
	}
	c.try(func(c *cursor) {
		c.one("+-")
		c.number(2, 4, 0, 2359)
		c.try(func(c *cursor) { c.one(":"); c.number(2, 2, 0, 59) })
	})
}

var (
	weekdays = []string{"Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"}
	months   = []string{"January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
		"November", "December"}
	dateWords  = slices.Concat(weekdays, months)
	dateStarts = firstLetters(dateWords)
)

// firstLetters returns the first three letters of each word.
func firstLetters(words []string) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = w[:3]
	}
	return out
}

// read puts what f reads at i under a name, where a number or a word can begin and end there.
func (p *masking) read(i int, name string, f func(c *cursor)) int {
	c := cursor{b: p.b, i: i}
	if f(&c); c.failed || !p.ends(c.i) || !p.number(i) {
		return i
	}
	if p.goesOn(c.i, "-:.") {
		return i
	}
	p.put(i, c.i, name)
	return c.i
}

func findTimestamp(p *masking, i int) int {
	if j := runOf(p.b, i, digitChars); j == len(p.b) || strings.IndexByte("-/T", p.b[j]) < 0 {
		return i
	}
	return p.read(i, "timestamp", func(c *cursor) {
		if c.try(basicTimestamp) {
			return
		}
		isoDate(c)
		c.one("Tt ")
		if !c.try((*cursor).clock) {
			c.minutes()
		}
		c.offset()
	})
}

func isoDate(c *cursor) {
	c.year()
	sep := c.one("-/")
	c.month()
	c.one(string(sep))
	c.day()
}

// basicTimestamp reads 20261121T070809Z.
func basicTimestamp(c *cursor) {
	c.number(8, 8, 19700101, 20991231)
	c.one("T")
	c.number(6, 6, 0, 235960)
	c.one("Z")
}

func findDate(p *masking, i int) int {
	if p.ofVersion(i) {
		return i
	}
	if !isDigit(p.b[i]) {
		if prefixAt(p.b, i, dateStarts) == "" {
			return i
		}
		return p.read(i, maskDate, wordDate)
	}
	if j := runOf(p.b, i, digitChars); j+1 >= len(p.b) || strings.IndexByte("-/. ", p.b[j]) < 0 || !isAlnum(p.b[j+1]) {
		return i
	}
	for _, form := range []func(c *cursor){isoDate, slashDate, dottedDate, dayMonthYear} {
		if next := p.read(i, maskDate, form); next > i {
			return next
		}
	}
	return i
}

// ofVersion tells whether what begins at i is the value of a version, as api-version=2024-10-21: that is a date that stands.
func (p *masking) ofVersion(i int) bool {
	const name = "version"
	before := p.before(i)
	at := len(bytes.TrimRight(before, "=:\" \\"))
	return bytes.ContainsAny(before[at:], "=:") && at >= len(name) && strings.EqualFold(string(before[at-len(name):at]), name)
}

// slashDate reads 11/21/2026 and 21/11/2026.
func slashDate(c *cursor) {
	c.day()
	c.one("/")
	c.day()
	c.one("/")
	c.year()
}

// dottedDate reads 21.11.2026.
func dottedDate(c *cursor) {
	c.number(2, 2, 1, 31)
	c.one(".")
	c.number(2, 2, 1, 12)
	c.one(".")
	c.year()
}

// dayMonthYear reads 21 Nov 2026.
func dayMonthYear(c *cursor) {
	c.day()
	c.one(" ")
	c.word(months)
	c.comma()
	c.one(" ")
	c.year()
}

// wordDate reads a date that begins with the name of a weekday or a month.
func wordDate(c *cursor) {
	weekday := c.try(func(c *cursor) { c.word(weekdays); c.comma(); c.blanks() })
	if weekday && c.try(dayMonthYear) {
		return
	}
	c.word(months)
	c.blanks()
	c.day()
	switch {
	case c.try(func(c *cursor) { c.comma(); c.blanks(); c.year() }):
	case c.try(clockYear):
	case !weekday:
		c.failed = true
	}
}

// clockYear reads what follows the day in what ls and date print: 07:08 or 07:08:09 UTC 2026.
func clockYear(c *cursor) {
	c.one(" ")
	if !c.try((*cursor).clock) {
		c.minutes()
	}
	c.try(func(c *cursor) { c.one(" "); c.zone() })
	c.try(func(c *cursor) { c.one(" "); c.year() })
}

// zone reads the short name of a time zone.
func (c *cursor) zone() {
	start := c.i
	for c.i < len(c.b) && c.b[c.i] >= 'A' && c.b[c.i] <= 'Z' {
		c.i++
	}
	c.failed = c.failed || c.i-start < 3 || c.i-start > 5
}

func findClock(p *masking, i int) int {
	if j := runOf(p.b, i, digitChars); j == len(p.b) || p.b[j] != ':' {
		return i
	}
	return p.read(i, "time", func(c *cursor) {
		if c.try((*cursor).clock) {
			c.try((*cursor).half)
			return
		}
		c.minutes()
		c.half()
	})
}

var (
	durationNames = []string{"duration_ms", "durationMs", "duration_seconds", "apiDurationMs", "elapsed_ms", "elapsed_seconds",
		"latency_ms", "latencyMs", "totalLatencyMs", "ttft_ms",
		"total_duration", "wall_time_seconds", "wall_time_ms"}
	shortUnits  = []string{"milliseconds", "millisecond", "ms", "\u00b5s", "\u03bcs", "ns"}
	secondUnits = []string{"seconds", "second", "secs", "sec", "s"}
	tookWords   = []string{"in ", "took ", "elapsed ", "elapsed: "}
)

func findDuration(p *masking, i int) int {
	if !isDigit(p.b[i]) {
		start, end := p.named(i, durationNames)
		if start == end {
			return i
		}
		p.put(start, end, maskDuration)
		return end
	}
	end, sure := durationAt(p.b, i)
	if end == i || !sure && !took(p.before(i)) || !p.number(i) || !p.ends(end) {
		return i
	}
	p.put(i, end, maskDuration)
	return end
}

// durationAt returns the end of the duration at i. It is sure of one in ms or less and of one with a fraction: other
// seconds may be a setting.
func durationAt(b []byte, i int) (end int, sure bool) {
	start := i
	for i < len(b) && isDigit(b[i]) {
		i = runOf(b, i, digitChars)
		fraction := false
		if i+1 < len(b) && b[i] == '.' && isDigit(b[i+1]) {
			i, fraction = runOf(b, i+1, digitChars), true
		}
		if hasPrefix(b, i, "us") {
			return i + 2, true
		}
		word := i
		if word < len(b) && b[word] == ' ' {
			word++
		}
		if u := prefixAt(b, word, shortUnits); u != "" {
			return word + len(u), true
		}
		if u := prefixAt(b, word, secondUnits); u != "" {
			return word + len(u), fraction
		}
		if i == len(b) || fraction || b[i] != 'h' && b[i] != 'm' {
			return start, false
		}
		i++
	}
	return start, false
}

// took tells whether the words before a duration say that something took it.
func took(before []byte) bool {
	return slices.ContainsFunc(tookWords, func(w string) bool {
		return bytes.HasSuffix(before, []byte(w)) && boundary(before, len(before)-len(w))
	})
}

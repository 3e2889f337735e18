package masks

import (
	"bytes"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/scrub/internal/chars"
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
	for c.i < len(c.b) && chars.IsDigit(c.b[c.i]) && c.i-start < maxDigits {
		n = n*10 + int(c.b[c.i]-'0')
		c.i++
	}
	more := c.i < len(c.b) && chars.IsDigit(c.b[c.i])
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
	for end < len(c.b) && chars.IsAlnum(c.b[end]) && !chars.IsDigit(c.b[end]) {
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
		c.failed = c.failed || c.i < len(c.b) && chars.Word[c.b[c.i]] && c.b[c.i]|0x20 != 'z'
	})
}

func (c *cursor) minutes() {
	c.number(1, 2, 0, 23)
	c.one(":")
	c.number(2, 2, 0, 59)
}

// half reads AM or PM, with a blank before it or the narrow one that ICU puts there.
func (c *cursor) half() {
	if !c.try(func(c *cursor) { c.one(" ") }) && chars.HasPrefix(c.b, c.i, "\u202f") {
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
	dateWords = slices.Concat(weekdays, months)
)

// read puts what f reads at i under a name, where a number or a word can begin and end there.
func (s *search) read(i int, name string, f func(c *cursor)) int {
	c := cursor{b: s.b, i: i}
	if f(&c); c.failed || !s.ends(c.i) || !s.number(i) {
		return i
	}
	if s.goesOn(c.i, "-:.") {
		return i
	}
	s.take(i, c.i, name)
	return c.i
}

func findTimestamp(s *search, i int) int {
	if j := chars.Digits.Run(s.b, i); j == len(s.b) || strings.IndexByte("-/T", s.b[j]) < 0 {
		return i
	}
	return s.read(i, maskTimestamp, func(c *cursor) {
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

func findDate(s *search, i int) int {
	if s.ofVersion(i) {
		return i
	}
	if !chars.IsDigit(s.b[i]) {
		return s.read(i, maskDate, wordDate)
	}
	if j := chars.Digits.Run(s.b, i); j+1 >= len(s.b) || strings.IndexByte("-/. ", s.b[j]) < 0 || !chars.IsAlnum(s.b[j+1]) {
		return i
	}
	for _, form := range []func(c *cursor){isoDate, slashDate, dottedDate, dayMonthYear} {
		if next := s.read(i, maskDate, form); next > i {
			return next
		}
	}
	return i
}

// ofVersion tells whether what begins at i is the value of a version, as api-version=2024-10-21: that is a date that stands.
func (s *search) ofVersion(i int) bool {
	const name = "version"
	before := s.before(i)
	at := len(bytes.TrimRight(before, "=:\" \\"))
	return bytes.ContainsAny(before[at:], "=:") && at >= len(name) && strings.EqualFold(string(before[at-len(name):at]), name)
}

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

func findClock(s *search, i int) int {
	if j := chars.Digits.Run(s.b, i); j == len(s.b) || s.b[j] != ':' {
		return i
	}
	return s.read(i, maskTime, func(c *cursor) {
		if c.try((*cursor).clock) {
			c.try((*cursor).half)
			return
		}
		c.minutes()
		c.half()
	})
}

var unixNames = []string{
	"create_time", "createTime", "created", "created_at", "createdAt", "updated_at", "updatedAt", "started_at", "startedAt",
	"start_time", "end_time", "expires_at", "expiresAt", "timestamp", "ts", "turn_started_at_unix_ms", "started_at_unix_ms",
	"created_at_unix_ms",
}

func findUnixTime(s *search, i int) int {
	const shortest = 10 // digits of a time in seconds
	start, end := s.named(i, unixNames)
	if end-start < shortest {
		return i
	}
	s.take(start, end, maskUnixTime)
	return end
}

var (
	durationNames = []string{"duration_ms", "durationMs", "duration_seconds", "apiDurationMs", "elapsed_ms", "elapsed_seconds",
		"latency_ms", "latencyMs", "totalLatencyMs", "ttft_ms",
		"total_duration", "wall_time_seconds", "wall_time_ms"}
	tookWords = []string{"in ", "took ", "elapsed ", "elapsed: "}
)

// units of durations, the longer names first.
var units = []struct {
	name string
	ms   float64
}{
	{"milliseconds", 1}, {"millisecond", 1}, {"ms", 1}, {"\u00b5s", 1e-3}, {"\u03bcs", 1e-3}, {"us", 1e-3}, {"ns", 1e-6},
	{"seconds", 1000}, {"second", 1000}, {"secs", 1000}, {"sec", 1000}, {"s", 1000}, {"m", 60_000}, {"h", 3_600_000},
}

func findDuration(s *search, i int) int {
	if !chars.IsDigit(s.b[i]) {
		start, end := s.named(i, durationNames)
		if start == end {
			return i
		}
		s.take(start, end, maskDuration)
		return end
	}
	end, sure := durationAt(s.b, i)
	if end == i || !sure && !took(s.before(i)) || !s.number(i) || !s.ends(end) {
		return i
	}
	s.take(i, end, maskDuration)
	return end
}

// durationAt returns the end of the duration at i. It is sure of one in ms or less and of one with a fraction: other
// seconds may be a setting.
func durationAt(b []byte, i int) (end int, sure bool) {
	start := i
	for i < len(b) && chars.IsDigit(b[i]) {
		i = chars.Digits.Run(b, i)
		fraction := false
		if i+1 < len(b) && b[i] == '.' && chars.IsDigit(b[i+1]) {
			i, fraction = chars.Digits.Run(b, i+1), true
		}
		word := i
		if word < len(b) && b[word] == ' ' {
			word++
		}
		for _, u := range units {
			switch {
			case u.ms > 1000 || !chars.HasPrefix(b, word, u.name) || u.name == "us" && word > i: // 5 us may be five of us
			default:
				return word + len(u.name), fraction || u.ms < 1000
			}
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
		return bytes.HasSuffix(before, []byte(w)) && chars.Boundary(before, len(before)-len(w))
	})
}

package masks

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/lazyregexp"
)

// What the masks of times took out, read.

// A Moment is a span of wall time that a text names, as finely as it does.
type Moment struct {
	From, Unit time.Duration // from 1970 on, or, where Every is not 0, from any multiple of that on
	Every      time.Duration // 0 for a text that names one moment alone
}

// quarter is how far zones lie apart: a text without a date or a zone names a moment of any quarter of an hour.
const quarter = 15 * time.Minute

// MomentOf reads what a mask of times took out.
func MomentOf(mask, text string) (m Moment, ok bool) {
	switch mask {
	case maskUnixTime:
		return unixMoment(text)
	case maskUUID:
		return uuidMoment(text)
	case maskTimestamp, maskTime:
		if c, ok := clockOf(text); ok && c.unit <= time.Second {
			return Moment{From: c.day % quarter, Unit: c.unit, Every: quarter}, true
		}
	}
	return m, false
}

// unixMoment reads seconds with or without a fraction, ms, µs or ns, told by their number of digits.
func unixMoment(text string) (m Moment, ok bool) {
	const seconds, nanos = 10, 19 // digits, since 2001
	whole, fraction, _ := strings.Cut(text, ".")
	digits := whole + fraction
	if len(whole) < seconds || len(digits) > nanos {
		return m, false
	}
	m.Unit = time.Second / pow10(len(digits)-seconds)
	n, err := strconv.ParseInt(digits, 10, 64)
	m.From = time.Duration(n) * m.Unit
	return m, err == nil && m.Unit > 0 && m.From >= 0
}

// uuidMoment reads the ms that a UUID of version 7 begins with (RFC 9562, 5.7).
func uuidMoment(text string) (m Moment, ok bool) {
	const length, version, dash, msEnd = 36, 14, 8, 13
	if len(text) != length || text[version] != '7' {
		return m, false
	}
	ms, err := strconv.ParseInt(text[:dash]+text[dash+1:msEnd], 16, 64)
	return Moment{From: time.Duration(ms) * time.Millisecond, Unit: time.Millisecond}, err == nil && ms <= math.MaxInt64/int64(time.Millisecond)
}

func pow10(n int) (p time.Duration) {
	for p = 1; n > 0; n-- {
		p *= 10
	}
	return p
}

// A clock is a time of day in a text.
type clock struct {
	day, unit time.Duration // since midnight, as finely as it is written
}

var clockText = lazyregexp.New(`(?:^|[^0-9])(([0-9]{1,2})(?::([0-9]{2})(?::([0-9]{2})(?:[.,]([0-9]{1,9}))?)?|[_-]([0-9]{2})[_-]([0-9]{2})))(?:[^0-9]|$)`)

// clockOf reads the last time of day in a text, for a date may be written alike.
func clockOf(text string) (c clock, ok bool) {
	found := clockText.FindAllSubmatchIndex([]byte(text), -1)
	if len(found) == 0 {
		return c, false
	}
	at := found[len(found)-1]
	group := func(n int) string { return text[max(at[2*n], 0):max(at[2*n+1], 0)] }
	number := func(digits string) time.Duration {
		n, _ := strconv.Atoi(digits) // none is 0
		return time.Duration(n)
	}
	minutes, seconds, fraction := group(3)+group(6), group(4)+group(7), group(5)
	c.unit = time.Second / pow10(len(fraction))
	if seconds == "" {
		c.unit = time.Minute
	}
	c.day = number(group(2))*time.Hour + number(minutes)*time.Minute + number(seconds)*time.Second + number(fraction)*c.unit
	return c, true
}

// Has reports whether a time, in ns since 1970, is of the moment.
func (m Moment) Has(ns int64) bool {
	since := time.Duration(ns) - m.From
	if m.Every != 0 {
		since = (since%m.Every + m.Every) % m.Every
	}
	return since >= 0 && since < m.Unit
}

// Milliseconds reads what the mask of durations took out of text, from start to end. A number without a unit is in ms, but behind a
// name that says otherwise. round says that it is written as a person writes a setting: 300, 9000.
func Milliseconds(text []byte, start, end int) (ms float64, round bool) {
	s := string(text[start:end])
	round = !strings.Contains(s, ".")
	for s != "" {
		n := strings.IndexFunc(s, func(r rune) bool { return r != '.' && (r < '0' || r > '9') })
		if n < 0 {
			n = len(s)
		}
		value, err := strconv.ParseFloat(s[:n], 64)
		if err != nil {
			return ms, false
		}
		round = round && n > 2 && strings.HasSuffix(s[:n], "00") // a measured time seldom does, though it may well be one second or nine
		rest := strings.TrimLeft(s[n:], " ")
		unit, width := unitOf(rest, text[:start])
		ms += value * unit
		s = rest[width:]
	}
	return ms, round
}

func unitOf(rest string, before []byte) (ms float64, width int) {
	for _, u := range units {
		if strings.HasPrefix(rest, u.name) {
			return u.ms, len(u.name)
		}
	}
	switch name := strings.ToLower(nameBefore(before)); {
	case name == ollamaDuration:
		return 1e-6, len(rest)
	case strings.HasSuffix(name, "milliseconds"):
	case strings.HasSuffix(name, "seconds"), strings.HasSuffix(name, "secs"):
		return 1000, len(rest)
	}
	return 1, len(rest)
}

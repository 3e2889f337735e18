package scrub

import (
	"math/big"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/lazyregexp"
)

// A Moment is a span of wall time that a text names, as finely as it does.
type Moment struct {
	From, Unit time.Duration // from 1970 on, or, where Every is not 0, from any multiple of that on
	Every      time.Duration // 0 for a text that names one moment alone
}

// MomentOf reads what a mask of times took out. A text without a date or a zone names a moment of any quarter of an hour: zones lie that
// far apart.
func MomentOf(mask, text string) (m Moment, ok bool) {
	switch mask {
	case "unix-time":
		return unixMoment(text)
	case "timestamp", "time":
		return clockMoment(text)
	}
	return m, false
}

// unixMoment reads seconds with or without a fraction, ms, µs or ns, told by their number of digits.
func unixMoment(text string) (m Moment, ok bool) {
	whole, fraction, _ := strings.Cut(text, ".")
	const seconds, nanos = 10, 19 // digits, since 2001
	digits := whole + fraction
	if len(whole) < seconds || len(digits) > nanos {
		return m, false
	}
	m.Unit = time.Second
	for range len(digits) - seconds {
		m.Unit /= 10
	}
	n, ok := new(big.Int).SetString(digits, 10)
	if !ok || !n.IsInt64() || m.Unit == 0 {
		return m, false
	}
	m.From = time.Duration(n.Int64()) * m.Unit
	return m, m.From >= 0
}

const quarter = 15 * time.Minute

var clockText = lazyregexp.New(`(?:^|[^0-9])([0-9]{1,2})[:_-]([0-9]{2})[:_-]([0-9]{2})(?:[.,]([0-9]{1,9}))?(?:[^0-9]|$)`)

// clockMoment reads the time of day in a text.
func clockMoment(text string) (m Moment, ok bool) {
	found := clockText.FindAllStringSubmatch(text, -1)
	if len(found) == 0 {
		return m, false
	}
	t := found[len(found)-1] // a date may be written alike
	m = Moment{Unit: time.Second, Every: quarter}
	value, ok := new(big.Int).SetString("0"+t[4], 10)
	for range len(t[4]) {
		m.Unit /= 10
	}
	for i, unit := range []time.Duration{time.Hour, time.Minute, time.Second} {
		n, _ := new(big.Int).SetString(t[i+1], 10)
		m.From += time.Duration(n.Int64()) * unit
	}
	m.From = (m.From + time.Duration(value.Int64())*m.Unit) % quarter
	return m, ok
}

// Has reports whether a time, in ns since 1970, is of the moment.
func (m Moment) Has(ns int64) bool {
	since := time.Duration(ns) - m.From
	if m.Every != 0 {
		since = (since%m.Every + m.Every) % m.Every
	}
	return since >= 0 && since < m.Unit
}

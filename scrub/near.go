package scrub

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/lazyregexp"
)

// apart is how far two times of one moment may lie apart at most.
const apart = time.Minute

// Near tells whether two values that the mask took out may be times of one moment between from and to. Of a time of day that is any
// day's and, since nobody says which zone it is of, any quarter of an hour; all that stands around it must be equal.
func Near(mask, was, now string, from, to time.Time) bool {
	switch mask {
	case "unix-time":
		a, okA := unixTime(was)
		b, okB := unixTime(now)
		return okA && okB && a.Sub(b).Abs() <= apart && within(a, from, to) && within(b, from, to)
	case "timestamp", "time", maskDate:
	default:
		return false
	}
	a, restA, okA := timeOfDay(was)
	b, restB, okB := timeOfDay(now)
	return okA && okB && restA == restB && (a-b).Abs() <= apart && inQuarter(a, from, to) && inQuarter(b, from, to)
}

// grain is by how much what is written in whole seconds may lie outside.
const grain = time.Second

func within(t, from, to time.Time) bool {
	return !t.Before(from.Add(-grain)) && !t.After(to.Add(grain))
}

// inQuarter is within where the hour is not known.
func inQuarter(day time.Duration, from, to time.Time) bool {
	began := time.Duration(from.Add(-grain).UnixNano()) % quarter
	return (day%quarter-began+quarter)%quarter <= to.Sub(from)+2*grain
}

// unixTime reads seconds, with a fraction or without, or ms, µs or ns, by how many digits there are.
func unixTime(s string) (time.Time, bool) {
	whole, _, _ := strings.Cut(s, ".")
	seconds, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return time.Time{}, false
	}
	const digits = 10 // of seconds
	seconds /= math.Pow10(max(0, len(whole)-digits))
	return time.UnixMilli(int64(seconds * 1000)), true
}

var clock = lazyregexp.New(`([0-9]{1,2}):([0-9]{2})(?::([0-9]{2})(?:[.,][0-9]{1,9})?)?`)

// timeOfDay reads the time of day in s, and returns what stands around it.
func timeOfDay(s string) (day time.Duration, rest string, ok bool) {
	found := clock.FindStringSubmatch(s)
	if found == nil {
		return 0, "", false
	}
	for i, unit := range []time.Duration{time.Hour, time.Minute, time.Second} {
		n, _ := strconv.Atoi(found[i+1]) // digits, or nothing
		day += time.Duration(n) * unit
	}
	before, after, _ := strings.Cut(s, found[0])
	return day, before + "\x00" + after, true
}

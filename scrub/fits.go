package scrub

import (
	"bytes"
	"strconv"
	"strings"
)

// Fits tells whether two values that the mask takes out at one place of two texts may be what it is for. An id or a temporary name
// is told by its letters, and not each by itself, where a made-up one may hold no digit: one of both must look made up.
func Fits(mask, was, now string) bool {
	switch mask {
	case maskID, maskTempName:
		return looksMadeUp(was) || looksMadeUp(now)
	}
	return true
}

// looksMadeUp tells a random word from one that a person wrote: digits among letters, a long row of digits, capitals among small
// letters without the humps of a name, an underscore among eight characters as Python's tempfile makes them.
func looksMadeUp(word string) bool {
	digits, letters := mixture([]byte(word))
	const minDigits = 8
	return digits > 0 && letters > 0 || digits >= minDigits || mixedCase([]byte(word)) || len(word) == pythonName-len("tmp") && strings.Contains(word, "_")
}

// Names tells whether what the mask takes out names something made up anew in each run (a UUID, an id, a temporary name): two
// that are equal name the same. A time does not, and numbers of processes and ports are equal by chance.
func Names(mask string) bool { return sayings[mask] == ofNames && mask != maskPID && mask != maskPort }

// IsPath tells whether the mask takes out a path that is the same in all of a run.
func IsPath(mask string) bool { return sayings[mask] == ofPlace }

// Unrepeatable tells whether the mask takes out what no replay gives again, though it gives time and randomness: how many links a
// directory has, which is now the 1 of an overlay, which lines a program logs by chance, and what is drawn from a generator that each
// thread of a pool has of its own, whichever of them comes to draw.
func Unrepeatable(mask, now string) bool {
	return mask == maskLinks && strings.TrimSpace(now) == "1" || mask == maskChunkID || ofLines(mask)
}

// IsDuration tells whether the mask takes out how long something took.
func IsDuration(mask string) bool { return mask == maskDuration }

// units of durations in ms, the longer names first.
var units = []struct {
	names []string
	ms    float64
}{
	{[]string{"milliseconds", "millisecond", "ms"}, 1},
	{[]string{"\u00b5s", "\u03bcs", "us"}, 1e-3},
	{[]string{"ns"}, 1e-6},
	{secondUnits, 1000},
	{[]string{"m"}, 60_000},
	{[]string{"h"}, 3_600_000},
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
		round = round && isRound(s[:n])
		rest := strings.TrimLeft(s[n:], " ")
		unit, width := unitOf(rest, text[:start])
		ms += value * unit
		s = rest[width:]
	}
	return ms, round
}

// isRound tells whether digits end in two zeros or more: a measured time seldom does, though it may well be one second or nine.
func isRound(digits string) bool { return len(digits) > 2 && strings.HasSuffix(digits, "00") }

func unitOf(rest string, before []byte) (ms float64, width int) {
	for _, u := range units {
		for _, name := range u.names {
			if strings.HasPrefix(rest, name) {
				return u.ms, len(name)
			}
		}
	}
	named := before[max(0, len(before)-len("total_duration\\\": ")):]
	switch {
	case bytes.Contains(named, []byte("seconds")):
		return 1000, len(rest)
	case bytes.Contains(named, []byte("total_duration")):
		return 1e-6, len(rest)
	}
	return 1, len(rest)
}

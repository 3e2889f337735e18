package masks

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/internal/lazyregexp"
	"github.com/tapedeck-dev/tapedeck/scrub/internal/chars"
)

// What times are written of.
const (
	year     = `(?:19[7-9][0-9]|20[0-9]{2})`
	month    = `(?:1[0-2]|0?[1-9])`
	day      = `(?:3[01]|[12][0-9]|0?[1-9])`
	minutes  = `(?:2[0-3]|[01]?[0-9]):[0-5][0-9]`
	seconds  = minutes + `:(?:[0-5][0-9]|60)(?:,[0-9]{3}|\.[0-9]{1,9})?` // log4j and Python's logging write a comma
	offset   = `(?:[Zz]|[+-][0-9]{2,4}(?::[0-9]{2})?)?`
	half     = `(?: |\x{202f})?[AaPp][Mm]` // ICU puts a narrow blank there
	isoDate  = year + `(?:-` + month + `-` + day + `|/` + month + `/` + day + `)`
	compact  = year + `[0-9]{4}T(?:2[0-3]|[01][0-9])[0-5][0-9](?:[0-5][0-9]|60)Z`
	weekName = `(?:Mon(?:day)?|Tue(?:sday)?|Wed(?:nesday)?|Thu(?:rsday)?|Fri(?:day)?|Sat(?:urday)?|Sun(?:day)?)`
	monthOf  = `(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|Jun(?:e)?|Jul(?:y)?|Aug(?:ust)?|Sep(?:tember)?|Oct(?:ober)?|` +
		`Nov(?:ember)?|Dec(?:ember)?)`
	dayFirst = day + ` ` + monthOf + `,? ` + year
	dayLast  = monthOf + ` {1,2}` + day
	// behindDay is a year, or what ls and date print: 07:08 or 07:08:09 UTC 2026.
	behindDay = `(?:,? {1,2}` + year + `| (?:` + seconds + `|` + minutes + `)(?: [A-Z]{3,5})?(?: ` + year + `)?)`
)

// dateWords are what dates in words begin with.
var dateWords = []string{"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun", "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"}

// timeEnds is what may stand behind a time: no word, and nothing that goes on with it, as a mask may.
const timeEnds = `(?:[^\w.:-]|[.:-](?:[^A-Za-z0-9<]|$)|$)`

var (
	timestamps = written(maskTimestamp, isoDate+`[Tt ](?:`+seconds+`|`+minutes+`)`+offset+`|`+compact)
	dates      = written(maskDate, isoDate+`|`+day+`/`+day+`/`+year+`|(?:0[1-9]|[12][0-9]|3[01])\.(?:0[1-9]|1[0-2])\.`+year+`|`+dayFirst)
	wordDates  = written(maskDate, weekName+`,? {1,2}(?:`+dayFirst+`|`+dayLast+behindDay+`?)|`+dayLast+behindDay)
	clocks     = written(maskTime, seconds+`(?:`+half+`)?|`+minutes+half)
)

func written(mask, form string) func(s *search, i int) int {
	return shape(mask, (*search).number, nil, `(`+form+`)`+timeEnds)
}

// behindDigits tells whether one of signs stands behind the digits at i.
func (s *search) behindDigits(i int, signs string) bool {
	end := chars.Digits.Run(s.b, i)
	return end < len(s.b) && strings.IndexByte(signs, s.b[end]) >= 0
}

func findTimestamp(s *search, i int) int {
	if !s.behindDigits(i, "-/T") {
		return i
	}
	return timestamps(s, i)
}

func findDate(s *search, i int) int {
	switch {
	case s.ofVersion(i):
		return i
	case !chars.IsDigit(s.b[i]):
		return wordDates(s, i)
	case !s.behindDigits(i, "-/. "):
		return i
	}
	return dates(s, i)
}

func findClock(s *search, i int) int {
	if !s.behindDigits(i, ":") {
		return i
	}
	return clocks(s, i)
}

// ofVersion tells whether what begins at i is the value of a version, as api-version=2024-10-21: that is a date that stands.
func (s *search) ofVersion(i int) bool {
	const name = "version"
	before := s.before(i)
	at := len(bytes.TrimRight(before, "=:\" \\"))
	return bytes.ContainsAny(before[at:], "=:") && at >= len(name) && strings.EqualFold(string(before[at-len(name):at]), name)
}

var unixNames = []string{
	"create_time", "createTime", "created", "created_at", "createdAt", "updated_at", "updatedAt", "started_at", "startedAt",
	"start_time", "end_time", "expires_at", "expiresAt", "timestamp", "ts", "turn_started_at_unix_ms", "started_at_unix_ms",
	"created_at_unix_ms",
}

var tookWords = []string{"in ", "took ", "elapsed ", "elapsed: "}

// A number is a duration behind a name that says what was measured and in which unit: "totalDurationMs": 417. total_duration is Ollama's.
var (
	measures     = []string{"duration", "elapsed", "latency", "ttft", "walltime", "wall_time"}
	measureUnits = []string{"ms", "millis", "milliseconds", "secs", "seconds"}
	number       = lazyregexp.New(`^([0-9]+(?:\.[0-9]+)?)` + wordEnds)
)

const ollamaDuration = "total_duration"

// settings are words of names that say what is wanted, and not what was measured.
var settings = []string{"max", "min", "limit", "timeout", "target", "cache", "ttl"}

// namedDuration returns the end of the number at i where its name says that it is a duration; i where there is none.
func (s *search) namedDuration(i int) int {
	if !isMeasure(nameBefore(s.before(i))) {
		return i
	}
	if m := number.FindSubmatchIndex(s.b[i:]); m != nil {
		return i + m[3]
	}
	return i
}

// nameBefore is the name whose value stands behind b, as "name": in JSON or name=; "" for none.
func nameBefore(b []byte) string {
	const quotes = `\"' `
	b = bytes.TrimRight(b[max(0, len(b)-64):], quotes)
	if len(b) == 0 || b[len(b)-1] != ':' && b[len(b)-1] != '=' {
		return ""
	}
	b = bytes.TrimRight(b[:len(b)-1], quotes)
	return string(b[bytes.LastIndexFunc(b, func(r rune) bool { return r >= utf8.RuneSelf || !chars.Word[byte(r)] })+1:])
}

func isMeasure(name string) bool {
	if name == "" || name[len(name)-1]|0x20 != 's' && name[len(name)-1] != 'n' { // most names
		return false
	}
	name = strings.ToLower(name)
	return name == ollamaDuration || slices.ContainsFunc(measureUnits, func(unit string) bool {
		what, ok := strings.CutSuffix(name, unit)
		what = strings.TrimSuffix(what, "_")
		return ok && slices.ContainsFunc(measures, func(m string) bool { return strings.HasSuffix(what, m) }) &&
			!slices.ContainsFunc(settings, func(word string) bool { return strings.Contains(what, word) })
	})
}

// units of durations, the longer names first.
var units = []struct {
	name string
	ms   float64
}{
	{"milliseconds", 1}, {"millisecond", 1}, {"ms", 1}, {"\u00b5s", 1e-3}, {"\u03bcs", 1e-3}, {"us", 1e-3}, {"ns", 1e-6},
	{"seconds", 1000}, {"second", 1000}, {"secs", 1000}, {"sec", 1000}, {"s", 1000}, {"m", 60_000}, {"h", 3_600_000},
}

func findDuration(s *search, i int) int {
	end, sure := durationAt(s.b, i)
	if end == i || !sure && !took(s.before(i)) || !s.number(i) || !s.ends(end) {
		if end = s.namedDuration(i); end == i {
			return i
		}
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

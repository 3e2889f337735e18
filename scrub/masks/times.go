package masks

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
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
	findTimestamp = written(maskTimestamp, "-/T", isoDate+`[Tt ](?:`+seconds+`|`+minutes+`)`+offset+`|`+compact)
	dates         = written(maskDate, "-/. ", isoDate+`|`+day+`/`+day+`/`+year+`|(?:0[1-9]|[12][0-9]|3[01])\.(?:0[1-9]|1[0-2])\.`+year+`|`+dayFirst)
	wordDates     = written(maskDate, "", weekName+`,? {1,2}(?:`+dayFirst+`|`+dayLast+behindDay+`?)|`+dayLast+behindDay)
	findClock     = written(maskTime, ":", seconds+`(?:`+half+`)?|`+minutes+half)
)

// written finds a form behind whose first digits one of signs stands; "" is for a form that begins with a word.
func written(mask, signs, form string) func(s *search, i int) int {
	find := shape(mask, (*search).number, nil, `(`+form+`)`+timeEnds)
	return func(s *search, i int) int {
		if end := chars.Digits.Run(s.b, i); signs != "" && (end == len(s.b) || strings.IndexByte(signs, s.b[end]) < 0) {
			return i
		}
		return find(s, i)
	}
}

func findDate(s *search, i int) int {
	switch {
	case s.ofVersion(i):
		return i
	case !chars.IsDigit(s.b[i]):
		return wordDates(s, i)
	}
	return dates(s, i)
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

// What the masks of times took out, read.

// A Moment is a span of wall time that a text names, as finely as it does.
type Moment struct {
	Unit  time.Duration
	Rest  string        // what stands around a time of day: the date, the zone
	from  time.Duration // since 1970, or since midnight
	ofDay bool          // of any day and zone
}

const (
	quarter = 15 * time.Minute // how far zones lie apart
	aDay    = 24 * time.Hour
)

// MomentOf reads what a mask of times took out.
func MomentOf(mask, text string) (m Moment, ok bool) {
	switch mask {
	case maskUnixTime:
		return unixMoment(text)
	case maskUUID:
		return uuidMoment(text)
	case maskTimestamp, maskTime:
		if c, ok := clockOf(text); ok && c.unit <= time.Second {
			return Moment{Unit: c.unit, Rest: c.rest, from: c.day, ofDay: true}, true
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
	m.from = time.Duration(n) * m.Unit
	return m, err == nil && m.Unit > 0 && m.from >= 0
}

// uuidMoment reads the ms that a UUID of version 7 begins with (RFC 9562, 5.7).
func uuidMoment(text string) (m Moment, ok bool) {
	const length, version, dash, msEnd = 36, 14, 8, 13
	if len(text) != length || text[version] != '7' {
		return m, false
	}
	ms, err := strconv.ParseInt(text[:dash]+text[dash+1:msEnd], 16, 64)
	return Moment{from: time.Duration(ms) * time.Millisecond, Unit: time.Millisecond}, err == nil && ms <= math.MaxInt64/int64(time.Millisecond)
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
	rest      string        // what stands around it
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
	c.rest = text[:at[2]] + "\x00" + text[at[3]:]
	return c, true
}

// Zone reports whether a time, in ns since 1970, is of the moment, and how far the text's time of day lies from it: by a multiple of a
// quarter of an hour.
func (m Moment) Zone(ns int64) (zone time.Duration, ok bool) {
	ahead := m.from - time.Duration(ns)
	if m.ofDay {
		ahead = (ahead%aDay + aDay) % aDay
		zone = (ahead + quarter - 1) / quarter * quarter
	}
	return zone % aDay, zone-ahead >= 0 && zone-ahead < m.Unit
}

const (
	// apart is how far two times of one moment may lie apart at most.
	apart = time.Minute
	// grain is by how much what is written in whole seconds may lie outside.
	grain = time.Second
)

// Near tells whether two values that the mask took out may be times of one moment between from and to. Of a time of day that is any
// day's and, since nobody says which zone it is of, any quarter of an hour; all that stands around it must be equal.
func Near(mask, was, now string, from, to time.Time) bool {
	began, lasted := time.Duration(from.Add(-grain).UnixNano()), to.Sub(from)+2*grain
	isBetween := func(d, most time.Duration) bool { return d >= 0 && d <= most }
	switch mask {
	case maskUnixTime:
		a, okA := unixMoment(was)
		b, okB := unixMoment(now)
		return okA && okB && (a.from-b.from).Abs() <= apart && isBetween(a.from-began, lasted) && isBetween(b.from-began, lasted)
	case maskTimestamp, maskTime, maskDate:
		a, okA := clockOf(was)
		b, okB := clockOf(now)
		ofQuarter := func(day time.Duration) time.Duration { return (day%quarter - began%quarter + quarter) % quarter }
		return okA && okB && a.rest == b.rest && (a.day-b.day).Abs() <= apart && isBetween(ofQuarter(a.day), lasted) && isBetween(ofQuarter(b.day), lasted)
	}
	return false
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

package masks

import (
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/scrub/internal/chars"
	"github.com/tapedeck-dev/tapedeck/scrub/internal/placeholders"
)

// Info describes a mask for people.
type Info struct {
	Name    string // as in <name>, in Used and in Options.Disabled
	What    string // one line
	Example string // a text in which it replaces something
}

// What a fact that a mask takes out says of the text that it stands in.
type saying uint8

const (
	ofTimes saying = iota // a time, a date, a duration: two of them may be equal by chance
	ofNames               // it names something: two that are equal name the same
	ofPlace               // a path that is the same in all of a run
)

// A mask is a shape in a place.
type mask struct {
	Info
	says            saying
	firsts, seconds string   // its first two bytes: one of each; any byte where seconds is empty
	starts          []string // or texts that it begins with, of two bytes or more
	// find looks for the shape at i, takes what it finds and returns where to go on; i where there is nothing. It is nil
	// where that of another mask finds this one too.
	find func(s *search, i int) int
}

const (
	digits    = "0123456789"
	hexLetter = "abcdefABCDEF"
)

// builtin lists the masks, of those that can begin at one place the longer first.
var builtin = []mask{
	{says: ofNames, Info: Info{maskUUID, "a UUID: 8-4-4-4-12 hex digits", "0b5e0c52-7d3c-4f7e-9d55-0c2a5f2f3c11"},
		firsts: digits + hexLetter, seconds: digits + hexLetter, find: findUUID},
	{says: ofNames, Info: Info{maskID, "what a provider made up to name a call, a message or an item, after its prefix",
		"toolu_01A09q90qw90lq917835lq9"}, starts: slices.Concat(idPrefixes, dashedPrefixes), find: findFirst(shape(maskUUID, begins, idPrefixes, `(`+uuidText+`)`+wordEnds),
		shape(maskID, begins, idPrefixes, `([A-Za-z0-9]{8,})`+wordEnds), shape(maskID, begins, dashedPrefixes, `([\w-]{8,})`+wordEnds))},
	{Info: Info{maskTimestamp, "a date and a time of ISO 8601 or RFC 3339", "2026-11-21T07:08:09.123Z"},
		firsts: "12", seconds: digits, find: findTimestamp},
	{Info: Info{maskDate, "a date with its year, or with its weekday or time, in digits or English",
		"Saturday, November 21, 2026"}, firsts: digits, seconds: digits + "/ ", starts: dateWords, find: findDate},
	{Info: Info{maskTime, "a time of day with seconds, or with AM or PM", "07:08:09"},
		firsts: digits, seconds: digits + ":", find: findClock},
	{Info: Info{maskDuration, "a time that something took: in ms or less, or seconds with a fraction or after \"in\"",
		"3 passed in 0.02 seconds"}, firsts: digits, find: findDuration},
	{Info: Info{maskUnixTime, "a Unix time of 10 digits or more behind a name such as created or timestamp",
		`"create_time":1795244930123`}, starts: unixNames, find: shape(maskUnixTime, begins, unixNames, sign+`([0-9]{10,}(?:\.[0-9]+)?)`+wordEnds)},
	{says: ofNames, Info: Info{maskCacheKey, "the value of prompt_cache_key", `"prompt_cache_key":"019abc"`},
		starts: []string{cacheKey}, find: shape(maskCacheKey, begins, []string{cacheKey}, quoted)},
	{says: ofNames, Info: Info{maskEventID, "the value of event_id, by which a program names what it sends", `"event_id":"evt_9xKf2"`},
		starts: []string{eventID}, find: shape(maskEventID, begins, []string{eventID}, quoted)},
	{says: ofNames, Info: Info{maskPID, "the number after the word pid, ppid or pgid", "pid 12345"},
		starts: pidWords, find: shape(maskPID, begins, pidWords, `[\\"':=# ]{1,8}([0-9]{1,7})`+numberEnds)},
	{Info: Info{maskLinks, "how many hard links ls -l says that a file has: a directory of a replay often has one",
		"drwxr-xr-x 5 anna users 4096 src"}, firsts: "-dlpscb", seconds: "r-", find: findLinks},
	{says: ofNames, Info: Info{maskPort, "the port of a loopback address", "http://127.0.0.1:43117/"},
		starts: loopbacks, find: shape(maskPort, (*search).number, loopbacks, `([0-9]{1,5})`+numberEnds)},
	{says: ofNames, Info: Info{maskTempName, "a made-up part of a name below a temporary directory: of the name right below it every longer word, elsewhere what looks random", "/tmp/build-x7Gh29Kd/out"},
		find: findPath},
	{says: ofPlace, Info: Info{maskHome, "the path of HOME", "/home/user/.config"}},
	{says: ofPlace, Info: Info{maskWorkTree, "the path of the work tree", "/home/user/project/main.go"}},
	{says: ofPlace, Info: Info{maskTemp, "the path of the temporary directory", "/run/user/tmp/x"}},
}

// All lists the built-in masks.
func All() []Info {
	infos := make([]Info, len(builtin))
	for i := range builtin {
		infos[i] = builtin[i].Info
	}
	return infos
}

// A Fact is what Mask takes out of a text. Two texts that compare as equal, but speak of different things, differ in their facts.
type Fact struct {
	Mask string // its name; "" of a placeholder of a secret
	Text string // as it stands; the digits of a placeholder
	// Names says that it names something: a UUID, an id that a provider made up, a process, a port, a temporary name, a secret.
	// A time does not.
	Names bool
}

var sayings = func() map[string]saying {
	by := make(map[string]saying)
	for i := range builtin {
		by[builtin[i].Name] = builtin[i].says
	}
	return by
}()

// Facts returns, in order, what the built-in masks take out of b, known paths aside, and behind them the placeholders of secrets. Of a
// mask that is disabled there is none. Nothing is counted as used. A nil Masker knows the placeholders alone.
func (m *Masker) Facts(b []byte) []Fact {
	var facts []Fact
	for _, k := range m.builtin(b) {
		if says := sayings[k.Mask]; says != ofPlace {
			facts = append(facts, Fact{Mask: k.Mask, Text: string(b[k.Start:k.End]), Names: says == ofNames})
		}
	}
	placeholders.Each(b, func(_, end int) {
		facts = append(facts, Fact{Text: string(b[end-placeholders.HexLen : end]), Names: true})
	})
	return facts
}

// Rename returns b with other names in the place of those that the built-in masks take out of it: what to returns for one, which
// stays where that is "". Placeholders stay. It returns b itself where nothing changes, and never writes to b.
func (m *Masker) Rename(b []byte, to func(name string) string) []byte {
	var out []byte
	done := 0
	for _, k := range m.builtin(b) {
		was := string(b[k.Start:k.End])
		if sayings[k.Mask] != ofNames {
			continue
		}
		if now := to(was); now != "" && now != was {
			out = append(append(out, b[done:k.Start]...), now...)
			done = k.End
		}
	}
	if done == 0 {
		return b
	}
	return append(out, b[done:]...)
}

// Fits tells whether two values that the mask takes out at one place of two texts may be what it is for. An id or a temporary name
// is told by its letters, and not each by itself, where a made-up one may hold no digit: one of both must look made up.
func Fits(mask, was, now string) bool {
	return mask != maskID && mask != maskTempName || looksMadeUp(was) || looksMadeUp(now)
}

// looksMadeUp tells a random word from one that a person wrote: digits among letters, a long row of digits, capitals among small
// letters without the humps of a name, an underscore among eight characters as Python's tempfile makes them.
func looksMadeUp(word string) bool {
	digits, letters := chars.Mixture(word)
	return digits > 0 && letters > 0 || digits >= minDigits || mixedCase(word) || len(word) == pythonName-len("tmp") && strings.Contains(word, "_")
}

// Names tells whether what the mask takes out names something made up anew in each run (a UUID, an id, a temporary name): two
// that are equal name the same. A time does not, and numbers of processes and ports are equal by chance.
func Names(mask string) bool { return sayings[mask] == ofNames && mask != maskPID && mask != maskPort }

// IsPath tells whether the mask takes out a path that is the same in all of a run.
func IsPath(mask string) bool { return sayings[mask] == ofPlace }

// IsDuration tells whether the mask takes out how long something took.
func IsDuration(mask string) bool { return mask == maskDuration }

// Unrepeatable tells whether the mask takes out what no replay gives again, though it gives time and randomness: how many links a
// directory has, which is now the 1 of an overlay.
func Unrepeatable(mask, now string) bool {
	return mask == maskLinks && strings.TrimSpace(now) == "1"
}

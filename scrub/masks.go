package scrub

import "strings"

// MaskInfo describes a mask for people.
type MaskInfo struct {
	Name    string // as in <name>, in Used and in MaskOptions.Disabled
	What    string // one line
	Example string // a text in which it replaces something
}

// The names of masks that more than one shape leads to, or that code refers to.
const (
	maskHome     = "home"
	maskWorkTree = "worktree"
	maskTemp     = "temp"
	maskTempName = "temp-name"
	maskDate     = "date"
	maskDuration = "duration"
	maskChunkID  = "chunk-id"
	maskLinks    = "links"
	maskID       = "id"
	maskPID      = "pid"
	maskPort     = "port"
)

// A mask is a shape in a place.
type mask struct {
	MaskInfo
	firsts, seconds string   // its first two bytes: one of each; any byte where seconds is empty
	starts          []string // or texts that it begins with, of two bytes or more
	// find looks for the shape at i, puts what it finds and returns where to go on; i where there is nothing. It is nil
	// where that of another mask finds this one too.
	find   func(p *masking, i int) int
	always bool // find looks itself which masks are disabled
	says   saying
}

const (
	digits    = "0123456789"
	hexLetter = "abcdefABCDEF"
)

// builtin lists the masks, of those that can begin at one place the longer first.
var builtin = []mask{
	{says: ofNames, MaskInfo: MaskInfo{"uuid", "a UUID: 8-4-4-4-12 hex digits", "0b5e0c52-7d3c-4f7e-9d55-0c2a5f2f3c11"},
		firsts: digits + hexLetter, seconds: digits + hexLetter, find: findUUID},
	{says: ofNames, MaskInfo: MaskInfo{maskID, "what a provider made up to name a call, a message or an item, after its prefix",
		"toolu_01A09q90qw90lq917835lq9"}, starts: idPrefixes, find: findID},
	{MaskInfo: MaskInfo{maskCodexModels, "a line of codex's log: its list of models could not be asked for; goes without a trace",
		"2026-11-21T07:08:09.123456Z" + codexModels + codexReasons[0] + "error sending request"},
		firsts: "12", seconds: digits, find: findCodexModels},
	{MaskInfo: MaskInfo{maskGeminiStartup, "a line of gemini's start-up profiler: a phase was over sooner or later; goes without a trace",
		geminiLines[0][0] + "cleanup_ops" + geminiLines[0][1]}, starts: []string{geminiStartup}, find: findGeminiStartup},
	{MaskInfo: MaskInfo{"timestamp", "a date and a time of ISO 8601 or RFC 3339", "2026-11-21T07:08:09.123Z"},
		firsts: "12", seconds: digits, find: findTimestamp},
	{MaskInfo: MaskInfo{maskDate, "a date with its year, or with its weekday or time, in digits or English",
		"Saturday, November 21, 2026"}, firsts: digits, seconds: digits + "/ ", starts: dateWords, find: findDate},
	{MaskInfo: MaskInfo{"time", "a time of day with seconds, or with AM or PM", "07:08:09"},
		firsts: digits, seconds: digits + ":", find: findClock},
	{MaskInfo: MaskInfo{maskDuration, "a time that something took: in ms or less, or seconds with a fraction or after \"in\"",
		"3 passed in 0.02 seconds"}, firsts: digits, starts: durationNames, find: findDuration},
	{MaskInfo: MaskInfo{"unix-time", "a Unix time of 10 digits or more behind a name such as created or timestamp",
		`"create_time":1795244930123`}, starts: unixNames, find: findUnixTime},
	{says: ofNames, MaskInfo: MaskInfo{"cache-key", "the value of prompt_cache_key", `"prompt_cache_key":"019abc"`},
		starts: []string{cacheKey}, find: findCacheKey},
	{says: ofNames, MaskInfo: MaskInfo{"event-id", "the value of event_id, by which a program names what it sends", `"event_id":"evt_9xKf2"`},
		starts: []string{eventID}, find: findEventID},
	{says: ofNames, MaskInfo: MaskInfo{maskChunkID, "the hex digits after \"Chunk ID:\"", "Chunk ID: 1f3a9c"},
		starts: []string{chunkID}, find: findChunkID},
	{says: ofNames, MaskInfo: MaskInfo{maskPID, "the number after the word pid, ppid or pgid", "pid 12345"},
		starts: []string{"pid", "PID", "Pid", "ppid", "pgid", "PGID"}, find: findPID},
	{MaskInfo: MaskInfo{maskLinks, "how many hard links ls -l says that a file has: a directory of a replay often has one",
		"drwxr-xr-x 5 anna users 4096 src"}, firsts: fileTypes, seconds: "r-", find: findLinks},
	{says: ofNames, MaskInfo: MaskInfo{maskPort, "the port of a loopback address", "http://127.0.0.1:43117/"},
		starts: loopbacks, find: findPort},
	{says: ofNames, MaskInfo: MaskInfo{maskTempName, "a made-up part of a name below a temporary directory: of the name right below it every longer word, elsewhere what looks random", "/tmp/build-x7Gh29Kd/out"},
		find: findPath, always: true}, // where the known paths begin
	{says: ofPlace, MaskInfo: MaskInfo{maskHome, "the path of HOME", "/home/user/.config"}},
	{says: ofPlace, MaskInfo: MaskInfo{maskWorkTree, "the path of the work tree", "/home/user/project/main.go"}},
	{says: ofPlace, MaskInfo: MaskInfo{maskTemp, "the path of the temporary directory", "/run/user/tmp/x"}},
}

// Masks lists the built-in masks.
func Masks() []MaskInfo {
	infos := make([]MaskInfo, len(builtin))
	for i := range builtin {
		infos[i] = builtin[i].MaskInfo
	}
	return infos
}

// allow lets through what k can begin with, and returns the first bytes.
func (k *mask) allow(f *filter) (firsts []byte) {
	for i := range len(k.firsts) {
		for second := range 256 {
			if k.seconds == "" || strings.IndexByte(k.seconds, byte(second)) >= 0 {
				f.allowAny(k.firsts[i], byte(second))
			}
		}
	}
	firsts = []byte(k.firsts)
	for _, s := range k.starts {
		f.allowText(s)
		firsts = append(firsts, s[0])
	}
	return firsts
}

// prefixAt returns that of the prefixes which stands at i, and "" where none does.
func prefixAt(b []byte, i int, prefixes []string) string {
	for _, s := range prefixes {
		if hasPrefix(b, i, s) {
			return s
		}
	}
	return ""
}

func hasPrefix(b []byte, i int, s string) bool {
	return len(b)-i >= len(s) && string(b[i:i+len(s)]) == s
}

// runOf returns the end of the run of set at i.
func runOf(b []byte, i int, set *charset) int {
	for i < len(b) && set[b[i]] {
		i++
	}
	return i
}

var digitChars = func() *charset {
	var s charset
	for i := range len(digits) {
		s[digits[i]] = true
	}
	return &s
}()

func findUUID(p *masking, i int) int {
	end, ok := uuidAt(p.b, i)
	if !ok || !p.begins(i) || !p.ends(end) {
		return i
	}
	p.put(i, end, "uuid")
	return end
}

var idPrefixes = []string{
	"toolu_", "srvtoolu_", "call_", "msg_", "resp_", "chatcmpl-", "cmpl-", "gen-", "fc_", "rs_", "ctc_", "item_", "ws_", "ses_",
	"prt_", "req_", "run_",
}

// findID masks what comes after the prefix, which stays. That it was made up shows in its digits: a name that a person
// gave has fewer than two, or is short.
func findID(p *masking, i int) int {
	prefix := prefixAt(p.b, i, idPrefixes)
	if prefix == "" || !p.begins(i) {
		return i
	}
	set := alnum
	if strings.HasSuffix(prefix, "-") {
		set = tokenChars
	}
	start := i + len(prefix)
	end := runOf(p.b, start, set)
	const minID = 8
	if end-start < minID || !p.ends(end) {
		return i
	}
	if digits, letters := mixture(p.b[start:end]); !p.m.place && (digits < 2 || letters == 0) {
		return i
	}
	p.put(start, end, maskID)
	return end
}

// mixture counts the digits and the letters of b.
func mixture(b []byte) (digits, letters int) {
	for _, c := range b {
		switch {
		case isDigit(c):
			digits++
		case isAlnum(c):
			letters++
		}
	}
	return digits, letters
}

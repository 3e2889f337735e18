package masks

import (
	"bytes"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/lazyregexp"
	"github.com/tapedeck-dev/tapedeck/scrub/internal/chars"
)

// prefixAt returns that of the prefixes which stands at i, and "" where none does.
func prefixAt(b []byte, i int, prefixes []string) string {
	for _, s := range prefixes {
		if chars.HasPrefix(b, i, s) {
			return s
		}
	}
	return ""
}

func findUUID(s *search, i int) int {
	end, ok := chars.UUIDAt(s.b, i)
	if !ok || !s.begins(i) || !s.ends(end) {
		return i
	}
	s.take(i, end, maskUUID)
	return end
}

var idPrefixes = []string{
	"toolu_", "srvtoolu_", "call_", "msg_", "resp_", "chatcmpl-", "cmpl-", "gen-", "fc_", "rs_", "ctc_", "item_", "ws_", "ses_",
	"prt_", "req_", "run_", "fco_",
}

// findID masks what comes after the prefix, which stays. A name that a person gave is short.
func findID(s *search, i int) int {
	prefix := prefixAt(s.b, i, idPrefixes)
	if prefix == "" || !s.begins(i) {
		return i
	}
	set := chars.Alnum
	if strings.HasSuffix(prefix, "-") {
		set = chars.Token
	}
	start := i + len(prefix)
	end := set.Run(s.b, start)
	if uuid, ok := chars.UUIDAt(s.b, start); ok && uuid > end && s.ends(uuid) {
		s.take(start, uuid, maskUUID)
		return uuid
	}
	const minID = 8
	if end-start < minID || !s.ends(end) {
		return i
	}
	s.take(start, end, maskID)
	return end
}

// named returns where the number stands that belongs to one of the names at i, and twice the same where there is none:
// "name": 123, name=123, and the like within quoted JSON.
func (s *search) named(i int, names []string) (start, end int) {
	start, ok := s.valueOf(i, names)
	if !ok {
		return i, i
	}
	end = chars.Digits.Run(s.b, start)
	if end > start && end+1 < len(s.b) && s.b[end] == '.' && chars.IsDigit(s.b[end+1]) {
		end = chars.Digits.Run(s.b, end+1)
	}
	if !s.ends(end) {
		return i, i
	}
	return start, end
}

// valueOf returns where the value begins that belongs to one of the names at i.
func (s *search) valueOf(i int, names []string) (start int, ok bool) {
	end := chars.Word.Run(s.b, i)
	if !s.begins(i) || !slices.Contains(names, string(s.b[i:end])) {
		return i, false
	}
	at := s.skip(end, `\"' `)
	if at == len(s.b) || s.b[at] != ':' && s.b[at] != '=' {
		return i, false
	}
	return s.skip(at+1, `\"' `), true
}

const (
	cacheKey = "prompt_cache_key"
	eventID  = "event_id"
	chunkID  = "Chunk ID: "
)

var valueChars = chars.NewSet("_-.:/+=")

// findText takes the string that is the value of a name, whatever it looks like.
func findText(name, mask string) func(s *search, i int) int {
	return func(s *search, i int) int {
		start, ok := s.valueOf(i, []string{name})
		if !ok || !bytes.ContainsAny(s.b[start-1:start], `"'`) {
			return i
		}
		end := valueChars.Run(s.b, start)
		if end == start || end < len(s.b) && strings.IndexByte(`\"'`, s.b[end]) < 0 {
			return i
		}
		s.take(start, end, mask)
		return end
	}
}

func findChunkID(s *search, i int) int {
	if !chars.HasPrefix(s.b, i, chunkID) || !s.begins(i) {
		return i
	}
	const fewest = 4
	start := i + len(chunkID)
	end := start
	for end < len(s.b) && chars.IsHex(s.b[end]) {
		end++
	}
	if end-start < fewest || !s.ends(end) {
		return i
	}
	s.take(start, end, maskChunkID)
	return end
}

var pidWords = []string{"pid", "PID", "Pid", "ppid", "pgid", "PGID"}

// findPID masks the number after the word: "pid 12", "pid: 12", "pid=12", "\"pid\":12", "[pid 12]".
func findPID(s *search, i int) int {
	const most = 7 // digits of the largest pid_max
	word := chars.Word.Run(s.b, i)
	if !s.begins(i) || !slices.Contains(pidWords, string(s.b[i:word])) {
		return i
	}
	start := s.skip(word, `\"':=# `)
	end, ok := s.digits(start, most)
	if start == word || !ok {
		return i
	}
	s.take(start, end, maskPID)
	return end
}

// findLinks masks the number behind the permissions of a line of ls -l, with the blanks that align it: "drwxr-xr-x  5 ". An
// overlay, in which a replay shows directories, says 1 of each that it merges.
func findLinks(s *search, i int) int {
	const perms = "rwxrwxrwx"
	at := i + 1 + len(perms)
	if at > len(s.b) || !s.begins(i) || i > 0 && s.b[i-1] == '-' {
		return i
	}
	for k, c := range s.b[i+1 : at] {
		special := k%3 == 2 && (c == 's' || c == 'S' || k == 8 && (c == 't' || c == 'T'))
		if c != perms[k] && c != '-' && !special {
			return i
		}
	}
	at = s.skip(at, ".+@")
	start := s.skip(at, " ")
	end := chars.Digits.Run(s.b, start)
	if start == at || end == start || !s.goesOn(end, " ") {
		return i
	}
	s.take(at+1, end, maskLinks)
	return end
}

var loopbacks = []string{"127.0.0.1:", "localhost:", "[::1]:", "0.0.0.0:"}

func findPort(s *search, i int) int {
	const most = 5 // digits
	host := prefixAt(s.b, i, loopbacks)
	if host == "" || !s.number(i) {
		return i
	}
	start := i + len(host)
	end, ok := s.digits(start, most)
	if !ok {
		return i
	}
	s.take(start, end, maskPort)
	return end
}

// findPath masks the known paths, and below a temporary one the parts of names that look made up.
func findPath(s *search, i int) int {
	if !s.pathBegins(i) {
		return i
	}
	for _, k := range s.m.paths {
		end := i + len(k.path)
		if !chars.HasPrefix(s.b, i, k.path) || !s.pathEnds(end) {
			continue
		}
		if k.mask != "" {
			s.take(i, end, k.mask)
		}
		if k.temp && !s.m.off[maskTempName] {
			return s.below(end)
		}
		return end
	}
	return i
}

var pathChars = chars.NewSet("_-.~/")

// pathBegins tells whether an absolute path can begin at i: after what is no path itself, or after "scheme://".
func (s *search) pathBegins(i int) bool {
	before := s.before(i)
	if len(before) == 0 || !pathChars[s.b[i-1]] || bytes.HasSuffix(before, []byte("://")) {
		return true
	}
	return chars.IsAlnum(s.b[i-1]) && s.begins(i)
}

// pathEnds tells whether a path can end before i: another part of it follows, or nothing that goes on with its last name.
func (s *search) pathEnds(i int) bool {
	if i >= len(s.b) || s.b[i] == '/' || !pathChars[s.b[i]] {
		return true
	}
	return s.b[i] == '.' && (i+1 == len(s.b) || !pathChars[s.b[i+1]] && s.b[i+1] != '<')
}

// below masks the parts that look made up in the names from i on, and returns where the path ends. Masks belong to it.
func (s *search) below(i int) int {
	for depth := 0; i < len(s.b); {
		switch c := s.b[i]; {
		case c == '<':
			end := maskAt(s.b, i)
			if end == i {
				return i
			}
			i = end
		case chars.IsAlnum(c), c == '_' && depth == 1:
			i = s.madeUpName(i, depth == 1)
		case pathChars[c]:
			if i++; c == '/' {
				depth++
			}
		default:
			return i
		}
	}
	return i
}

// maskAt returns the end of the name in angle brackets at i, and i where there is none.
func maskAt(b []byte, i int) int {
	end := i + 1
	for end < len(b) && (b[end] == '-' || chars.IsLower(b[end])) {
		end++
	}
	if end == len(b) || b[end] != '>' {
		return i
	}
	return end + 1
}

const (
	// pythonName is the length of what Python's tempfile makes: "tmp" and eight small letters, digits or underscores.
	pythonName = 11
	// minWord is how many characters a made-up word has at least, and minDigits how many digits a made-up number.
	minWord   = 6
	minDigits = 8
)

// madeUpName masks what is made up of the word at i and returns its end. first says that it stands in the name right below a
// temporary directory, where programs have names made up: of that every longer word may be.
func (s *search) madeUpName(i int, first bool) int {
	if !s.m.off[maskUUID] {
		if next := findUUID(s, i); next > i {
			return next
		}
	}
	if first {
		end := chars.Word.Run(s.b, i)
		if end-i >= minWord {
			s.take(i, end, maskTempName)
		}
		return end
	}
	end := chars.Alnum.Run(s.b, i)
	if python := chars.Word.Run(s.b, i); python-i == pythonName && chars.HasPrefix(s.b, i, "tmp") {
		end = python
	}
	if start := madeUp(s.b, i, end); start < end {
		s.take(start, end, maskTempName)
	}
	return end
}

// madeUp returns where the made-up part of the word from i to end begins, and end where there is none. Made up are
// digits among letters, a long row of digits at the end, and capitals among small letters without the humps of a name.
func madeUp(b []byte, i, end int) int {
	word := b[i:end]
	switch {
	case bytes.HasSuffix(b[:i], []byte("/tmp.")), len(word) == pythonName && bytes.HasPrefix(word, []byte("tmp")):
		return i
	case len(word) < minWord:
		return end
	}
	letters := i
	for letters < end && !chars.IsDigit(b[letters]) {
		letters++
	}
	switch trailing := end - letters; {
	case chars.Digits.Run(b[:end], letters) < end, trailing == 0 && mixedCase(word):
		return i
	case trailing >= minDigits: // as Go appends them
		return letters
	}
	return end
}

// mixedCase tells a random word from one in camel case, whose humps are longer.
func mixedCase[T string | []byte](word T) bool {
	const shortHump = 2.5 // letters
	humps := 1
	for i := 1; i < len(word); i++ {
		if word[i]&0x20 == 0 && word[i-1]&0x20 != 0 {
			humps++
		}
	}
	return humps > 1 && float64(len(word))/float64(humps) < shortHump
}

// findLine takes the line that begins at i, with its end, where it is one of lines: those that a program's log has or not, here or a
// few lines on, as its tasks in the background come to it. They go without a trace: what is around them counts, and they are counted
// as used.
func findLine(mask string, lines *lazyregexp.Regexp) func(s *search, i int) int {
	return func(s *search, i int) int {
		if i > 0 && s.b[i-1] != '\n' {
			return i
		}
		line, _, _ := bytes.Cut(s.b[i:], []byte("\n"))
		if !lines.Match(line) {
			return i
		}
		end := min(i+len(line)+1, len(s.b))
		s.take(i, end, mask)
		s.taken[len(s.taken)-1].Width = -1
		return end
	}
}

const (
	maskCodexModels   = "codex-models"
	maskGeminiStartup = "gemini-startup"
	geminiStartup     = "[STARTUP] "
)

var (
	// codexModels is what codex logs whenever it could not ask for its list of models, with the reasons that come of the exchange,
	// which is compared for itself. Any other counts.
	codexModels = lazyregexp.New(`^[12][0-9]{3}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?Z ERROR codex_models_manager::manager: ` +
		`failed to refresh available models: (stream disconnected before completion: |unexpected status |Connection failed: )`)
	// geminiPhases is what gemini logs where a phase of its start is over sooner or later than its measures are looked at.
	geminiPhases = lazyregexp.New(`^\[STARTUP\] (Phase '\w*' was started but never ended\. Skipping metrics\.` +
		`|Cannot measure phase '\w*': start mark 'startup:\w*:start' not found \(likely cleared by reset\)\.` +
		`|Cannot end phase '\w*': phase was already ended\.)$`)
)

package scrub

import (
	"bytes"
	"slices"
)

// named returns where the number stands that belongs to one of the names at i, and twice the same where there is none:
// "name": 123, name=123, and the like within quoted JSON.
func (p *masking) named(i int, names []string) (start, end int) {
	start, ok := p.valueOf(i, names)
	if !ok {
		return i, i
	}
	end = runOf(p.b, start, digitChars)
	if end > start && end+1 < len(p.b) && p.b[end] == '.' && isDigit(p.b[end+1]) {
		end = runOf(p.b, end+1, digitChars)
	}
	if !p.ends(end) {
		return i, i
	}
	return start, end
}

// valueOf returns where the value begins that belongs to one of the names at i.
func (p *masking) valueOf(i int, names []string) (start int, ok bool) {
	end := runOf(p.b, i, wordChars)
	if !p.begins(i) || !slices.Contains(names, string(p.b[i:end])) {
		return i, false
	}
	at := p.skip(end, `\"' `)
	if at == len(p.b) || p.b[at] != ':' && p.b[at] != '=' {
		return i, false
	}
	return p.skip(at+1, `\"' `), true
}

// skip returns the first place from i on, within a few bytes, where none of set stands.
func (p *masking) skip(i int, set string) int {
	const limit = 8
	for end := min(len(p.b), i+limit); i < end && bytes.IndexByte([]byte(set), p.b[i]) >= 0; {
		i++
	}
	return i
}

var unixNames = []string{
	"create_time", "createTime", "created", "created_at", "createdAt", "updated_at", "updatedAt", "started_at", "startedAt",
	"start_time", "end_time", "expires_at", "expiresAt", "timestamp", "ts", "turn_started_at_unix_ms", "started_at_unix_ms",
	"created_at_unix_ms",
}

func findUnixTime(p *masking, i int) int {
	const shortest = 10 // digits of a time in seconds
	start, end := p.named(i, unixNames)
	if end-start < shortest {
		return i
	}
	p.put(start, end, "unix-time")
	return end
}

const (
	cacheKey = "prompt_cache_key"
	eventID  = "event_id"
	chunkID  = "Chunk ID: "
)

func findCacheKey(p *masking, i int) int { return p.namedText(i, cacheKey, "cache-key") }

func findEventID(p *masking, i int) int { return p.namedText(i, eventID, "event-id") }

// namedText masks the string that is the value of a name, whatever it looks like.
func (p *masking) namedText(i int, name, mask string) int {
	start, ok := p.valueOf(i, []string{name})
	if !ok || !bytes.ContainsAny(p.b[start-1:start], `"'`) {
		return i
	}
	end := runOf(p.b, start, namedChars)
	if end == start || end < len(p.b) && bytes.IndexByte([]byte(`\"'`), p.b[end]) < 0 {
		return i
	}
	p.put(start, end, mask)
	return end
}

var namedChars = newSet("_-.:/+=")

func findChunkID(p *masking, i int) int {
	if !hasPrefix(p.b, i, chunkID) || !p.begins(i) {
		return i
	}
	start := i + len(chunkID)
	end := start
	for end < len(p.b) && isHex(p.b[end]) {
		end++
	}
	if end-start < 4 || !p.ends(end) {
		return i
	}
	p.put(start, end, maskChunkID)
	return end
}

// findPID masks the number after the word: "pid 12", "pid: 12", "pid=12", "\"pid\":12", "[pid 12]".
func findPID(p *masking, i int) int {
	word := runOf(p.b, i, wordChars)
	switch name := string(p.b[i:word]); {
	case !p.begins(i):
		return i
	case name != "pid" && name != "PID" && name != "Pid" && name != "ppid" && name != "pgid" && name != "PGID":
		return i
	}
	start := p.skip(word, `\"':=# `)
	end := runOf(p.b, start, digitChars)
	const maxDigits = 7 // of the largest pid_max
	if start == word || end == start || end-start > maxDigits || !p.ends(end) || p.goesOn(end, ".") {
		return i
	}
	p.put(start, end, maskPID)
	return end
}

// fileTypes are the letters of file types with which a line of ls -l begins.
const fileTypes = "-dlpscb"

// findLinks masks the number behind the permissions of a line of ls -l, with the blanks that align it: "drwxr-xr-x  5 ". An
// overlay, in which a replay shows directories, says 1 of each that it merges.
func findLinks(p *masking, i int) int {
	const perms = "rwxrwxrwx"
	at := i + 1 + len(perms)
	if at > len(p.b) || !p.begins(i) || i > 0 && p.b[i-1] == '-' {
		return i
	}
	for k, c := range p.b[i+1 : at] {
		special := k%3 == 2 && (c == 's' || c == 'S' || k == 8 && (c == 't' || c == 'T'))
		if c != perms[k] && c != '-' && !special {
			return i
		}
	}
	at = p.skip(at, ".+@")
	start := p.skip(at, " ")
	end := runOf(p.b, start, digitChars)
	if start == at || end == start || !p.goesOn(end, " ") {
		return i
	}
	p.put(at+1, end, maskLinks)
	return end
}

var loopbacks = []string{"127.0.0.1:", "localhost:", "[::1]:", "0.0.0.0:"}

func findPort(p *masking, i int) int {
	host := prefixAt(p.b, i, loopbacks)
	if host == "" || !p.number(i) {
		return i
	}
	start := i + len(host)
	end := runOf(p.b, start, digitChars)
	const maxDigits = 5
	if end == start || end-start > maxDigits || !p.ends(end) || p.goesOn(end, ".") {
		return i
	}
	p.put(start, end, maskPort)
	return end
}

// findPath masks the known paths, and below a temporary one the parts of names that look made up.
func findPath(p *masking, i int) int {
	if !p.pathBegins(i) {
		return i
	}
	for _, k := range p.m.paths {
		end := i + len(k.path)
		if !hasPrefix(p.b, i, k.path) || !p.pathEnds(end) {
			continue
		}
		if k.mask != "" {
			p.put(i, end, k.mask)
		}
		if k.temp && !p.m.off[maskTempName] {
			return p.below(end)
		}
		return end
	}
	return i
}

var pathChars = newSet("_-.~/")

// pathBegins tells whether an absolute path can begin at i: after what is no path itself, or after "scheme://".
func (p *masking) pathBegins(i int) bool {
	before := p.before(i)
	if len(before) == 0 || !pathChars[p.b[i-1]] || bytes.HasSuffix(before, []byte("://")) {
		return true
	}
	return isAlnum(p.b[i-1]) && p.begins(i)
}

// pathEnds tells whether a path can end before i: another part of it follows, or nothing that goes on with its last name.
func (p *masking) pathEnds(i int) bool {
	if i >= len(p.b) || p.b[i] == '/' || !pathChars[p.b[i]] {
		return true
	}
	return p.b[i] == '.' && (i+1 == len(p.b) || !pathChars[p.b[i+1]] && p.b[i+1] != '<')
}

// pythonName is the length of what Python's tempfile makes: "tmp" and eight small letters, digits or underscores.
const pythonName = 11

// below masks the parts that look made up in the names from i on, and returns where the path ends. Masks belong to it.
func (p *masking) below(i int) int {
	for depth := 0; i < len(p.b); {
		switch c := p.b[i]; {
		case c == '<':
			end := maskAt(p.b, i)
			if end == i {
				return i
			}
			i = end
		case isAlnum(c), c == '_' && depth == 1 && p.m.place:
			i = p.madeUpName(i, depth == 1)
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
	for end < len(b) && (b[end] == '-' || b[end] >= 'a' && b[end] <= 'z') {
		end++
	}
	if end == len(b) || b[end] != '>' {
		return i
	}
	return end + 1
}

// madeUpName masks what is made up of the word at i and returns its end. first says that it stands in the name right below a
// temporary directory, where programs have names made up: of that every longer word may be.
func (p *masking) madeUpName(i int, first bool) int {
	if !p.m.off["uuid"] {
		if next := findUUID(p, i); next > i {
			return next
		}
	}
	if first && p.m.place {
		end := runOf(p.b, i, wordChars)
		if end-i >= minWord {
			p.put(i, end, maskTempName)
		}
		return end
	}
	end := runOf(p.b, i, alnum)
	if python := runOf(p.b, i, wordChars); python-i == pythonName && hasPrefix(p.b, i, "tmp") {
		end = python
	}
	if start := madeUp(p.b, i, end); start < end {
		p.put(start, end, maskTempName)
	}
	return end
}

// minWord is how many characters a made-up word has at least.
const minWord = 6

// madeUp returns where the made-up part of the word from i to end begins, and end where there is none. Made up are
// digits among letters, a long row of digits at the end, and capitals among small letters without the humps of a name.
func madeUp(b []byte, i, end int) int {
	const minDigits = 8
	word := b[i:end]
	switch {
	case bytes.HasSuffix(b[:i], []byte("/tmp.")), len(word) == pythonName && bytes.HasPrefix(word, []byte("tmp")):
		return i
	case len(word) < minWord:
		return end
	}
	letters := i
	for letters < end && !isDigit(b[letters]) {
		letters++
	}
	switch trailing := end - letters; {
	case runOf(b[:end], letters, digitChars) < end, trailing == 0 && mixedCase(word):
		return i
	case trailing >= minDigits: // as Go appends them
		return letters
	}
	return end
}

// mixedCase tells a random word from one in camel case, whose humps are longer.
func mixedCase(word []byte) bool {
	const shortHump = 2.5 // letters
	humps := 1
	for i := 1; i < len(word); i++ {
		if word[i]&0x20 == 0 && word[i-1]&0x20 != 0 {
			humps++
		}
	}
	return humps > 1 && float64(len(word))/float64(humps) < shortHump
}

package masks

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/tapedeck-dev/tapedeck/scrub/internal/chars"
)

func findUUID(s *search, i int) int {
	end, ok := chars.UUIDAt(s.b, i)
	if !ok || !s.begins(i) || !s.ends(end) {
		return i
	}
	s.take(i, end, maskUUID)
	return end
}

// A shape in a place is told by an expression, whose first group the mask takes. What may stand behind it is a part of it.
const (
	wordEnds   = `(?:\W|$)`
	numberEnds = `(?:[^\w.]|\.(?:[^A-Za-z0-9<]|$)|$)` // and not a further number: a mask may be one
	uuidText   = `[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}`
	sign       = `[\\"' ]{0,8}[:=][\\"' ]{0,8}` // between a name and its value: "name": 1, name=1, and the like within quoted JSON
	quoted     = `[\\"' ]{0,8}[:=][\\"' ]{0,7}["']([\w.:/+=-]+)(?:[\\"']|$)`

	cacheKey = "prompt_cache_key"
	eventID  = "event_id"
)

// What comes after the prefix of an id is masked; the prefix stays. A name that a person gave is short.
var (
	idPrefixes = []string{"toolu_", "srvtoolu_", "call_", "msg_", "resp_", "fc_", "rs_", "ctc_", "item_", "ws_", "ses_", "prt_", "req_", "run_", "fco_"}
	// dashedPrefixes are those behind which an id may have hyphens.
	dashedPrefixes = []string{"chatcmpl-", "cmpl-", "gen-"}

	pidWords  = []string{"pid", "PID", "Pid", "ppid", "pgid", "PGID"}
	loopbacks = []string{"127.0.0.1:", "localhost:", "[::1]:", "0.0.0.0:"}
)

// oneOf is the expression of some texts.
func oneOf(texts []string) string {
	var all []string
	for _, t := range texts {
		all = append(all, regexp.QuoteMeta(t))
	}
	return `(?:` + strings.Join(all, "|") + `)`
}

// shape finds what an expression matches behind one of starts, where a word or a number may begin; nil starts are none.
func shape(mask string, begins func(s *search, i int) bool, starts []string, expr string) func(s *search, i int) int {
	re := sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(?:` + oneOf(starts) + expr + `)`) })
	return func(s *search, i int) int {
		if starts != nil && !slices.ContainsFunc(starts, func(start string) bool { return chars.HasPrefix(s.b, i, start) }) || !begins(s, i) {
			return i
		}
		for _, longest := range []int{64, 1024} { // bytes; few shapes are long, and what could be looked at costs too
			end := min(len(s.b), i+longest)
			at := re().FindSubmatchIndex(s.b[i:end])
			if at == nil {
				break
			}
			if i+at[3] < end || end == len(s.b) {
				s.take(i+at[2], i+at[3], mask)
				return s.done
			}
		}
		return i
	}
}

func begins(s *search, i int) bool { return s.begins(i) }

// findFirst finds what the first of some shapes finds.
func findFirst(shapes ...func(s *search, i int) int) func(s *search, i int) int {
	return func(s *search, i int) int {
		for _, find := range shapes {
			if next := find(s, i); next > i {
				return next
			}
		}
		return i
	}
}

var linksOf = shape(maskLinks, begins, nil, `[-dlpscb][r-][w-][xsS-][r-][w-][xsS-][r-][w-][xsStT-][.+@]{0,8} ( {0,7}[0-9]+) [A-Za-z0-9<]`)

// findLinks masks the number behind the permissions of a line of ls -l, with the blanks that align it: "drwxr-xr-x  5 ". An
// overlay, in which a replay shows directories, says 1 of each that it merges.
func findLinks(s *search, i int) int {
	if i+2 >= len(s.b) || s.b[i+2] != 'w' && s.b[i+2] != '-' || i > 0 && s.b[i-1] == '-' {
		return i
	}
	return linksOf(s, i)
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

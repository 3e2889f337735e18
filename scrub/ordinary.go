package scrub

import (
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/lazyregexp"
)

const (
	maxOrdinary = 64 // bytes of a value that may be words
	maxNumber   = 13 // digits of an ordinary number: a time in milliseconds
)

// ordinaryWord is a word as people write it: in capitals, in small letters, or several of them with a capital each.
// numberedWord has a number with it, of which one is ordinary and several are a code (ab12-cd34).
var (
	ordinaryWord = lazyregexp.New(`^([A-Z]{1,12}|[A-Z]?[a-z]{1,15}|[A-Z]?[a-z]{2,11}([A-Z][a-z]{2,11}){1,3})$`)
	numberedWord = lazyregexp.New(`^([A-Za-z]?[a-z]{0,11}[0-9]{1,2}|[0-9]{1,2}[a-z])$`)
)

// Ordinary reports whether a value is made of words and numbers: accepted, dark-mode, us-east-1, en-US, /dashboard/home,
// 1700000000. It says nothing of who made it: a password may be ordinary too. But a text may hold it that has nothing to
// do with it.
func Ordinary(value string) bool {
	value = strings.Trim(unescaped(value), `"`)
	if len(value) > maxOrdinary {
		return false
	}
	numbered := 0
	for part := range strings.FieldsFuncSeq(value, isSeparator) {
		switch {
		case strings.Trim(part, "0123456789") == "" && len(part) <= maxNumber, ordinaryWord.MatchString(part):
		case numberedWord.MatchString(part):
			numbered++
		default:
			return false
		}
	}
	return numbered <= 1
}

// sessionNames are what the names of cookies hold that say who somebody is.
var sessionNames = []string{"sess", "sid", "auth", "token", "csrf", "xsrf", "jwt", "login", "user", "account", "key", "secret", "pass", "pin"}

// longNumber is one that may be somebody's: an id, a code, a time.
var longNumber = lazyregexp.New(`[0-9]{4}`)

// isSetting tells whether a cookie of an ordinary value says how a page is to be shown, and not who looks at it.
func isSetting(name, value string) bool {
	name = strings.ToLower(strings.TrimSpace(name))
	if name == "" || strings.HasSuffix(name, "id") || longNumber.MatchString(value) {
		return false
	}
	return !slices.ContainsFunc(sessionNames, func(s string) bool { return strings.Contains(name, s) })
}

func isSeparator(r rune) bool { return strings.ContainsRune(" -_./,;:|+=?&~()", r) }

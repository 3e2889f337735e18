package names

import (
	"bytes"
	"encoding/base64"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/internal/lazyregexp"
	"github.com/tapedeck-dev/tapedeck/scrub/internal/chars"
	"github.com/tapedeck-dev/tapedeck/scrub/internal/placeholders"
)

// MinKnown is the length in bytes from which a known value is searched for where its name does not stand.
const MinKnown = 8

// Searchable reports whether a known value can be searched for anywhere without replacing what is no secret: it is no word, nor an
// identifier, that other texts have too.
func Searchable(value string) bool {
	if len(value) < MinKnown || placeholders.Is(value) || !varied(value, 2) || slices.Contains(commonWords, strings.ToLower(value)) {
		return false
	}
	words := wordsIn(value)
	return len(words) == 0 || countCode(words) < len(words)
}

// Learnable is Searchable for a value that came with the traffic, where a name tells of more that is no secret: neither is a word, nor are
// two or three of which half are those of identifiers, a path of words, and a URL without credentials.
func Learnable(value string) bool {
	words := wordsIn(value)
	switch {
	case !Searchable(value), !varied(value, 4), len(words) == 1, len(words) <= 3 && 2*countCode(words) >= len(words) && len(words) > 0:
		return false
	case strings.HasPrefix(value, "/"):
		return !Ordinary(value)
	}
	return !strings.Contains(value, "://") || strings.Contains(value, "@")
}

// varied reports whether a value has so many different bytes.
func varied(value string, least int) bool {
	var seen chars.ByteSet
	for i := 0; i < len(value) && least > 0; i++ {
		if !seen.Has(value[i]) {
			seen.Add(value[i])
			least--
		}
	}
	return least == 0
}

var (
	// word is letters as people write a word, none of which is longer than AUTHENTICATIONFAILED, or several with a capital each.
	word = lazyregexp.New(`^([A-Z]{1,20}|[A-Z]?[a-z]{1,20}|[A-Z]?[a-z]{2,11}([A-Z][a-z]{2,11}){1,3})$`)
	// drawn is what no word has: five consonants in a row, or four vowels.
	drawn = lazyregexp.New(`(?i)[bcdfghjklmnpqrstvwxz]{5}|[aeiou]{4}`)
	vowel = lazyregexp.New(`(?i)[aeiouy]`)
)

// AreWords tells whether a value is made of words that a sign joins.
func AreWords(value string) bool { return len(wordsIn(value)) > 0 }

// wordsIn returns the words that a value is made of and that a sign joins; nil where it is made of something else.
func wordsIn(value string) []string {
	const longest = 14 // letters
	words := strings.FieldsFunc(value, func(r rune) bool { return strings.ContainsRune(" -_./:", r) })
	for _, w := range words {
		if len(w) > longest && !strings.ContainsFunc(w[1:], func(r rune) bool { return r < 'a' }) || !word.MatchString(w) || drawn.MatchString(w) || !vowel.MatchString(w) {
			return nil
		}
	}
	return words
}

// countCode returns how many of words are those of identifiers.
func countCode(words []string) (n int) {
	for _, w := range words {
		if slices.Contains(codeWords, strings.ToLower(w)) {
			n++
		}
	}
	return n
}

// codeWords are words of identifiers, of settings and of what agents say.
var codeWords = strings.Fields(`access account actually admin always analysis and anonymous another answer any api app application
	approved assistant auth authenticated authorization authorized automatic available aws azure base basic bearer because before behavior
	blocked boolean bot bucket button cache calendar cancelled category change changes check children claude client cloud code comment
	commit complete completed computer config configuration configured connected connection content context continue control cookie
	created credential credentials current customer customers data database default delivered demo dev developer development different
	directory disabled document download dummy duration email empty enabled encoding end endpoint engineer env environment error event
	every example exception execute existing expected expired explicit exported expression external failed false features feedback field
	file finished first following foo for forbidden foreground format found from function functions general generate google group hash
	header host however id identity idle implicit important included index info information input instance instead integer interface
	internal internet interval invalid is issuer item javascript job json key keyboard language last level library license list local
	localhost location login mail main management manifest max me message messages metadata min missing mode model modified monitor
	multiple my name national needed network new next no node none not nothing null number oauth object of ok old one open operation
	optional options or order organization original other output overview owner package page parallel param parameter parameters parent
	partition password path pending persistent placeholder platform points policy port position possible postgres prefix previous
	primary priority private process prod product production profile progress project prompt property protected protocol provider
	provided proxy public publish python query question queue random read ready received recent record redacted redirect redis refresh
	region register registry released remember remote removed repository request requests required resource resources response restart
	result results returned role root running sample schedule schema scope script search second secret secrets section security select
	sequence server service services session set settings sha shared should shutdown signature single size software some something sort
	source specific staging standard start started state statement status stopped storage store strategy string structure sub success
	support supported system table tag temp template temporary terminal test testing text the thinking this through time timeout tmp to
	together token tokens tool tracking training transfer true type typescript undefined unique unknown unlimited update updated upload
	uri url use used user username users using uuid valid value variable verified version very visible volume waiting warning web
	webhook website with within without work workflow workspace write yes yet you your`)

// commonWords are values of 8 bytes or more that stand in variables like API_KEY and in ordinary text too.
var commonWords = []string{
	"12345678", "123456789", "1234567890", "administrator", "anonymous", "anything", "api-key", "api_key", "authorization",
	"bearer token", "changeme", "client-secret", "client_secret", "credential", "credentials", "database", "default_key",
	"developer", "development", "disabled", "dummy-key", "dummy_key", "dummykey", "dummy-api-key", "enabled", "environment",
	"example-key", "fake-key", "fake_key", "fake-api-key", "javascript", "keychain", "keystore", "localhost", "localhost:8080",
	"localhost:3000", "no-key-required", "not-needed", "not-required", "not_needed", "password", "password1", "password123",
	"placeholder", "postgres", "postgresql", "private-key", "private_key", "production", "redacted", "required", "secret-key",
	"secret_key", "secretkey", "something", "test-key", "test_key", "test-api-key", "testing1", "undefined", "unlimited",
	"username", "username:password", "user:password", "xxxxxxxx", "your-api-key", "your_api_key",
}

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
	value = strings.Trim(Unescaped(value), `"`)
	if len(value) > maxOrdinary {
		return false
	}
	numbered := 0
	for part := range strings.FieldsFuncSeq(value, func(r rune) bool { return strings.ContainsRune(" -_./,;:|+=?&~()", r) }) {
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

// Unescaped undoes percent-encoding in a path or a name of a user, so that a value has one placeholder however it is written.
func Unescaped(v string) string {
	if plain, err := url.PathUnescape(v); err == nil {
		return plain
	}
	return v
}

// holdsMade tells whether a value, or what is behind the name of a scheme in it, or a part of it, looks made by a machine and
// opens something.
func holdsMade(value string) bool {
	if strings.Contains(value, "://") {
		return false
	}
	parts := strings.FieldsFunc(value, func(r rune) bool { return strings.ContainsRune(" \t\r\n,;|:\"'{}[]", r) })
	return slices.ContainsFunc(parts, LooksMade)
}

// LooksMade tells a part of a value that looks made: 16 bytes or more with a letter and a digit, or 8 with a capital, a small
// letter and a digit; no path and no name of a host.
func LooksMade(part string) bool {
	const least, leastOfThree = 16, 8
	var lower, upper, digits, dots bool
	for i := range len(part) {
		c := part[i]
		lower = lower || chars.IsLower(c)
		upper = upper || chars.IsUpper(c)
		digits = digits || chars.IsDigit(c)
		dots = dots || c == '.'
	}
	switch {
	case !digits || !lower && !upper || strings.ContainsAny(part[:1], "/.~"), dots && !upper:
		return false
	}
	return len(part) >= least || len(part) >= leastOfThree && lower && upper
}

// IsReference tells what says where a secret is to be taken from: ${API_KEY}, $API_KEY, {{ API_KEY }}, {{ vault.token }}, ${db.password},
// ${{ secrets.TOKEN }}. It is no more than what nobody's password looks like: one that is taken for a reference leaks, a reference
// that is taken for a password costs a dummy.
func IsReference(value string) bool { return reference.MatchString(value) }

var reference = func() *lazyregexp.Regexp {
	const capitals, path = `[A-Z_][A-Z0-9_]*`, `\.?[A-Za-z_][A-Za-z0-9_]*([.:][A-Za-z_][A-Za-z0-9_]*)+`
	const name = `(` + capitals + `|` + path + `)`
	return lazyregexp.New(`^(\$` + capitals + `|\$\{` + name + `\}|\{\{ *` + name + ` *\}\}|\$\{\{[^{}]*\}\})$`)
}()

var fromOutside = lazyregexp.New(`^(\$[A-Za-z_{(]|<.*>$|\{\{)`)

// IsFromOutside tells what begins as something that is put in elsewhere: ${OTHER}, <your key>.
func IsFromOutside(value string) bool { return fromOutside.MatchString(value) }

// minMade is the length in bytes from which a value may look made by a machine.
const minMade = 16

var plainlyOther = lazyregexp.New(`^([A-Za-z][A-Za-z0-9+.-]*://.*|[./~].*|(?i:[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12})|` +
	`[0-9]{4}-[0-9]{2}-[0-9]{2}.*)$`)

// made tells whether a value looks made by a machine and opens something: letters and digits, no address, no path, no UUID, no
// time.
func made(value string) bool {
	digits, letters := chars.Mixture(value)
	odd := strings.ContainsFunc(value, func(r rune) bool {
		return r >= 0x80 || !chars.IsAlnum(byte(r)) && !strings.ContainsRune("_-.~+/=:|!", r)
	})
	return !odd && len(value) >= minMade && letters >= 2 && digits >= 2 && !plainlyOther.MatchString(value)
}

// IsToken tells whether a value is one word that may be looked for elsewhere, and no reference to another.
func IsToken(value string) bool {
	return len(value) >= MinKnown && !strings.ContainsAny(value, " \t\r\n\"'<>{}()[]*") && !IsFromOutside(value) && !IsReference(value)
}

// An answer has texts under the names of secrets that no request has: what is wrong with a password, what its field is called,
// what stands where there is none. A program reads them, so they must not become another text on replay.
const (
	joinedWord = `[A-Za-z][a-z]{0,14}`
	maxSpoken  = 1 << 10 // bytes of a text that speaks of a secret
)

var (
	// spoken is a word or a number of a sentence in any language, with its punctuation.
	spoken = lazyregexp.New(`^["'“‘«(¿¡]*(\p{L}[\p{L}\p{M}]*(['’/-]\p{L}[\p{L}\p{M}]*)*|[0-9]{1,4}|[–—-])["'”’»).,;:!?…]*$`)
	// fewJoined are two or three words with hyphens between them: not-set-yet. Four may be a password that was made so.
	fewJoined = lazyregexp.New(`^` + joinedWord + `([_-]` + joinedWord + `){1,2}$`)
	// keyless are up to four words that are no key and no token, of which none is made, with the number of a version behind them.
	keyless = lazyregexp.New(`^([A-Z]?[a-z]{1,14}|[A-Z]{1,5})([_-]` + joinedWord + `){0,3}(-[0-9]\.[0-9])?$`)
)

// isSentence tells whether a text is several words.
func isSentence(value string) bool {
	words := strings.Fields(value)
	return len(words) > 1 && !slices.ContainsFunc(words, func(w string) bool { return !spoken.MatchString(w) })
}

// HasDigit tells whether b has a digit.
func HasDigit(b []byte) bool { return bytes.ContainsFunc(b, unicode.IsDigit) }

// IsExample tells a password that is none: a variable of a template, stars, or the word itself.
func IsExample(password string) bool {
	if strings.HasPrefix(password, "$") || strings.Trim(password, "*xX.%sd") == "" {
		return true
	}
	return slices.Contains([]string{"password", "passwd", "pass", "pwd", "secret"}, strings.ToLower(password))
}

// IsWellKnown tells whether nobody has a secret in a password: it is a word that everybody takes, or the name of its user,
// which is a word.
func IsWellKnown(user, password string) bool {
	lower := strings.ToLower(password)
	switch {
	case slices.Contains(commonWords, lower), slices.Contains(shownPasswords, lower):
		return true
	case user == "Aladdin": // of RFC 7617 and of RFC 2617
		return lower == "open sesame" || lower == "opensesame"
	}
	return user == password && user != "" && strings.Trim(user, "abcdefghijklmnopqrstuvwxyz_") == ""
}

// FilledUp tells whether half of b or more is runs of one character: ghp_xxxxxxxx…, AKIA0000….
func FilledUp(b []byte) bool {
	const shortestRun = 5 // bytes
	in, run := 0, 0
	for i, c := range b {
		if run++; i > 0 && c != b[i-1] {
			run = 1
		}
		switch {
		case run == shortestRun:
			in += shortestRun
		case run > shortestRun:
			in++
		}
	}
	return 2*in >= len(b) && in > 0
}

// shownPasswords are what documents take beside commonWords, which are longer.
var shownPasswords = []string{"admin", "changeit", "default", "demo", "dev", "example", "guest", "minioadmin", "mypassword", "mysecretpassword",
	"mysql", "pass123", "redis", "root", "sa", "secretpassword", "test", "test123", "user", "yourpassword"}

// BasicPassword returns the password of Basic credentials.
func BasicPassword(s string) (password string, ok bool) {
	_, password, ok = Basic(s)
	return password, ok
}

// Basic returns the user and the password of Basic credentials. ok is false for a word of prose.
func Basic(s string) (user, password string, ok bool) {
	raw, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(s, "="))
	if err != nil || len(raw) < 4 || !utf8.Valid(raw) || strings.ContainsFunc(string(raw), unicode.IsControl) {
		return "", "", false
	}
	user, password, ok = strings.Cut(string(raw), ":")
	return user, password, ok && password != ""
}

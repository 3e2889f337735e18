package scrub

import (
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/lazyregexp"
	"github.com/tapedeck-dev/tapedeck/scrub/internal/chars"
	"github.com/tapedeck-dev/tapedeck/scrub/internal/placeholders"
)

// searchable reports whether a known value can be searched for anywhere without replacing what is no secret: it is no word, nor an
// identifier, that other texts have too.
func searchable(value string) bool {
	if len(value) < minKnown || placeholders.Is(value) || !varied(value, 2) || slices.Contains(commonWords, strings.ToLower(value)) {
		return false
	}
	words := wordsIn(value)
	return len(words) == 0 || countCode(words) < len(words)
}

// learnable is searchable for a value that came with the traffic, where a name tells of more that is no secret: neither is a word, nor are
// two or three of which half are those of identifiers, a path of words, and a URL without credentials.
func learnable(value string) bool {
	words := wordsIn(value)
	switch {
	case !searchable(value), !varied(value, 4), len(words) == 1, len(words) <= 3 && 2*countCode(words) >= len(words) && len(words) > 0:
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
	// word is letters as people write a word, or several with a capital each.
	word = lazyregexp.New(`^([A-Z]+|[A-Z]?[a-z]+|[A-Z]?[a-z]{2,11}([A-Z][a-z]{2,11}){1,3})$`)
	// drawn is what no word has: five consonants in a row, or four vowels.
	drawn = lazyregexp.New(`(?i)[bcdfghjklmnpqrstvwxz]{5}|[aeiou]{4}`)
	vowel = lazyregexp.New(`(?i)[aeiouy]`)
)

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

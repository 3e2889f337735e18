package scrub

import (
	"bytes"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/lazyregexp"
)

// An answer has texts under the names of secrets that no request has: what is wrong with a password, what its field is called,
// what stands where there is none. A program reads them, so they must not become another text on replay.

const (
	joinedWord = `[A-Za-z][a-z]{0,14}`
	// maxSpoken bounds, in bytes, a text that speaks of a secret.
	maxSpoken = 1 << 10
)

var (
	// spoken is a word or a number of a sentence in any language, with its punctuation.
	spoken = lazyregexp.New(`^["'“‘«(¿¡]*(\p{L}[\p{L}\p{M}]*(['’/-]\p{L}[\p{L}\p{M}]*)*|[0-9]{1,4}|[–—-])["'”’»).,;:!?…]*$`)
	// fewJoined are two or three words with hyphens between them: not-set-yet. Four may be a password that was made so.
	fewJoined = lazyregexp.New(`^` + joinedWord + `([_-]` + joinedWord + `){1,2}$`)
	// keyless are up to four words that are no key and no token, of which none is made, with the number of a version behind them.
	keyless = lazyregexp.New(`^([A-Z]?[a-z]{1,14}|[A-Z]{1,5})([_-]` + joinedWord + `){0,3}(-[0-9]\.[0-9])?$`)
	ofWords = []byte("phrase")
)

// speaks tells whether the value that an answer has under a name is a text about a secret, and none.
func (s nameSaying) speaks(name []byte, value string) bool {
	switch {
	case s == saysAsOrdered || len(value) > maxSpoken:
		return false
	case isSentence(value):
		return !bytes.HasSuffix(bytes.ToLower(name), ofWords) || strings.IndexByte(".!?", value[len(value)-1]) >= 0 // who makes words up makes no sentence
	case s == saysPassword:
		return fewJoined.MatchString(value) || !searchable(value) && len(wordsIn(value)) > 0
	}
	return keyless.MatchString(value)
}

// isSentence tells whether a text is several words.
func isSentence(value string) bool {
	words := strings.Fields(value)
	for _, w := range words {
		if !spoken.MatchString(w) {
			return false
		}
	}
	return len(words) > 1
}

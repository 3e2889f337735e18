package scrub

import (
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/scrub/internal/chars"
)

// A say is what the name of a variable, a header, a query value or an argument says of its value.
type say uint8

const (
	sayNothing say = iota
	sayIfMade      // it is a secret where it looks made by a machine
	sayNoPath      // it is one where it is no path
	saySecret      // it is one, whatever it looks like
)

// NameSaysSecret reports whether the name of a variable, a header or a query value says that it holds a secret, whatever the
// value is: KEY, TOKEN, SECRET, PASSWORD, PASSWD, PASSPHRASE, CREDENTIAL or CREDENTIALS is one of its words, in any case, or
// PASS the last one. Words are separated by what is no letter and no digit, and by capitals (githubToken); some are written
// as one (APIKEY, PGPASSWORD).
func NameSaysSecret(name string) bool { return nameSays(name) == saySecret }

// says reports whether name says, by the rules of s, that value is a secret.
func (s *Scrubber) says(name, value string) bool {
	if value == "" || s.rules < RulesOfNames {
		return value != "" && nameSaidSecret(name)
	}
	switch nameSays(name) {
	case saySecret:
		return true
	case sayNoPath:
		return !strings.HasPrefix(value, "/") && !strings.HasPrefix(value, ".") && !strings.HasPrefix(value, "~")
	case sayIfMade:
		return holdsMade(value)
	}
	return false
}

// nameSaidSecret is the rule of versions before RulesOfNames.
func nameSaidSecret(name string) bool {
	for word := range strings.FieldsFuncSeq(name, func(r rune) bool { return r == '_' || r == '-' }) {
		switch strings.ToUpper(word) {
		case "KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "CREDENTIALS":
			return true
		}
	}
	return false
}

// nameSays is the rule of names.
func nameSays(name string) say {
	words := wordsOf(name)
	if len(words) == 0 {
		return sayNothing
	}
	if slices.ContainsFunc(words, opens) {
		return saySecret
	}
	switch last := words[len(words)-1]; {
	case last == "PASS":
		return saySecret
	case last == "PWD" && len(words) > 1: // PWD by itself is the working directory
		return sayNoPath
	case last == "PAT" && len(words) > 1, last == "AUTH", slices.Contains(manyWords, last),
		last == "CONFIG" && slices.Contains(words, "AUTH"):
		return sayIfMade
	}
	return sayNothing
}

var (
	openingWords = []string{
		"KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "CREDENTIALS", // and what is written as one
		"APIKEY", "ACCESSKEY", "SECRETKEY", "PRIVATEKEY", "AUTHKEY", "APITOKEN", "AUTHTOKEN", "ACCESSTOKEN", "REFRESHTOKEN",
		"IDTOKEN", "SESSIONTOKEN", "CSRFTOKEN", "XSRFTOKEN", "APISECRET", "CLIENTSECRET", "SSHPASS", "DBPASS",
	}
	// manyWords are the plurals of words that say so, which count things too (MAX_TOKENS).
	manyWords = []string{"KEYS", "TOKENS", "SECRETS", "PASSWORDS"}
)

// opens tells whether a word of a name, in capitals, says that what it names opens something.
func opens(word string) bool {
	return slices.Contains(openingWords, word) || len(word) > len("PASSWORD") && strings.HasSuffix(word, "PASSWORD")
}

// wordsOf returns the words of a name, in capitals and without the digits that number them.
func wordsOf(name string) (words []string) {
	add := func(word string) {
		if word = strings.TrimRight(word, "0123456789"); word != "" {
			words = append(words, strings.ToUpper(word))
		}
	}
	start := 0
	for i := range len(name) {
		switch {
		case !chars.IsAlnum(name[i]):
			add(name[start:i])
			start = i + 1
		case i > start && beginsWord(name, i):
			add(name[start:i])
			start = i
		}
	}
	add(name[start:])
	return words
}

// beginsWord tells whether the letter at i is a capital with which a word begins: githubToken, APIKey.
func beginsWord(name string, i int) bool {
	if !chars.IsUpper(name[i]) {
		return false
	}
	return !chars.IsUpper(name[i-1]) || i+1 < len(name) && name[i+1] >= 'a' && name[i+1] <= 'z'
}

// holdsMade tells whether a value, or what is behind the name of a scheme in it, or a part of it, looks made by a machine and
// opens something.
func holdsMade(value string) bool {
	if strings.Contains(value, "://") {
		return false
	}
	return slices.ContainsFunc(strings.FieldsFunc(value, isListSign), looksMade)
}

// isListSign tells what stands between the parts of a value, those of JSON among it.
func isListSign(r rune) bool { return strings.ContainsRune(" \t\r\n,;|:\"'{}[]", r) }

// looksMade tells a part of a value that looks made: 16 bytes or more with a letter and a digit, or 8 with a capital, a small
// letter and a digit; no path and no name of a host.
func looksMade(part string) bool {
	const least, leastOfThree = 16, 8
	var lower, upper, digits, dots bool
	for i := range len(part) {
		c := part[i]
		lower = lower || c >= 'a' && c <= 'z'
		upper = upper || chars.IsUpper(c)
		digits = digits || chars.IsDigit(c)
		dots = dots || c == '.'
	}
	switch {
	case !digits || !lower && !upper || strings.ContainsAny(part[:1], "/.~"):
		return false
	case dots && !upper:
		return false
	}
	return len(part) >= least || len(part) >= leastOfThree && lower && upper
}

package names

import (
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/lazyregexp"
	"github.com/tapedeck-dev/tapedeck/scrub/internal/chars"
)

var (
	openingWords = []string{
		"KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "CREDENTIALS", // and what is written as one
		"APIKEY", "ACCESSKEY", "SECRETKEY", "PRIVATEKEY", "AUTHKEY", "APITOKEN", "AUTHTOKEN", "ACCESSTOKEN", "REFRESHTOKEN",
		"IDTOKEN", "SESSIONTOKEN", "CSRFTOKEN", "XSRFTOKEN", "APISECRET", "CLIENTSECRET", "SSHPASS", "DBPASS",
	}
	// manyWords are the plurals of words that say so, which count things too (MAX_TOKENS).
	manyWords = []string{"KEYS", "TOKENS", "SECRETS", "PASSWORDS"}
	// describing are last words of the names of members that open nothing.
	describing = []string{"ID", "NAME", "USER", "USERNAME", "LOGIN", "EMAIL", "TYPE", "HOST", "HOSTNAME", "PORT", "URL", "URI", "ENDPOINT",
		"ADDRESS", "DOMAIN", "REGION", "DATABASE", "DB", "DBNAME", "ENGINE", "PROJECT", "TENANT", "SCOPE", "SCOPES", "VERSION", "ARN", "ACCOUNT",
		"EXPIRY", "EXPIRES", "EXPIRATION", "DATE", "PATH", "FILE"}
	// keysOfRows are words before KEY that make it that of a row, of a cache or of a list, which opens nothing.
	keysOfRows = []string{"SORT", "PRIMARY", "FOREIGN", "PARTITION", "RANGE", "GROUP", "ORDER", "UNIQUE", "COMPOSITE", "NATURAL",
		"SURROGATE", "CACHE", "ROUTING", "LOOKUP", "INDEX", "JOIN", "DEDUP", "SHARD"}
	// keysThatOpen are words before KEY that people make up words for.
	keysThatOpen = []string{"API", "SECRET", "PRIVATE", "ACCESS", "MASTER", "ENCRYPTION", "ENCRYPT", "SIGNING", "SIGN", "AUTH",
		"LICENSE", "SESSION", "COOKIE", "JWT", "HMAC", "APP", "ADMIN", "SHARED", "SERVICE"}
)

// opens tells whether a word of a name, in capitals, says that what it names opens something.
func opens(word string) bool {
	return slices.Contains(openingWords, word) || len(word) > len("PASSWORD") && strings.HasSuffix(word, "PASSWORD")
}

// wordsOf returns the words of a name, in capitals and without the digits that number them. They end at what is no letter and no digit,
// and at capitals (githubToken, APIKey).
func wordsOf(name string) (words []string) {
	start := 0
	for i := 0; i <= len(name); i++ {
		isSign := i == len(name) || !chars.IsAlnum(name[i])
		isCapital := !isSign && i > start && chars.IsUpper(name[i]) &&
			(!chars.IsUpper(name[i-1]) || i+1 < len(name) && chars.IsLower(name[i+1]))
		if !isSign && !isCapital {
			continue
		}
		if word := strings.TrimRight(name[start:i], "0123456789"); word != "" {
			words = append(words, strings.ToUpper(word))
		}
		if start = i; isSign {
			start++
		}
	}
	return words
}

// A say is what the name of a variable, a header, a query value or an argument says of its value.
type say uint8

const (
	sayNothing say = iota
	sayIfMade      // it is a secret where it looks made by a machine
	sayNoPath      // it is one where it is no path
	saySecret      // it is one, whatever it looks like
)

func sayingOf(words []string) say {
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

// SaySecret reports whether the name of a variable, a header or a query value says that it holds a secret, whatever the
// value is: KEY, TOKEN, SECRET, PASSWORD, PASSWD, PASSPHRASE, CREDENTIAL or CREDENTIALS is one of its words, in any case, or
// PASS the last one. Some are written as one (APIKEY, PGPASSWORD).
func SaySecret(name string) bool { return sayingOf(wordsOf(name)) == saySecret }

// SayAnything reports whether a name may say of some value that it is a secret.
func SayAnything(name string) bool { return sayingOf(wordsOf(name)) != sayNothing }

// IsPlural tells whether a name says that its value may be a list of secrets.
func IsPlural(name string) bool {
	words := wordsOf(name)
	return len(words) > 0 && slices.Contains(manyWords, words[len(words)-1])
}

// Say reports whether a name says that a value is a secret.
func Say(name, value string) bool {
	if value == "" {
		return false
	}
	switch sayingOf(wordsOf(name)) {
	case saySecret:
		return true
	case sayNoPath:
		return !strings.HasPrefix(value, "/") && !strings.HasPrefix(value, ".") && !strings.HasPrefix(value, "~")
	case sayIfMade:
		return holdsMade(value)
	}
	return false
}

// OfVariable is Say for variables and arguments, of which some values are none in spite of their names: the path of the file that the
// secret lies in, the name of a column (SORT_KEY=created_at). A program needs those as they are, and its files have them in their own
// names.
func OfVariable(name, value string) bool {
	return Say(name, value) && !namesPath(name, value) && !namesColumn(name, value)
}

// MemberOpens tells whether a string in the JSON of a secret variable is one. The variable's name speaks for all of them, so
// it is any but what says whom, what or where the secret is for.
func MemberOpens(name, value string) bool {
	words, last := wordsOf(name), ""
	if len(words) > 0 {
		last = words[len(words)-1]
	}
	switch {
	case value == "", strings.Contains(value, "://"):
		return false
	case slices.Contains(describing, last):
		return slices.ContainsFunc(words, func(w string) bool { return w == "SECRET" || w == "PASSWORD" || w == "PASSPHRASE" })
	}
	return sayingOf(words) != sayNothing || last == "PW" || last == "PWD" || !identifier.MatchString(value)
}

// SettingOpens tells whether the name of a setting in a list (Server=db;Pwd=V) says that its value is a secret. Pwd is no directory here.
func SettingOpens(name string) bool { return SaySecret(name) || strings.EqualFold(name, "pwd") }

// IsProxy tells whether a variable is that of a proxy: HTTP_PROXY, https_proxy, npm_config_proxy.
func IsProxy(name string) bool {
	words := strings.Split(strings.ToUpper(name), "_")
	return slices.Contains(words, "PROXY") && words[0] != "NO"
}

// IsVariable tells the name of a variable, in capitals.
func IsVariable(name string) bool { return strings.ToUpper(name) == name }

// ofFiles are what the names of variables and arguments end in that hold a path, and homes how a path begins that no key
// begins like.
var (
	ofFiles    = []string{"file", "filename", "path", "dir", "directory", "folder"}
	homes      = []string{"~/", "./", "../", `.\`, `..\`, "file://"}
	identifier = lazyregexp.New(`^[A-Za-z]+([_.-][A-Za-z]+)*$`)
	column     = lazyregexp.New(`^[a-z]{1,16}(_[a-z]{1,16})+$`)
)

// namesPath tells whether a value is the path of a file by its name or by how it begins. One that may be the secret itself
// (people put the JSON of an account where its file is asked for) is not.
func namesPath(name, value string) bool {
	if strings.ContainsAny(value, "{\n\"") || strings.Contains(value, "-----") {
		return false
	}
	return slices.ContainsFunc(homes, func(h string) bool { return strings.HasPrefix(value, h) }) ||
		strings.EqualFold(name, "GOOGLE_APPLICATION_CREDENTIALS") ||
		slices.ContainsFunc(ofFiles, func(word string) bool { return lastWordIs(name, word) })
}

// lastWordIs tells whether word, in lower case, is the last one of a name: behind a separator, or with a capital of its own.
func lastWordIs(name, word string) bool {
	at := len(name) - len(word)
	if at <= 0 || !strings.EqualFold(name[at:], word) {
		return false
	}
	return !chars.IsAlnum(name[at-1]) || chars.IsUpper(name[at]) && !chars.IsUpper(name[at-1])
}

// IsPath tells whether a value in a text is the path of a file.
func IsPath(name, value string) bool {
	return namesPath(name, value) || strings.HasPrefix(value, "/") || strings.Contains(value, "/") && strings.Contains(value, ".")
}

// namesColumn tells whether a value is the name of a column or of its like: words, under a name that ends in KEY.
func namesColumn(name, value string) bool {
	words := wordsOf(name)
	last := len(words) - 1
	switch {
	case last < 0 || words[last] != "KEY":
		return false
	case last > 0 && slices.Contains(keysOfRows, words[last-1]):
		return identifier.MatchString(value)
	case slices.ContainsFunc(words, func(w string) bool { return slices.Contains(keysThatOpen, w) }):
		return false
	}
	return column.MatchString(value) && !SaySecret(value)
}

var (
	// secretWords say that a secret follows, wherever they stand in a name: a token, an apikey, an authToken.
	secretWords = []string{"key", "token", "secret", "passw", "pwd", "credential", "bearer"}
	// idWords are what a name ends in that holds no secret, whatever else it says.
	idWords = []string{"id", "ids", "uuid", "name", "url", "uri", "type"}
)

// PartSays tells whether a part of a name, behind that of a service, says that it is of a secret.
func PartSays(part []byte) bool {
	name := strings.TrimRight(string(part), " \t")
	lower := strings.ToLower(name)
	endsIn := func(w string) bool { return lower == w || lastWordIs(name, w) }
	if slices.ContainsFunc(idWords, endsIn) {
		return false
	}
	if slices.ContainsFunc(secretWords, func(w string) bool { return strings.Contains(lower, w) }) {
		return true
	}
	_, after, auth := strings.Cut(lower, "auth")
	author := strings.HasPrefix(after, "or") && !strings.HasPrefix(after, "ori")
	return auth && !author || endsIn("pat") // a personal access token
}

package scrub

import (
	"bytes"
	"slices"
	"strings"
	"unicode"

	"github.com/tapedeck-dev/tapedeck/scrub/internal/chars"
)

// maxName bounds, in bytes, a name that says something.
const maxName = 64

// secretNames tell by the name of a member of JSON, a form or a query whether its value is a secret. A name counts without its
// separators and in any case: access_token, accessToken and Access-Token are one.
//
// A name that is one of the list, of Options.SecretNames, or that ends in password says so whatever the value. Another whose
// last word is token, secret, key or credential says so of a value that looks made by a machine, for such a name has other uses
// too: the token of a page, the key of a cache, the secret's own name. What ends in anything else (token_type, max_tokens, key_id,
// password_policy) says nothing. A name in capitals is that of a variable, of which any word counts (NameSaysSecret).
type secretNames struct {
	exact   map[string]bool // flat; nil for none
	general bool            // the list and the rule count too: what was recorded before them compares without
	texts   bool            // those of headers, of pairs and in texts count too
	tools   bool            // what tools are given and answer: toolNames say so of any value, and count in small letters in texts
}

// toolNames are the members of a message of MCP whose strings are secrets, short ones too: flat. Other programs that keep such
// messages hide the same.
var toolNames = map[string]bool{"token": true, "authorization": true, "proxyauthorization": true, "apikey": true, "xapikey": true, "secret": true,
	"password": true, "passwd": true, "passphrase": true, "accesstoken": true, "refreshtoken": true, "idtoken": true, "sessiontoken": true,
	"authtoken": true, "bearertoken": true, "clientsecret": true, "credential": true, "credentials": true, "cookie": true, "setcookie": true,
	"privatekey": true, "secretkey": true, "accesskey": true, "secretaccesskey": true}

// noSecrets are what such members are set to where they hold none: what JSON, schemas, settings of fetch and of cookies say.
var noSecrets = map[string]bool{"true": true, "false": true, "null": true, "none": true, "nil": true, "undefined": true,
	"string": true, "number": true, "integer": true, "boolean": true, "object": true, "array": true, "required": true, "optional": true,
	"include": true, "omit": true, "same-origin": true, "essential": true, "necessary": true, "strict": true, "bearer": true, "basic": true}

// isNoSecret reports whether a value is one of noSecrets.
func isNoSecret(value string) bool { return noSecrets[strings.ToLower(value)] }

// saysLittle reports whether a value is too short to be a secret by one of toolNames alone.
func saysLittle(value string) bool {
	const least = 4 // bytes
	return len(value) < least && !hasDigit([]byte(value))
}

// isTool reports whether a name is one of toolNames.
func isTool(name []byte) bool {
	var buf [maxName]byte
	return len(name) <= maxName && toolNames[string(flat(buf[:0], name))]
}

func newSecretNames(rules int, more []string) *secretNames {
	n := &secretNames{general: rules >= RulesOfNames, texts: rules >= rulesTexts}
	if len(more) > 0 {
		n.exact = make(map[string]bool)
	}
	for _, name := range more {
		n.exact[string(flat(nil, []byte(name)))] = true
	}
	return n
}

// ordered reports whether a name is one of Options.SecretNames.
func (n *secretNames) ordered(name string) bool {
	if n.exact == nil || len(name) > maxName {
		return false
	}
	var buf [maxName]byte
	return n.exact[string(flat(buf[:0], []byte(name)))]
}

// A nameSaying is what a name says of its value.
type nameSaying uint8

const (
	saysNothing     nameSaying = iota
	saysPerhaps                // a secret where it looks like one
	saysUnbroken               // a secret, in which nothing is blank
	saysPassword               // a secret
	saysAsOrdered              // a secret, for who runs this says so
	saysCookies                // cookies
	saysCredentials            // what Authorization holds
)

// of returns what a name says.
func (n *secretNames) of(name []byte) nameSaying {
	if len(name) == 0 || len(name) > maxName {
		return saysNothing
	}
	var buf [maxName]byte
	lower := flat(buf[:0], name)
	switch {
	case n.exact[string(lower)]:
		return saysAsOrdered
	case !n.general:
		return saysNothing
	}
	for len(lower) > 0 && chars.IsDigit(lower[len(lower)-1]) {
		lower = lower[:len(lower)-1]
	}
	if len(lower) == 0 {
		return saysNothing
	}
	if n.texts {
		for _, h := range namesOfHeaders[lower[len(lower)-1]] {
			if h.name == string(lower) {
				return h.says
			}
		}
	}
	for _, word := range lastWords[lower[len(lower)-1]] {
		if len(word) <= len(lower) && string(lower[len(lower)-len(word):]) == word {
			return sayingOf(string(name), string(lower), word)
		}
	}
	for _, plain := range plainNames {
		if string(lower) == plain {
			return saysUnbroken
		}
	}
	if bytes.ContainsFunc(name, unicode.IsLower) {
		return saysNothing
	}
	return ofVariable(string(name))
}

// lastWords are what the name of a secret ends in, by the last letter.
var lastWords = [256][]string{'d': {"password", "passwd"}, 'e': {"passphrase"}, 'n': {"token"}, 't': {"secret"}, 'y': {"key"},
	's': {"credentials"}, 'l': {"credential"}}

// sayingOf returns what a name says that ends in word.
func sayingOf(name, lower, word string) nameSaying {
	before, ok := wordBefore(name, word)
	switch {
	case strings.HasPrefix(word, "pass"):
		return saysPassword
	case slices.Contains(surely[word], strings.TrimSuffix(lower, word)):
		return surelySays[word]
	case !ok: // monkey, hotkey
		return saysNothing
	case slices.Contains(surely[word], before):
		return surelySays[word]
	case word == "key" && !slices.Contains(keysOf, before), word == "token" && slices.Contains(harmlessTokens, before):
		return saysNothing
	}
	return saysPerhaps
}

// ofVariable is what the name of an environment variable says.
func ofVariable(name string) nameSaying {
	if name == strings.ToUpper(name) && NameSaysSecret(name) && strings.ContainsAny(name, "_-") {
		return saysPerhaps
	}
	return saysNothing
}

var (
	// surely are the words that make a secret of the next, whatever its value.
	surely = map[string][]string{
		"token": {"access", "refresh", "id", "session", "auth", "bearer", "api", "oauth", "csrf", "xsrf", "bot", "private", "personal",
			"personalaccess", "security", "oauthaccess", "useraccess", "device", "registration", "webhook"},
		"secret": {"client", "app", "api", "consumer", "shared", "webhook", "signing", "token", "oauthtoken", "jwt", "session", "cookie"},
		"key": {"api", "private", "secret", "secretaccess", "xapi", "account", "signing", "encryption", "master", "license",
			"subscription", "apisecret", "auth", "storageaccount"},
	}
	// surelySays is what such a name says. People make up secrets, of several words too; keys and tokens they do not.
	surelySays = map[string]nameSaying{"token": saysUnbroken, "key": saysUnbroken, "secret": saysPassword}
	// plainNames are names of secrets that end in no such word.
	plainNames = []string{"clientassertion", "codeverifier", "devicecode"}
	// keysOf are words after which a key may open something.
	keysOf = []string{"access", "admin", "app", "application", "client", "consumer", "deploy", "hmac", "integration", "server", "service",
		"shared", "ssh", "storage", "user", "webhook", "anthropic", "azure", "gemini", "google", "mistral", "openai", "openrouter"}
	// harmlessTokens are words after which a token opens nothing: it marks a place in a list, a kind of token of a model, one
	// attempt of a request.
	harmlessTokens = []string{"page", "next", "nextpage", "prev", "previous", "continuation", "continue", "sync", "cursor", "resume",
		"pagination", "paging", "scroll", "skip", "start", "starting", "end", "stop", "cancel", "cancellation", "progress", "change",
		"idempotency", "bos", "eos", "pad", "unk", "sep", "cls", "mask", "special", "image", "audio", "first", "last", "top", "input",
		"output", "prompt", "per", "max", "min"}
)

// wordBefore returns the word before the last one of a name, in lower case, "" where there is none. ok is false where the last
// one is none by itself.
func wordBefore(name, word string) (before string, ok bool) {
	name = strings.TrimRight(name, "0123456789_-.[]")
	if len(name) < len(word) {
		return "", false
	}
	at := len(name) - len(word)
	switch {
	case !strings.EqualFold(name[at:], word): // api_key_s
		return "", false
	case at == 0:
		return "", true
	case chars.IsLetter(name[at-1]) && (chars.IsLower(name[at]) || !chars.IsLower(name[at-1]) && !chars.IsLower(name[at+1])): // no separator, no capital
		return "", false
	}
	end := at
	for end > 0 && !chars.IsLetter(name[end-1]) {
		end--
	}
	start := end
	for start > 0 && chars.IsLetter(name[start-1]) {
		start--
		if start > 0 && !chars.IsLower(name[start]) && chars.IsLower(name[start-1]) {
			break // nextPageToken: a word begins with its capital
		}
	}
	return strings.ToLower(name[start:end]), true
}

// flat appends a name in lower case and without its separators to dst.
func flat(dst, name []byte) []byte {
	for _, c := range name {
		switch {
		case c >= 'A' && c <= 'Z':
			dst = append(dst, c|0x20)
		case chars.IsLetter(c), chars.IsDigit(c), c >= 0x80:
			dst = append(dst, c)
		}
	}
	return dst
}

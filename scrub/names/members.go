package names

import (
	"bytes"
	"slices"
	"strings"
	"unicode"

	"github.com/tapedeck-dev/tapedeck/scrub/internal/chars"
	"github.com/tapedeck-dev/tapedeck/scrub/internal/placeholders"
)

const (
	// MaxName bounds, in bytes, a name that says something.
	MaxName = 64
	// MaxValue bounds, in bytes, the value of a name.
	MaxValue = 16 << 10
)

// Members tell by the name of a member of JSON, a form or a query whether its value is a secret. A name counts without its
// separators and in any case: access_token, accessToken and Access-Token are one.
//
// A name that is one of the list, of those that the caller orders, or that ends in password says so whatever the value. Another whose
// last word is token, secret, key or credential says so of a value that looks made by a machine, for such a name has other uses
// too: the token of a page, the key of a cache, the secret's own name. What ends in anything else (token_type, max_tokens, key_id,
// password_policy) says nothing. A name in capitals is that of a variable, of which any word counts (SaySecret).
type Members struct {
	exact   map[string]bool // flat; nil for none
	general bool            // the list and the rule count too
}

// NewMembers returns those that more names, and with general all that are known.
func NewMembers(general bool, more []string) *Members {
	m := &Members{general: general}
	if len(more) > 0 {
		m.exact = make(map[string]bool)
	}
	for _, name := range more {
		m.exact[string(flat(nil, []byte(name)))] = true
	}
	return m
}

// Any reports whether any name says of a value that it is a secret.
func (m *Members) Any() bool { return m.general || len(m.exact) > 0 }

// General reports whether names in texts do.
func (m *Members) General() bool { return m.general }

// Ordered reports whether a name is one of those that the caller ordered.
func (m *Members) Ordered(name string) bool {
	var buf [MaxName]byte
	return m.exact != nil && len(name) <= MaxName && m.exact[string(flat(buf[:0], []byte(name)))]
}

// A Saying is what a name says of its value.
type Saying uint8

// The sayings.
const (
	Nothing     Saying = iota
	Perhaps            // a secret where it looks like one
	Unbroken           // a secret, in which nothing is blank
	Password           // a secret
	AsOrdered          // a secret, for who runs this says so
	Cookies            // cookies
	Credentials        // what Authorization holds
)

// Of returns what a name says.
func (m *Members) Of(name []byte) Saying {
	if len(name) == 0 || len(name) > MaxName {
		return Nothing
	}
	var buf [MaxName]byte
	lower := flat(buf[:0], name)
	switch {
	case m.exact[string(lower)]:
		return AsOrdered
	case !m.general:
		return Nothing
	}
	if lower = bytes.TrimRight(lower, "0123456789"); len(lower) == 0 {
		return Nothing
	}
	for _, whole := range wholeNames[lower[len(lower)-1]] {
		if whole.name == string(lower) {
			return whole.says
		}
	}
	for _, word := range lastWords[lower[len(lower)-1]] {
		if bytes.HasSuffix(lower, []byte(word)) {
			return ofLastWord(string(name), string(lower), word)
		}
	}
	if bytes.ContainsFunc(name, unicode.IsLower) || !IsVariable(string(name)) || !bytes.ContainsAny(name, "_-") || !SaySecret(string(name)) {
		return Nothing
	}
	return Perhaps
}

// A wholeName is a name, flat, and what it says.
type wholeName struct {
	name string
	says Saying
}

// Headers that count as members too.
var (
	// credentialHeaders are Authorization, and those that proxies and programs put credentials into as into that.
	credentialHeaders = []string{"authorization", "proxy-authorization", "auth", "x-auth", "x-api-auth", "authentication",
		"x-authentication", "x-authorization", "x-forwarded-authorization", "x-original-authorization"}
	// sessionHeaders are of no word that says so.
	sessionHeaders = []string{"cookie2", "x-sid", "x-session-id", "x-goog-iap-jwt-assertion"}
)

// wholeNames are those that say something as a whole, by the last letter: of headers, and of secrets that end in none of lastWords.
var wholeNames = func() (out [256][]wholeName) {
	add := func(says Saying, names ...string) {
		for _, name := range names {
			lower := strings.TrimRight(string(flat(nil, []byte(name))), "0123456789")
			out[lower[len(lower)-1]] = append(out[lower[len(lower)-1]], wholeName{lower, says})
		}
	}
	add(Cookies, "cookie", "set-cookie")
	add(Credentials, credentialHeaders...)
	add(Perhaps, sessionHeaders...)
	add(Unbroken, "clientassertion", "codeverifier", "devicecode")
	return out
}()

// lastWords are what the name of a secret ends in, by the last letter.
var lastWords = [256][]string{'d': {"password", "passwd"}, 'e': {"passphrase"}, 'n': {"token"}, 't': {"secret"}, 'y': {"key"},
	's': {"credentials"}, 'l': {"credential"}}

var (
	// surely are the words that make a secret of the next, whatever its value, and surelySays is what such a name says. People make up
	// secrets, of several words too; keys and tokens they do not.
	surely = map[string][]string{
		"token": {"access", "refresh", "id", "session", "auth", "bearer", "api", "oauth", "csrf", "xsrf", "bot", "private", "personal",
			"personalaccess", "security", "oauthaccess", "useraccess", "device", "registration", "webhook"},
		"secret": {"client", "app", "api", "consumer", "shared", "webhook", "signing", "token", "oauthtoken", "jwt", "session", "cookie"},
		"key": {"api", "private", "secret", "secretaccess", "xapi", "account", "signing", "encryption", "master", "license",
			"subscription", "apisecret", "auth", "storageaccount"},
	}
	surelySays = map[string]Saying{"token": Unbroken, "key": Unbroken, "secret": Password}
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

// ofLastWord returns what a name says that ends in word.
func ofLastWord(name, lower, word string) Saying {
	before, ok := wordBefore(name, word)
	switch {
	case strings.HasPrefix(word, "pass"):
		return Password
	case slices.Contains(surely[word], strings.TrimSuffix(lower, word)):
		return surelySays[word]
	case !ok: // monkey, hotkey
		return Nothing
	case slices.Contains(surely[word], before):
		return surelySays[word]
	case word == "key" && !slices.Contains(keysOf, before), word == "token" && slices.Contains(harmlessTokens, before):
		return Nothing
	}
	return Perhaps
}

// wordBefore returns the word before the last one of a name, in lower case, "" where there is none. ok is false where the last
// one is none by itself. Words are of letters alone here, and an acronym is one with the word behind it (nextPAGEToken).
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
		case chars.IsUpper(c):
			dst = append(dst, c|0x20)
		case chars.IsAlnum(c), c >= 0x80:
			dst = append(dst, c)
		}
	}
	return dst
}

// nameEnds has the last three letters of the names that may say something, five bits each: of most words of a text it tells at once
// that they are none.
var nameEnds = func() (ends [1 << 15 / 64]uint64) {
	add := func(name string) {
		at := endOf([]byte(name), len(name))
		ends[at/64] |= 1 << (at % 64)
	}
	for last := range lastWords {
		for _, word := range lastWords[last] {
			add(word)
		}
		for _, whole := range wholeNames[last] {
			add(whole.name)
		}
	}
	return ends
}()

// endOf is where the three letters that end before i have their bit.
func endOf(b []byte, i int) int {
	return int(b[i-3]&0x1f)<<10 | int(b[i-2]&0x1f)<<5 | int(b[i-1]&0x1f)
}

// MayEnd tells whether what ends before i may be a name that says something. Of a variable's, in capitals, any word may, and
// digits may follow.
func MayEnd(b []byte, i int) bool {
	if i < 3 {
		return false
	}
	if last := b[i-1]; !chars.IsLower(last) {
		return chars.IsUpper(last) || chars.IsDigit(last)
	}
	at := endOf(b, i)
	return nameEnds[at/64]>>(at%64)&1 != 0
}

// beginsWhole are the letters with which wholeNames begin.
var beginsWhole = func() (out [256]bool) {
	for _, names := range wholeNames {
		for _, h := range names {
			out[h.name[0]] = true
		}
	}
	return out
}()

// MayBeHeader tells whether a name in a text may be that of a header: one that is none by itself has a hyphen at least.
func MayBeHeader(name []byte) bool {
	return len(name) > 0 && (bytes.IndexByte(name, '-') >= 0 || beginsWhole[name[0]|0x20])
}

// IsSecret tells whether a value is one of which the name says so. Numbers, in JSON, are none. A value that is too short or too
// common to be looked for elsewhere is for the caller to leave alone.
func (s Saying) IsSecret(value string) bool {
	switch {
	case s == Nothing || value == "":
		return false
	case s == AsOrdered || strings.HasPrefix(value, placeholders.Prefix):
		return true
	case IsReference(value):
		return false
	case s == Password || strings.Contains(value, "-----BEGIN "):
		return true
	case strings.ContainsFunc(value, unicode.IsSpace): // a text about a secret
		return false
	}
	return s == Unbroken || made(value)
}

// IsOfText tells what names in texts say. What holds cookies or credentials does so as a header alone.
func (s Saying) IsOfText() bool { return s != Nothing && s != Cookies && s != Credentials }

// IsAssigned tells whether a value of a text is a secret of a variable or of a flag. Code and words are none, and behind a flag stand more
// words than behind a variable.
func (s Saying) IsAssigned(name, value string) bool {
	return IsToken(value) && !Ordinary(value) && !IsPath(name, value) && (IsVariable(name) || HasDigit([]byte(value))) && s.IsSecret(value)
}

// SpeaksOf tells whether the value that an answer has under a name is a text about a secret, and none.
func (s Saying) SpeaksOf(name []byte, value string) bool {
	switch {
	case s == AsOrdered || len(value) > maxSpoken:
		return false
	case isSentence(value): // who makes up the words of a phrase makes no sentence
		return !bytes.HasSuffix(bytes.ToLower(name), []byte("phrase")) || strings.IndexByte(".!?", value[len(value)-1]) >= 0
	case s == Password:
		return fewJoined.MatchString(value) || !Searchable(value) && AreWords(value)
	}
	return keyless.MatchString(value)
}

// Within returns the secrets in the value of a name, in the order in which they stand.
func (s Saying) Within(name []byte, value string) (secrets []string) {
	switch s {
	case Cookies:
		pairs := strings.Split(value, ";")
		if len(name) > 0 && (name[0]|0x20) == 's' { // of Set-Cookie the others are attributes
			pairs = pairs[:1]
		}
		for _, pair := range pairs {
			_, value, named := strings.Cut(strings.TrimSpace(pair), "=")
			if value = strings.Trim(value, `"`); named && IsToken(value) && !Ordinary(value) {
				secrets = append(secrets, value)
			}
		}
		return secrets
	case Credentials:
		return inCredentials(value)
	}
	if s.IsSecret(value) {
		return []string{value}
	}
	return nil
}

// inCredentials returns what follows the name of a scheme, of Basic its password too, or what looks made where there is none. What is
// signed for one request is a list, and none.
func inCredentials(value string) []string {
	scheme, rest, ok := strings.Cut(strings.TrimSpace(value), " ")
	if !ok {
		if IsToken(value) && LooksMade(value) {
			return []string{value}
		}
		return nil
	}
	rest = strings.TrimSpace(rest)
	if strings.EqualFold(scheme, "basic") {
		if password, ok := BasicPassword(rest); ok {
			return []string{password, rest}
		}
	}
	if IsToken(rest) && !strings.Contains(rest, ",") && HasDigit([]byte(rest)) && !Ordinary(rest) {
		return []string{rest}
	}
	return nil
}

// toolNames are the members of a message of MCP whose strings are secrets, short ones too: flat. Other programs that keep such
// messages hide the same.
var toolNames = map[string]bool{"token": true, "authorization": true, "proxyauthorization": true, "apikey": true, "xapikey": true, "secret": true,
	"password": true, "passwd": true, "passphrase": true, "accesstoken": true, "refreshtoken": true, "idtoken": true, "sessiontoken": true,
	"authtoken": true, "bearertoken": true, "clientsecret": true, "credential": true, "credentials": true, "cookie": true, "setcookie": true,
	"privatekey": true, "secretkey": true, "accesskey": true, "secretaccesskey": true}

// IsTool reports whether a name is one of toolNames.
func IsTool(name []byte) bool {
	var buf [MaxName]byte
	return len(name) <= MaxName && toolNames[string(flat(buf[:0], name))]
}

// noSecrets are what such members are set to where they hold none: what JSON, schemas, settings of fetch and of cookies say.
var noSecrets = map[string]bool{"true": true, "false": true, "null": true, "none": true, "nil": true, "undefined": true,
	"string": true, "number": true, "integer": true, "boolean": true, "object": true, "array": true, "required": true, "optional": true,
	"include": true, "omit": true, "same-origin": true, "essential": true, "necessary": true, "strict": true, "bearer": true, "basic": true}

// OfTool tells whether the value of one of toolNames is a secret whatever it looks like, or none: what is too short to be one by
// such a name alone is neither.
func OfTool(value string) (secret, none bool) {
	const least = 4 // bytes
	if noSecrets[strings.ToLower(value)] {
		return false, true
	}
	return len(value) >= least || HasDigit([]byte(value)), false
}

// SaysInLine tells whether a name in small letters says in a line that a secret follows: one that ends in api key, secret, token or
// password.
func (m *Members) SaysInLine(name []byte) bool {
	if len(name) > MaxName || m.Of(name) == Nothing {
		return false
	}
	var buf [MaxName]byte
	lower := flat(buf[:0], name)
	return slices.ContainsFunc([]string{"apikey", "secret", "token", "password", "passwd"}, func(w string) bool { return bytes.HasSuffix(lower, []byte(w)) })
}

// IsSaid tells whether a value of 8 bytes or more behind such a name and a sign is a secret: no code, no words, no path and no reference. A
// number is the secret of a password alone.
func IsSaid(name, value string) bool {
	switch {
	case len(value) < MinKnown, placeholders.Is(value), IsFromOutside(value), IsReference(value),
		strings.ContainsAny(value, "()[]{}<>"), strings.Contains(value, "://"), IsPath(name, value), IsExample(value), FilledUp([]byte(value)):
		return false
	case strings.Trim(value, "0123456789") == "":
		return strings.HasPrefix(strings.ToLower(name[max(0, len(name)-len("password")):]), "passw")
	case strings.ContainsAny(value, "_./-") && Ordinary(value): // decode_v2
		return false
	}
	return !AreWords(value)
}

// OfLine tells whether a value in a line for people is a secret, of which the name says so, and no text about one: it looks made by a
// machine, or the name is that of a variable, or says it in a line.
func (m *Members) OfLine(name, value string) bool {
	switch {
	case len(value) < MinKnown, placeholders.Is(value), IsFromOutside(value), IsReference(value):
		return false
	case IsVariable(name):
		return Searchable(value) && !strings.ContainsAny(value, "()")
	case m.SaysInLine([]byte(name)):
		return IsSaid(name, value)
	}
	return LooksMade(value) && !strings.ContainsAny(value, "()[]{}")
}

// MayBeIn tells whether a name in a line may be that of a secret. Of most it says no at once: in a secret's name is a word that begins
// with the first letters of one of KEY, TOKEN, SECRET, PASSWORD, SSHPASS, PWD, CREDENTIAL, AUTH, PAT, COOKIE.
func MayBeIn(name []byte) bool {
	const firsts = 1<<('k'-'a') | 1<<('t'-'a') | 1<<('s'-'a') | 1<<('p'-'a') | 1<<('c'-'a') | 1 // and a
	for i := 0; i+2 < len(name); i++ {
		c := name[i]&0x1f - 1
		if uint32(firsts)>>c&1 == 0 {
			continue
		}
		switch uint32(name[i]|0x20)<<16 | uint32(name[i+1]|0x20)<<8 | uint32(name[i+2]|0x20) {
		case 'p'<<16 | 'a'<<8 | 't':
			if i+3 < len(name) && chars.IsAlnum(name[i+3]) {
				continue // of a path
			}
		case 'k'<<16 | 'e'<<8 | 'y', 't'<<16 | 'o'<<8 | 'k', 's'<<16 | 'e'<<8 | 'c', 'p'<<16 | 'a'<<8 | 's', 's'<<16 | 's'<<8 | 'h',
			'p'<<16 | 'w'<<8 | 'd', 'c'<<16 | 'r'<<8 | 'e', 'a'<<16 | 'u'<<8 | 't', 'c'<<16 | 'o'<<8 | 'o':
		default:
			continue
		}
		return IsCookie(name) || SayAnything(string(name)) || IsTool(name)
	}
	return false
}

// IsCookie tells the name of a header of cookies.
func IsCookie(name []byte) bool {
	return bytes.EqualFold(name, []byte("cookie")) || bytes.EqualFold(name, []byte("set-cookie"))
}

package names

import (
	"slices"
	"strings"
	"unicode/utf8"

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

// What headers, queries and cookies are called, and what stands in them.

// A Header is how the value of a header is looked at.
type Header uint8

// The kinds of headers.
const (
	HeaderText        Header = iota // as any text
	HeaderSecret                    // all of it is a secret
	HeaderCredentials               // a scheme and what follows it
	HeaderCookie                    // name=value; name=value
	HeaderSetCookie                 // name=value; attributes
	HeaderURL
)

var (
	// secretHeaders are of no other word that says so.
	secretHeaders = []string{"apikey", "x-apikey", "x-amz-signature", "x-csrftoken", "x-xsrftoken"}
	urlHeaders    = []string{"location", "content-location", "referer"}
	// harmlessHeaders hold a KEY that opens nothing and differs with each request: learning it would only cost.
	harmlessHeaders = []string{"idempotency-key", "x-idempotency-key", "sec-websocket-key", "surrogate-key", "cache-key",
		"x-cache-key", "access-control-request-key"}
)

// OfHeader is how a header is looked at that has a value.
func OfHeader(name, value string) Header {
	switch lower := strings.ToLower(name); {
	case slices.Contains(credentialHeaders, lower):
		return HeaderCredentials
	case lower == "cookie":
		return HeaderCookie
	case lower == "set-cookie":
		return HeaderSetCookie
	case slices.Contains(urlHeaders, lower):
		return HeaderURL
	case slices.Contains(harmlessHeaders, lower):
		return HeaderText
	case slices.Contains(secretHeaders, lower), slices.Contains(sessionHeaders, lower), Say(name, value):
		return HeaderSecret
	}
	return HeaderText
}

var (
	signatures    = []string{"x-amz-signature", "x-goog-signature"}
	secretQueries = []string{"apikey", "accesstoken", "idtoken", "sig", "signature"}
)

// IsSignature tells whether a value of a query is made for one request: learning it would only cost.
func IsSignature(name string) bool { return slices.Contains(signatures, strings.ToLower(name)) }

// OfQuery tells whether a value of a query is a secret by its name.
func OfQuery(name, value string) bool {
	lower := strings.ToLower(name)
	return Say(lower, value) || slices.Contains(secretQueries, lower)
}

// Among parameters of credentials (Token token="K", email="a@b.c") some open nothing.
var (
	perRequest     = []string{"oauth_signature", "oauth_nonce", "signature", "nonce", "cnonce"}
	openParameters = []string{"oauth_timestamp", "oauth_version", "oauth_signature_method", "timestamp", "realm", "email", "username", "user",
		"charset", "algorithm", "version", "method"}
)

// IsOpenParameter tells whether a parameter of credentials opens nothing.
func IsOpenParameter(name string) bool { return slices.Contains(openParameters, name) }

// IsOfRequest tells whether a parameter of credentials is made for one request: learning it would only cost.
func IsOfRequest(name string) bool { return slices.Contains(perRequest, name) }

// SignsRequest tells whether the credentials of a scheme are made for one request: the next has others.
func SignsRequest(scheme string) bool {
	scheme = strings.ToLower(scheme)
	return scheme == "digest" || scheme == "aws" || strings.HasPrefix(scheme, "aws4-") || strings.HasPrefix(scheme, "hmac") || scheme == "signature"
}

// schemes are names of HTTP authentication schemes that people put into variables with the secret.
var schemes = []string{"bearer", "token", "basic", "apikey", "api-key", "bot"}

// SchemeLen returns how long the name of the scheme and the blanks behind it are with which v begins; 0 for none.
func SchemeLen(v string) int {
	scheme, rest, ok := strings.Cut(v, " ")
	if rest = strings.TrimLeft(rest, " "); !ok || rest == "" || strings.ContainsAny(rest, " \t\r\n") || !slices.Contains(schemes, strings.ToLower(scheme)) {
		return 0
	}
	return len(v) - len(rest)
}

var (
	// sessionNames are what the names of cookies hold that say who somebody is.
	sessionNames = []string{"sess", "sid", "auth", "token", "csrf", "xsrf", "jwt", "login", "user", "account", "key", "secret", "pass", "pin"}
	// longNumber is one that may be somebody's: an id, a code, a time.
	longNumber = lazyregexp.New(`[0-9]{4}`)
)

// IsSetting tells whether a cookie of an ordinary value says how a page is to be shown, and not who looks at it.
func IsSetting(name, value string) bool {
	name = strings.ToLower(strings.TrimSpace(name))
	return name != "" && !strings.HasSuffix(name, "id") && !longNumber.MatchString(value) &&
		!slices.ContainsFunc(sessionNames, func(s string) bool { return strings.Contains(name, s) })
}

// What OAuth passes through a browser and back is a secret by the names beside it, not by its own alone: a "code" of any other form or
// query is one of many things, and so is a "state".
var (
	// ofAuthorization are what a program makes up for one request for authorization, beside response_type and client_id.
	ofAuthorization = []string{"state", "nonce", "code_challenge"}
	// ofRedirection are what comes back to its redirect_uri: code, or error, and with it one of besideCode.
	ofRedirection = []string{"code", "state"}
	besideCode    = []string{"state", "iss", "session_state"}
	// ofExchange are what is exchanged for tokens by a form with grant_type=authorization_code.
	ofExchange = []string{"code"}
)

// OfFlow lists the names in a query or a form that are secrets as parts of an OAuth flow.
func (m *Members) OfFlow(q string) []string {
	if !m.general || !strings.Contains(q, "code") && !strings.Contains(q, "state=") {
		return nil
	}
	has := make(map[string]string)
	for part := range strings.SplitSeq(q, "&") {
		if name, value, ok := strings.Cut(part, "="); ok && value != "" {
			has[name] = value
		}
	}
	switch {
	case has["grant_type"] == "authorization_code":
		return ofExchange
	case has["response_type"] != "" && has["client_id"] != "":
		return ofAuthorization
	case (has["code"] != "" || has["error"] != "") && slices.ContainsFunc(besideCode, func(n string) bool { return has[n] != "" }):
		return ofRedirection
	}
	return nil
}

// fillers stand where a password stands when the user is a token: https://TOKEN:x-oauth-basic@github.com.
var fillers = []string{"", "x-oauth-basic", "x-oauth-token", "x"}

// InUserinfo returns where the secret stands in user:password@ and what follows it: the password, or the user where
// that is a token and the password none.
func InUserinfo(userinfo string) (start, end int, ok bool) {
	at := strings.LastIndexByte(userinfo, '@')
	if at < 0 {
		return 0, 0, false
	}
	user, password, two := strings.Cut(userinfo[:at], ":")
	if strings.IndexByte(user, '@') >= 0 {
		return 0, 0, false
	}
	if two && !IsFiller(password) {
		return len(user) + 1, at, !IsExample(password)
	}
	return 0, len(user), IsTokenOfUser(user)
}

// IsFiller tells what stands in the place of a password and is none.
func IsFiller(password string) bool { return slices.Contains(fillers, password) }

// IsTokenOfUser tells a token from the name of a user: it has 16 letters and digits in a row, three of them digits.
func IsTokenOfUser(user string) bool {
	const least, leastDigits = 16, 3
	for row := range strings.FieldsFuncSeq(user, func(r rune) bool { return r >= utf8.RuneSelf || !chars.IsAlnum(byte(r)) }) {
		if digits, letters := chars.Mixture(row); len(row) >= least && digits >= leastDigits && letters > 0 {
			return true
		}
	}
	return false
}

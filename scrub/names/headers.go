package names

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/internal/lazyregexp"
	"github.com/tapedeck-dev/tapedeck/scrub/internal/chars"
)

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

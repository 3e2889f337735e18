package scrub

import (
	"maps"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/scrub/internal/placeholders"
)

// Header returns the value of an HTTP header as it may be written. Where the name says that it holds a secret
// (Authorization, Cookie, API keys, Options.SecretNames, every name for which NameSaysSecret holds), its secret part becomes a
// placeholder and is known from then on, and what tells how it is used stays: "Bearer", the names of cookies. Where the name
// says that it holds a URL, it is scrubbed as one. Other headers are scrubbed as any text.
func (s *Scrubber) Header(name, value string) string { return hider{s: s}.header(name, value) }

// LearnHeader makes the secrets of a whole header known. It comes before anything of the message that the header belongs to
// is scrubbed: the same value may stand in the URL, in the body, or in a header whose name does not say so.
func (s *Scrubber) LearnHeader(h map[string][]string) {
	for _, name := range slices.Sorted(maps.Keys(h)) { // the first name of a value gives the rule
		for _, value := range h[name] {
			hider{s: s, learns: true}.header(name, value)
		}
	}
}

// A hider hides the secrets of headers and URLs, or does no more than learn them.
type hider struct {
	s      *Scrubber
	learns bool // nothing is written: what it returns is of no use
}

func (h hider) header(name, value string) string {
	lower := strings.ToLower(name)
	switch {
	case strings.TrimSpace(value) == "":
		return value
	case h.s.names.ordered(name):
		return h.whole(lower, value)
	case lower == "authorization" || lower == "proxy-authorization" || h.s.rules >= RulesOfNames && slices.Contains(authHeaders, lower):
		return h.authorization(lower, value)
	case lower == "cookie":
		return h.cookies(value)
	case lower == "set-cookie":
		return h.setCookie(value)
	case slices.Contains(urlHeaders, lower):
		return h.url(value)
	case slices.Contains(harmlessHeaders, lower):
		return h.text(value)
	case slices.Contains(secretHeaders, lower) || h.s.says(name, value) ||
		h.s.rules >= RulesOfNames && slices.Contains(laterHeaders, lower):
		return h.whole(lower, value)
	}
	return h.text(value)
}

// text scrubs what no name says anything of.
func (h hider) text(v string) string {
	if h.learns {
		h.s.recognise([]byte(v))
		return v
	}
	return h.s.String(v)
}

func (h hider) count(rule string) {
	if !h.learns {
		h.s.count([]span{{rule: rule}})
	}
}

var (
	secretHeaders = []string{"apikey", "x-apikey", "x-amz-signature", "x-csrftoken", "x-xsrftoken"}
	laterHeaders  = []string{"cookie2", "x-sid", "x-session-id", "x-goog-iap-jwt-assertion"} // of RulesOfNames
	// authHeaders are others that proxies and programs put credentials into as into Authorization.
	authHeaders = []string{"auth", "x-auth", "x-api-auth", "authentication", "x-authentication", "x-authorization",
		"x-forwarded-authorization", "x-original-authorization"}
	urlHeaders = []string{"location", "content-location", "referer"}
	// harmlessHeaders hold a KEY that opens nothing and differs with each request: learning it would only cost.
	harmlessHeaders = []string{"idempotency-key", "x-idempotency-key", "sec-websocket-key", "surrogate-key", "cache-key",
		"x-cache-key", "access-control-request-key"}
)

// whole hides all of a value.
func (h hider) whole(name, value string) string {
	h.count(placeholders.RuleName(name))
	return h.s.learn(name, strings.TrimSpace(value))
}

// authorization keeps the scheme. What a scheme signs for one request is hidden and not learnt; of another list of parameters
// each is looked at by itself.
func (h hider) authorization(name, value string) string {
	scheme, rest, ok := strings.Cut(strings.TrimSpace(value), " ")
	if !ok {
		return h.whole(name, value)
	}
	rest = strings.TrimSpace(rest)
	if strings.EqualFold(scheme, "basic") {
		if password, ok := decodeBasic(rest); ok {
			h.s.learn(name, password)
		}
	}
	if h.s.signs(scheme, rest) {
		h.count(placeholders.RuleName(name))
		return scheme + " " + h.s.conceal(name, rest)
	}
	if list, ok := h.parameters(name, rest); ok {
		return scheme + " " + list
	}
	return scheme + " " + h.whole(name, rest)
}

// signs tells whether credentials are made for one request: they are learnt by no one, for the next has others.
func (s *Scrubber) signs(scheme, credentials string) bool {
	if s.rules < RulesOfNames { // a list was taken for such
		return strings.Contains(credentials, ",") || strings.EqualFold(scheme, "aws")
	}
	scheme = strings.ToLower(scheme)
	return scheme == "digest" || scheme == "aws" || strings.HasPrefix(scheme, "aws4-") || strings.HasPrefix(scheme, "hmac") || scheme == "signature"
}

func (h hider) cookies(value string) string {
	pairs := strings.Split(value, ";")
	for i, pair := range pairs {
		pairs[i] = h.cookie(pair)
	}
	return strings.Join(pairs, ";")
}

// setCookie hides the value of the cookie and keeps its attributes.
func (h hider) setCookie(value string) string {
	pair, attributes, ok := strings.Cut(value, ";")
	if !ok {
		return h.cookie(pair)
	}
	return h.cookie(pair) + ";" + h.text(attributes)
}

func (h hider) cookie(pair string) string {
	name, value, ok := strings.Cut(pair, "=")
	if !ok {
		name, value = "", pair
	}
	if value == "" {
		return pair
	}
	hidden := h.cookieValue(name, strings.TrimSpace(value))
	if !ok {
		return hidden
	}
	return h.text(name) + "=" + hidden
}

// cookieValue hides the value of a cookie. It is known elsewhere where it was made to be one: consent=accepted says nothing
// of the word accepted, which answers have and programs wait for. A setting stays as it is: a program that keeps its cookies
// in a file writes it there.
func (h hider) cookieValue(name, value string) string {
	switch {
	case h.s.rules < RulesOfNames || !Ordinary(value):
		return h.whole("cookie", value)
	case isSetting(name, value):
		return h.text(value)
	}
	h.count("cookie")
	return h.s.concealOnly("cookie", value)
}

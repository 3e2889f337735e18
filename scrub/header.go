package scrub

import (
	"slices"
	"strings"
)

// Header returns the value of an HTTP header as it may be written. Where the name says that it holds a secret
// (Authorization, Cookie, API keys, every name for which NameSaysSecret holds), its secret part becomes a placeholder and
// is known from then on, and what tells how it is used stays: "Bearer", the names of cookies. Other headers are scrubbed
// as any text.
func (s *Scrubber) Header(name, value string) string {
	lower := strings.ToLower(name)
	switch {
	case strings.TrimSpace(value) == "":
		return value
	case lower == "authorization" || lower == "proxy-authorization":
		return s.authorization(lower, value)
	case lower == "cookie":
		return s.cookies(value)
	case lower == "set-cookie":
		return s.setCookie(value)
	case slices.Contains(harmlessHeaders, lower):
		return s.String(value)
	case slices.Contains(secretHeaders, lower) || NameSaysSecret(lower):
		return s.whole(lower, value)
	}
	return s.String(value)
}

var (
	secretHeaders = []string{"apikey", "x-apikey", "x-amz-signature", "x-csrftoken", "x-xsrftoken"}
	// harmlessHeaders hold a KEY that opens nothing and differs with each request: learning it would only cost.
	harmlessHeaders = []string{"idempotency-key", "x-idempotency-key", "sec-websocket-key", "surrogate-key", "cache-key",
		"x-cache-key", "access-control-request-key"}
)

// whole hides all of a value.
func (s *Scrubber) whole(name, value string) string {
	s.count([]span{{rule: ruleName(name)}})
	return s.learn(name, strings.TrimSpace(value))
}

// authorization keeps the scheme. The parameters of a scheme that signs each request anew are hidden and not learnt.
func (s *Scrubber) authorization(name, value string) string {
	scheme, rest, ok := strings.Cut(strings.TrimSpace(value), " ")
	if !ok {
		return s.whole(name, value)
	}
	rest = strings.TrimSpace(rest)
	switch strings.ToLower(scheme) {
	case "basic":
		if password, ok := decodeBasic(rest); ok {
			s.learn(name, password)
		}
		return scheme + " " + s.whole(name, rest)
	case "bearer", "token", "apikey", "api-key", "key", "negotiate":
		return scheme + " " + s.whole(name, rest)
	}
	s.count([]span{{rule: ruleName(name)}})
	return scheme + " " + s.conceal(name, rest)
}

func (s *Scrubber) cookies(value string) string {
	pairs := strings.Split(value, ";")
	for i, pair := range pairs {
		pairs[i] = s.cookie(pair)
	}
	return strings.Join(pairs, ";")
}

// setCookie hides the value of the cookie and keeps its attributes.
func (s *Scrubber) setCookie(value string) string {
	pair, attributes, ok := strings.Cut(value, ";")
	if !ok {
		return s.cookie(pair)
	}
	return s.cookie(pair) + ";" + s.String(attributes)
}

func (s *Scrubber) cookie(pair string) string {
	name, value, ok := strings.Cut(pair, "=")
	if !ok {
		name, value = "", pair
	}
	if value == "" {
		return pair
	}
	hidden := s.whole("cookie", value)
	if !ok {
		return hidden
	}
	return s.String(name) + "=" + hidden
}

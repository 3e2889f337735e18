package scrub

import (
	"net/url"
	"slices"
	"strings"
)

// URL returns a URL as it may be written: the password of its userinfo and the query values whose names say so become
// placeholders and are known from then on, and known values and shapes are replaced everywhere. Nothing else changes, not
// even where u is no URL.
func (s *Scrubber) URL(u string) string { return hider{s: s}.url(u) }

func (h hider) url(u string) string {
	head, fragment, hasFragment := strings.Cut(u, "#")
	head, query, hasQuery := strings.Cut(head, "?")
	out := h.userinfo(head)
	if hasQuery {
		out += "?" + h.query(query)
	}
	if hasFragment {
		out += "#" + h.query(fragment) // where implicit grants put their tokens
	}
	return h.text(out)
}

func (h hider) userinfo(head string) string {
	scheme, rest, ok := strings.Cut(head, "://")
	if !ok {
		return head
	}
	authority, path, _ := strings.Cut(rest, "/")
	at := strings.LastIndexByte(authority, '@')
	if at < 0 {
		return head
	}
	user, password, ok := strings.Cut(authority[:at], ":")
	const minToken = 16 // bytes from which a name of a user without a password is taken for a token
	switch {
	case ok && h.s.rules >= rulesGenuine && isFiller(password):
		if looksLikeToken([]byte(user)) || len(user) >= minToken {
			user = h.part("url_password", user)
		}
		user += ":" + password
	case ok && password != "":
		user += ":" + h.part("url_password", password)
	case len(user) >= minToken:
		user = h.part("url_password", user)
	default:
		return head
	}
	return scheme + "://" + user + authority[at:] + rest[len(rest)-len(path)-min(1, len(rest)-len(authority)):]
}

// part hides a part of a URL, and makes it known where it is long enough to be searched for.
func (h hider) part(name, value string) string {
	h.count(ruleName(name))
	if value = unescaped(value); len(value) < minKnown {
		return h.s.conceal(name, value)
	}
	return h.s.learn(name, strings.TrimSpace(value))
}

func (h hider) query(q string) string {
	parts := strings.Split(q, "&")
	for i, part := range parts {
		name, value, ok := strings.Cut(part, "=")
		switch plain := strings.ToLower(unescaped(name)); {
		case !ok || value == "":
		case slices.Contains(signatures, plain): // made for one request: learning it would only cost
			h.count(ruleName(name))
			parts[i] = name + "=" + h.s.conceal(name, unescaped(value))
		case h.s.says(plain, unescaped(value)) || slices.Contains(secretQueries, plain):
			parts[i] = name + "=" + h.part(name, value)
		}
	}
	return strings.Join(parts, "&")
}

var (
	signatures    = []string{"x-amz-signature", "x-goog-signature"}
	secretQueries = []string{"apikey", "accesstoken", "idtoken", "sig", "signature"}
)

// unescaped undoes percent-encoding, so that a value has one placeholder however it is written.
func unescaped(v string) string {
	if plain, err := url.PathUnescape(v); err == nil {
		return plain
	}
	return v
}

package scrub

import (
	"net/url"
	"slices"
	"strings"
)

// URL returns a URL as it may be written: the password of its userinfo and the query values whose names say so become
// placeholders, and known values and shapes are replaced everywhere. Nothing else changes, not even where u is no URL.
func (s *Scrubber) URL(u string) string {
	head, fragment, hasFragment := strings.Cut(u, "#")
	head, query, hasQuery := strings.Cut(head, "?")
	out := s.userinfo(head)
	if hasQuery {
		out += "?" + s.query(query)
	}
	if hasFragment {
		out += "#" + s.query(fragment) // where implicit grants put their tokens
	}
	return s.String(out)
}

func (s *Scrubber) userinfo(head string) string {
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
	case ok && password != "":
		s.count([]span{{rule: "url_password"}})
		user += ":" + s.conceal("url_password", unescaped(password))
	case len(user) >= minToken:
		s.count([]span{{rule: "url_password"}})
		user = s.conceal("url_password", unescaped(user))
	default:
		return head
	}
	return scheme + "://" + user + authority[at:] + rest[len(rest)-len(path)-min(1, len(rest)-len(authority)):]
}

func (s *Scrubber) query(q string) string {
	parts := strings.Split(q, "&")
	for i, part := range parts {
		name, value, ok := strings.Cut(part, "=")
		if ok && value != "" && querySaysSecret(name) {
			s.count([]span{{rule: ruleName(name)}})
			parts[i] = name + "=" + s.conceal(name, unescaped(value))
		}
	}
	return strings.Join(parts, "&")
}

func querySaysSecret(name string) bool {
	name = strings.ToLower(unescaped(name))
	return NameSaysSecret(name) ||
		slices.Contains([]string{"apikey", "accesstoken", "idtoken", "sig", "signature", "x-amz-signature"}, name)
}

// unescaped undoes percent-encoding, so that a value has one placeholder however it is written.
func unescaped(v string) string {
	if plain, err := url.PathUnescape(v); err == nil {
		return plain
	}
	return v
}

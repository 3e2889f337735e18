package scrub

import (
	"net/url"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/scrub/internal/placeholders"
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
			user = h.part("url_password", unescaped(user))
		}
		user += ":" + password
	case ok && password != "":
		user += ":" + h.part("url_password", unescaped(password))
	case len(user) >= minToken:
		user = h.part("url_password", unescaped(user))
	default:
		return head
	}
	return scheme + "://" + user + authority[at:] + rest[len(rest)-len(path)-min(1, len(rest)-len(authority)):]
}

// LearnURL makes the secrets of a URL known. It comes before anything of the message that the URL belongs to is scrubbed, as
// LearnHeader does.
func (s *Scrubber) LearnURL(u string) {
	s.recognise([]byte(u))
	hider{s: s, learns: true}.url(u)
}

// part hides a part of a URL, whose escapes are undone, and makes it known where it is long enough to be searched for.
func (h hider) part(name, value string) string {
	h.count(placeholders.RuleName(name))
	if len(value) < minKnown {
		return h.s.conceal(name, value)
	}
	return h.s.learn(name, strings.TrimSpace(value))
}

func (h hider) query(q string) string {
	parts := strings.Split(q, "&")
	flow := h.s.flowNames(q)
	for i, part := range parts {
		name, value, ok := strings.Cut(part, "=")
		switch {
		case !ok || value == "":
		case slices.Contains(flow, name):
			parts[i] = name + "=" + h.part(name, formValue(value))
		default:
			parts[i] = name + "=" + h.queryValue(name, value)
		}
	}
	return strings.Join(parts, "&")
}

func (h hider) queryValue(rawName, raw string) string {
	name, value := formValue(rawName), formValue(raw)
	switch lower := strings.ToLower(name); {
	case slices.Contains(signatures, lower): // made for one request: learning it would only cost
		h.count(placeholders.RuleName(name))
		return h.s.conceal(name, value)
	case h.s.says(lower, value), slices.Contains(secretQueries, lower), h.s.names.of([]byte(name)).isSecret(value):
		return h.part(name, value)
	}
	if _, over := h.s.LearnAll(h.s.namedInField(value)); len(over) > 0 {
		h.count(placeholders.RuleName(name))
		return h.s.conceal(over[0].Name, value)
	}
	return raw
}

var (
	signatures    = []string{"x-amz-signature", "x-goog-signature"}
	secretQueries = []string{"apikey", "accesstoken", "idtoken", "sig", "signature"}
)

// unescaped undoes percent-encoding in a path or a name of a user, so that a value has one placeholder however it is written.
func unescaped(v string) string {
	if plain, err := url.PathUnescape(v); err == nil {
		return plain
	}
	return v
}

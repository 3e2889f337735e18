package scrub

import "strings"

// Programs that fetch for a model are given headers as members of JSON, and show them as lines. The names are those of header.go.

// A headerName is the name of a header, flat, and what it says.
type headerName struct {
	name string
	says nameSaying
}

// namesOfHeaders are those that only a header has, by the last letter.
var namesOfHeaders = func() (out [256][]headerName) {
	add := func(says nameSaying, names ...string) {
		for _, name := range names {
			lower := strings.TrimRight(string(flat(nil, []byte(name))), "0123456789")
			last := lower[len(lower)-1]
			out[last] = append(out[last], headerName{lower, says})
		}
	}
	add(saysCookies, "cookie", "set-cookie")
	add(saysCredentials, "authorization", "proxy-authorization")
	add(saysCredentials, authHeaders...)
	add(saysPerhaps, laterHeaders...)
	return out
}()

// beginsHeader are the letters with which they begin.
var beginsHeader = func() (out [256]bool) {
	for _, names := range namesOfHeaders {
		for _, h := range names {
			out[h.name[0]] = true
		}
	}
	return out
}()

// within returns the secrets in the value of a header of that name, in the order in which they stand.
func (s nameSaying) within(name []byte, value string) []string {
	switch s {
	case saysCookies:
		pairs := strings.Split(value, ";")
		if len(name) > 0 && (name[0]|0x20) == 's' { // of Set-Cookie the others are attributes
			pairs = pairs[:1]
		}
		return cookiesOf(pairs)
	case saysCredentials:
		return credentialsOf(value)
	}
	if s.isSecret(value) {
		return []string{value}
	}
	return nil
}

// cookiesOf returns the values that are no settings.
func cookiesOf(pairs []string) (secrets []string) {
	for _, pair := range pairs {
		_, value, named := strings.Cut(strings.TrimSpace(pair), "=")
		if value = strings.Trim(value, `"`); named && isToken(value) && !Ordinary(value) {
			secrets = append(secrets, value)
		}
	}
	return secrets
}

// credentialsOf returns what follows the name of a scheme, of Basic its password too, or what looks made where there is none. What is
// signed for one request is a list, and none.
func credentialsOf(value string) []string {
	scheme, rest, ok := strings.Cut(strings.TrimSpace(value), " ")
	if !ok {
		if isToken(value) && looksMade(value) {
			return []string{value}
		}
		return nil
	}
	rest = strings.TrimSpace(rest)
	if strings.EqualFold(scheme, "basic") {
		if password, ok := decodeBasic(rest); ok {
			return []string{password, rest}
		}
	}
	if isToken(rest) && !strings.Contains(rest, ",") && hasDigit([]byte(rest)) && !Ordinary(rest) {
		return []string{rest}
	}
	return nil
}

// isToken tells whether a value is one word that may be looked for elsewhere, and no reference to another.
func isToken(value string) bool {
	return len(value) >= minKnown && !strings.ContainsAny(value, " \t\r\n\"'<>{}()[]*") && !fromOutside.MatchString(value) && !reference.MatchString(value)
}

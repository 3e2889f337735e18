package scrub

import (
	"bytes"
	"encoding/base64"
	"slices"
	"strings"
)

// wellKnown tells whether s, which a rule found in t by its place, is a password that documents show and that is set nowhere
// but in an example: postgres://postgres:postgres@localhost/db, a common word, the Basic credentials of RFC 7617.
func (t text) wellKnown(s span) bool {
	if s.protected {
		return false
	}
	switch s.rule {
	case "url_password":
		return isWellKnown(userBefore(t.b[:s.start]), string(t.b[s.start:s.end]))
	case "basic":
		raw, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(string(t.b[s.start:s.end]), "="))
		user, password, ok := strings.Cut(string(raw), ":")
		return err == nil && ok && isWellKnown(user, password)
	}
	return false
}

// userBefore returns the user that ends before the colon at the end of b; "" where a URL has a token in the place of the user.
func userBefore(b []byte) string {
	b, ok := bytes.CutSuffix(b, []byte(":"))
	if !ok {
		return ""
	}
	return string(b[bytes.LastIndexByte(b, '/')+1:])
}

// isWellKnown tells whether nobody has a secret in a password: it is a word that everybody takes, or the name of its user,
// which is a word.
func isWellKnown(user, password string) bool {
	lower := strings.ToLower(password)
	switch {
	case slices.Contains(commonWords, lower), slices.Contains(shownPasswords, lower):
		return true
	case user == "Aladdin": // of RFC 7617 and of RFC 2617
		return lower == "open sesame" || lower == "opensesame"
	}
	return user == password && user != "" && strings.Trim(user, "abcdefghijklmnopqrstuvwxyz_") == ""
}

// shownPasswords are what documents take beside commonWords, which are longer.
var shownPasswords = []string{"admin", "changeit", "default", "demo", "dev", "example", "guest", "minioadmin", "mypassword", "mysecretpassword",
	"mysql", "pass123", "redis", "root", "sa", "secretpassword", "test", "test123", "user", "yourpassword"}

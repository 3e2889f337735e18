package scrub

import (
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/scrub/internal/placeholders"
)

var (
	// perRequest are the parameters of credentials that are made for one request: learning them would only cost.
	perRequest = []string{"oauth_signature", "oauth_nonce", "signature", "nonce", "cnonce"}
	// openParameters are those that open nothing.
	openParameters = []string{"oauth_timestamp", "oauth_version", "oauth_signature_method", "timestamp", "realm", "email", "username", "user",
		"charset", "algorithm", "version", "method"}
)

// parameters hides the secrets of a list of parameters: Token token="K", email="a@b.c". ok is false where v is no such list.
func (h hider) parameters(name, v string) (list string, ok bool) {
	if h.s.rules < RulesOfNames || !strings.Contains(v, "=") {
		return "", false
	}
	parts := strings.Split(v, ",")
	for _, part := range parts {
		if !isParameter(part, len(parts) == 1) {
			return "", false
		}
	}
	for i, part := range parts {
		parts[i] = h.parameter(name, part)
	}
	return strings.Join(parts, ","), true
}

// isParameter tells whether part is a name and its value, and no key that ends in the padding of base64. One that stands alone
// has quotation marks or a name that says so.
func isParameter(part string, alone bool) bool {
	key, value, ok := strings.Cut(part, "=")
	key, value = strings.TrimSpace(key), strings.TrimSpace(value)
	return ok && strings.Trim(value, "=") != "" && isSettingName(key) && !strings.Contains(key, " ") && !looksMade(key) &&
		(!alone || value[0] == '"' || NameSaysSecret(key))
}

func (h hider) parameter(name, part string) string {
	key, rest, _ := strings.Cut(part, "=")
	value := trimQuotes(rest)
	at := strings.LastIndex(part, value)
	switch key = strings.ToLower(strings.TrimSpace(key)); {
	case value == "" || slices.Contains(openParameters, key):
		return h.text(part)
	case slices.Contains(perRequest, key):
		h.count(placeholders.RuleName(name))
		return part[:at] + h.s.conceal(name, unescaped(value)) + part[at+len(value):]
	}
	return part[:at] + h.part(name, value) + part[at+len(value):]
}

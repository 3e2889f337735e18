package exchange

import (
	"net/http"
	"strings"

	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/scrub/names"
)

// protocolField is where a request for a WebSocket names subprotocols. Browsers let a page set no other field, so keys travel in it:
// "openai-insecure-api-key.KEY", "base64url.bearer.authorization.k8s.io.TOKEN", "access_token, TOKEN".
const protocolField = "Sec-Websocket-Protocol"

// withoutKeys is a request for a WebSocket whose subprotocols hold no secrets any more. Those that did are known from then on.
func withoutKeys(s *scrub.Scrubber, r *Request) *Request {
	given, ok := r.Header[protocolField]
	if !ok {
		return r
	}
	out := *r
	out.Header = r.Header.Clone()
	hidden := make([]string, 0, len(given))
	for _, list := range given {
		hidden = append(hidden, protocolsWithoutKeys(s, list))
	}
	out.Header[protocolField] = hidden
	return &out
}

// protocolsWithoutKeys hides the secrets in one list of subprotocols.
func protocolsWithoutKeys(s *scrub.Scrubber, list string) string {
	var out strings.Builder
	before := "" // what the item before said of this one
	for i, item := range strings.Split(list, ",") {
		name := strings.TrimSpace(item)
		blanks := item[:len(item)-len(strings.TrimLeft(item, " \t"))]
		if i > 0 {
			out.WriteByte(',')
		}
		out.WriteString(blanks)
		switch prefix, value := keyIn(name); {
		case value != "":
			out.WriteString(prefix + "." + hideValue(s, prefix, value))
		case before != "":
			out.WriteString(hideValue(s, before, name))
		default:
			out.WriteString(name)
		}
		if before = ""; saysKey(name) {
			before = name
		}
	}
	return out.String()
}

// keyIn parts a subprotocol into what says that a secret follows, and that; both are "" where none says so.
func keyIn(protocol string) (prefix, value string) {
	for i := range len(protocol) {
		if protocol[i] == '.' && i+1 < len(protocol) && saysKey(protocol[:i]) {
			return protocol[:i], protocol[i+1:]
		}
	}
	return "", ""
}

// saysKey reports whether a name says that a secret follows it.
func saysKey(name string) bool {
	if names.SaySecret(name) {
		return true
	}
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r == '.' || r == '-' || r == '_' })
	if len(words) == 0 {
		return false
	}
	switch words[len(words)-1] {
	case "bearer", "authorization", "auth", "jwt":
		return true
	}
	return false
}

// hideValue is the placeholder of a secret, which is known from then on.
func hideValue(s *scrub.Scrubber, name, value string) string {
	field := http.CanonicalHeaderKey(strings.ReplaceAll(name, ".", "-") + "-key")
	s.LearnHeader(http.Header{field: {value}})
	return s.Header(field, value)
}

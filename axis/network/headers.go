package network

import (
	"net/http"
	"net/textproto"
	"strings"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
)

// reduceEncodings takes the codings that cannot be decoded here, which a secret inside a body makes necessary, out of
// Accept-Encoding, "*" too.
func reduceEncodings(h http.Header) {
	given, ok := h["Accept-Encoding"]
	if !ok {
		return
	}
	var kept []string
	for _, list := range given {
		for coding := range strings.SplitSeq(list, ",") {
			coding = textproto.TrimString(coding)
			name, _, _ := strings.Cut(coding, ";")
			if name = textproto.TrimString(name); name != "" && exchange.CanDecode(name) {
				kept = append(kept, coding)
			}
		}
	}
	if len(kept) == 0 {
		kept = []string{"identity"}
	}
	h["Accept-Encoding"] = []string{strings.Join(kept, ", ")}
}

// hasToken reports whether the comma-separated field name of h holds token, whatever its case.
func hasToken(h http.Header, name, token string) bool {
	for _, list := range h[name] {
		for item := range strings.SplitSeq(list, ",") {
			if strings.EqualFold(textproto.TrimString(item), token) {
				return true
			}
		}
	}
	return false
}

package network

import (
	"net/http"
	"net/textproto"
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
)

// hopByHop are the fields that concern one connection (RFC 9110, 7.6.1), and those that concern ours only: Alt-Svc
// would send the program to HTTP/3, which nobody answers.
var hopByHop = []string{
	"Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Authentication-Info",
	"Te", "Trailer", "Transfer-Encoding", "Upgrade", "Http2-Settings", "Alt-Svc",
}

// endToEnd returns a copy of h without the fields that concern one connection.
func endToEnd(h http.Header) http.Header {
	out := h.Clone()
	if out == nil {
		out = make(http.Header)
	}
	for _, list := range h["Connection"] {
		for name := range strings.SplitSeq(list, ",") {
			out.Del(textproto.TrimString(name))
		}
	}
	for _, name := range hopByHop {
		out.Del(name)
	}
	return out
}

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

// contentLength is what h says of the body's length in bytes, -1 for nothing.
func contentLength(h http.Header) int64 {
	n, err := strconv.ParseInt(h.Get("Content-Length"), 10, 64)
	if err != nil || n < 0 {
		return -1
	}
	return n
}

// hasBody reports whether an answer with that status to that method has a body (RFC 9110, 6.4.1).
func hasBody(method string, status int) bool {
	return method != http.MethodHead && status >= 200 && status != http.StatusNoContent && status != http.StatusNotModified
}

// setHeader makes dst exactly src: net/http adds nothing of its own to it.
func setHeader(dst, src http.Header) {
	for _, name := range []string{"Date", "Content-Type"} {
		if _, ok := src[name]; !ok {
			dst[name] = nil
		}
	}
	for name, values := range src {
		dst[name] = values
	}
}

package exchange

import (
	"net/http"
	"net/textproto"
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// hopByHop are the fields that concern one connection (RFC 9110, 7.6.1), and those that concern ours only: Alt-Svc
// would send the program to HTTP/3, which nobody answers.
var hopByHop = []string{
	"Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Authentication-Info",
	"Te", "Trailer", "Transfer-Encoding", "Upgrade", "Http2-Settings", "Alt-Svc",
}

// EndToEnd returns a copy of h, never nil, without the fields that concern one connection (RFC 9110, 7.6.1), and without
// Alt-Svc.
func EndToEnd(h http.Header) http.Header {
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

// SetHeader makes dst, the header of an http.ResponseWriter, exactly src: net/http adds nothing of its own to it.
func SetHeader(dst, src http.Header) {
	for _, name := range []string{"Date", "Content-Type"} {
		if _, ok := src[name]; !ok {
			dst[name] = nil
		}
	}
	for name, values := range src {
		dst[name] = values
	}
}

// HasBody reports whether an answer with that status to that method has a body (RFC 9110, 6.4.1).
func HasBody(method string, status int) bool {
	return method != http.MethodHead && status >= 200 && status != http.StatusNoContent && status != http.StatusNotModified
}

// HeaderOf is the header that the fields of a record were made of, but for the order of names and their letter case.
func HeaderOf(fields []tape.HeaderField) http.Header {
	h := make(http.Header, len(fields))
	for _, f := range fields {
		h.Add(f.Name, f.Value)
	}
	return h
}

// restoreHeaders puts the true bytes of header values that are not UTF-8 back into the exchange that r holds.
func restoreHeaders(r *tape.Record) {
	if x := tape.ExchangeOf(r.Kind); x != nil {
		restoreFields(rawRequest, x.RequestHeaders, r.Raw)
		restoreFields(rawResponse, x.ResponseHeaders, r.Raw)
	}
}

// FittingLength is the length in bytes that the recorded answer ex, with the header h and a body of total bytes, says it
// has: that of its Content-Length where it fits the bytes, which it does where it is theirs, or beyond them in an answer that
// was cut. Scrubbing may have changed a body's length; then the field goes, and the length is -1, as where there is none. An
// answer that has no body for its status has 0.
func FittingLength(h http.Header, ex *tape.Exchange, total int64) int64 {
	n, err := strconv.ParseInt(h.Get("Content-Length"), 10, 64)
	body := HasBody(ex.Method, ex.Status)
	switch {
	case err == nil && n >= 0 && (!body || n == total || n > total && ex.Error != ""):
		return n
	case !body && ex.Method != http.MethodHead:
		return 0
	}
	h.Del("Content-Length")
	return -1
}

package exchange

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/bare"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// headerFields returns a header scrubbed, sorted by name: the order and the letter case of header lines are not kept.
func headerFields(s *scrub.Scrubber, h http.Header) []tape.HeaderField {
	s.LearnHeader(h) // a header that comes first may hold what a later one names as a secret
	return learnedFields(s, h)
}

// learnedFields is headerFields of a header that s has learned from already.
func learnedFields(s *scrub.Scrubber, h http.Header) []tape.HeaderField {
	fields := make([]tape.HeaderField, 0, len(h))
	for _, name := range slices.Sorted(maps.Keys(h)) {
		for _, value := range h[name] {
			fields = append(fields, tape.HeaderField{Name: name, Value: s.Header(name, value)})
		}
	}
	return fields
}

// areFields reports whether h is what fields say, which are sorted by name: others never are.
func areFields(h http.Header, fields []tape.HeaderField) bool {
	n, at := 0, 0 // of the values of h that were compared; of those of the field's name
	for i, f := range fields {
		if at++; i == 0 || f.Name > fields[i-1].Name {
			at = 0
		} else if f.Name < fields[i-1].Name {
			return false
		}
		if values := h[f.Name]; at >= len(values) || values[at] != f.Value {
			return false
		}
		n++
	}
	for _, values := range h {
		n -= len(values)
	}
	return n == 0
}

// fieldValue returns the value of the first field called name, "" for none.
func fieldValue(fields []tape.HeaderField, name string) string {
	for _, f := range fields {
		if strings.EqualFold(f.Name, name) {
			return f.Value
		}
	}
	return ""
}

// The keys of the true bytes of header values in a record.
const (
	rawRequest  = "request_headers"
	rawResponse = "response_headers"
)

// safeFields returns fields as a tape can hold them, and adds the true bytes of each value that is not UTF-8 to raw, under
// key and the index of the field.
func safeFields(key string, fields []tape.HeaderField, raw []tape.RawBytes) ([]tape.HeaderField, []tape.RawBytes) {
	shared := true // with the caller
	for i := range fields {
		text, bytes := tape.SafeString(fields[i].Value)
		if bytes != nil {
			if shared {
				fields, shared = slices.Clone(fields), false
			}
			fields[i].Value = text
			raw = append(raw, tape.RawBytes{Key: key + "." + strconv.Itoa(i), Bytes: bytes})
		}
	}
	return fields, raw
}

// restoreFields undoes safeFields.
func restoreFields(key string, fields []tape.HeaderField, raw []tape.RawBytes) {
	for _, r := range raw {
		index, ok := strings.CutPrefix(r.Key, key+".")
		if i, err := strconv.Atoi(index); ok && err == nil && i >= 0 && i < len(fields) {
			fields[i].Value = string(r.Bytes)
		}
	}
}

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

// HasToken reports whether the comma-separated field name of h holds token, whatever its case.
func HasToken(h http.Header, name, token string) bool {
	for _, list := range h[name] {
		for item := range strings.SplitSeq(list, ",") {
			if strings.EqualFold(textproto.TrimString(item), token) {
				return true
			}
		}
	}
	return false
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

// maxTrailers bounds how many trailers of a recorded answer are given.
const maxTrailers = 10_000

// trailersOf are the trailers that the further keys of a record tell; nil for none.
func trailersOf(extra []tape.Field) http.Header {
	var fields [][2]string
	raw := tape.FieldValue(extra, bare.KeyTrailers)
	if raw == nil || json.Unmarshal(raw, &fields) != nil || len(fields) == 0 || len(fields) > maxTrailers {
		return nil
	}
	h := make(http.Header, len(fields))
	for _, f := range fields {
		h.Add(f[0], f[1])
	}
	return h
}

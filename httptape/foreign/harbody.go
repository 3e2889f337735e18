package foreign

import (
	"bytes"
	"cmp"
	"mime"
	"mime/multipart"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// harBody takes the body of a request. Where the file has its fields alone, it is put together again.
func (m *maker) harBody(q *node, x *message) {
	p, size := q.at("postData"), int64(q.at("bodySize").number())
	said, text, fields := p.at("mimeType").string(), p.at("text").text, p.at("params").items
	kind, params, _ := mime.ParseMediaType(said)
	switch {
	case len(text) == 0 && len(fields) == 0:
		if size > 0 || said != "" && size < 0 {
			x.Unsent = "the HAR file does not hold the body of the request"
			m.note(x.Unsent + " for some entries: what asks with one will not match")
		}
		return
	case len(text) == 0 && kind == "multipart/form-data":
		x.Body = multipartOf(fields, params["boundary"])
		m.note("forms in parts stood there without their text: they were put together again from their fields")
	case len(text) == 0:
		x.Body = formOf(fields)
	case strings.EqualFold(p.at("encoding").string()+p.at("_encoding").string(), "base64"):
		b, err := decode64(text)
		if err != nil {
			m.note("the body of some request says base64 and is none: it is on the tape as it stands")
			b = text
		}
		x.Body = b
	default:
		x.Body = bytesOfText(said, withoutHead(kind, text), size)
		m.checkText(said, x.Body)
	}
	if x.Header.Get("Content-Type") == "" && said != "" && len(x.Body) > 0 {
		x.Header.Set("Content-Type", said)
	}
}

// bytesOfText is a body that stands in the file as text. A writer that took it for ISO-8859-1 (mitmproxy does so with what is no
// text; browsers with pages that say so) made a character of each byte: then it has as many characters as there were bytes.
func bytesOfText(contentType string, text []byte, sizes ...int64) []byte {
	kind, params, _ := mime.ParseMediaType(contentType)
	if strings.HasSuffix(kind, "json") || strings.EqualFold(params["charset"], "utf-8") || isASCII(text) {
		return text
	}
	if slices.Contains(sizes, int64(len(text))) || !slices.Contains(sizes, int64(utf8.RuneCount(text))) {
		return text
	}
	if b, ok := latin1(text); ok {
		return b
	}
	return text
}

// withoutHead takes off the header lines that Firefox puts before the body of a form.
func withoutHead(kind string, text []byte) []byte {
	if kind != "application/x-www-form-urlencoded" && kind != "multipart/form-data" {
		return text
	}
	if !bytes.HasPrefix(bytes.ToLower(text[:min(len(text), 32)]), []byte("content-")) {
		return text
	}
	for _, gap := range []string{"\r\n\r\n", "\n\n"} {
		if _, rest, ok := bytes.Cut(text, []byte(gap)); ok {
			return rest
		}
	}
	return text
}

// formOf is a form of fields, in their order. Values stand there as browsers write them, escaped or not.
func formOf(params []*node) []byte {
	var b strings.Builder
	for i, f := range params {
		if i > 0 {
			b.WriteByte('&')
		}
		b.WriteString(escapedOnce(f.at("name").string()) + "=" + escapedOnce(f.at("value").string()))
	}
	return []byte(b.String())
}

// escapedOnce returns a text as it stands in a form, where it may stand so already.
func escapedOnce(s string) string {
	if plain, err := url.QueryUnescape(s); err == nil && url.QueryEscape(plain) == s {
		return s
	}
	return url.QueryEscape(s)
}

// multipartOf is a form in parts.
func multipartOf(params []*node, boundary string) []byte {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	if w.SetBoundary(boundary) != nil {
		_ = w.SetBoundary("tapedeck") // of a file that lost it; requests compare without it
	}
	for _, f := range params {
		fields := map[string]string{"name": f.at("name").string()}
		if file := f.at("fileName").string(); file != "" {
			fields["filename"] = file
		}
		head := textproto.MIMEHeader{"Content-Disposition": {mime.FormatMediaType("form-data", fields)}}
		if kind := f.at("contentType").string(); kind != "" {
			head.Set("Content-Type", kind)
		}
		if part, err := w.CreatePart(head); err == nil {
			_, _ = part.Write(f.at("value").text) // a buffer takes all
		}
	}
	_ = w.Close()
	return b.Bytes()
}

// harErrors are what Chrome, and what others say as it does, calls what a tape has words for.
var harErrors = map[string]string{
	"ERR_ABORTED":                     tape.Cancelled,
	"ERR_CONNECTION_REFUSED":          exchange.Refused,
	"ERR_CONNECTION_RESET":            exchange.Reset,
	"ERR_CONNECTION_CLOSED":           exchange.NoAnswer,
	"ERR_EMPTY_RESPONSE":              exchange.NoAnswer,
	"ERR_TIMED_OUT":                   exchange.Timeout,
	"ERR_CONNECTION_TIMED_OUT":        exchange.Timeout,
	"ERR_INCOMPLETE_CHUNKED_ENCODING": exchange.CutShort,
	"ERR_CONTENT_LENGTH_MISMATCH":     exchange.CutShort,
}

// harWhole are errors of a browser about an answer that came whole.
var harWhole = []string{"ERR_HTTP_RESPONSE_CODE_FAILURE", "ERR_BLOCKED_BY_ORB", "ERR_BLOCKED_BY_RESPONSE"}

// harError is what cut an entry that asked for a URL, in the words of a tape; "" for nothing.
func harError(r *node, asked string) string {
	status, failed := r.at("status").number(), ""
	for _, key := range []string{"_error", "_failureText", "_errorMessage"} { // of Chrome, Playwright, BrowserUp
		failed = cmp.Or(failed, r.at(key).string())
	}
	if text := r.at("statusText").string(); status <= 0 && failed == "" && strings.Contains(text, "ERR_") {
		failed = text
	}
	name := failed
	if i := strings.Index(name, "ERR_"); i >= 0 {
		name = name[i:]
	}
	for _, whole := range harWhole {
		if status > 0 && strings.HasPrefix(name, whole) {
			return ""
		}
	}
	switch {
	case harErrors[name] != "":
		return harErrors[name]
	case name == "ERR_NAME_NOT_RESOLVED":
		u, err := url.Parse(asked)
		if err != nil {
			return exchange.NoSuchHost
		}
		return exchange.NoSuchHost + u.Hostname()
	case failed != "":
		return failed
	case status <= 0:
		return "the HAR file has no answer: it was blocked, or it failed"
	}
	return ""
}

package foreign

import (
	"bytes"
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

// body takes the body of a request. Where the file has its fields alone, it is put together again.
func (h *harReader) body(e *harEntry, x *message) {
	p := e.post
	if p == nil {
		p = new(harPost)
	}
	kind, params, _ := mime.ParseMediaType(p.mime)
	switch {
	case len(p.text) == 0 && len(p.params) == 0:
		if e.sent > 0 || p.mime != "" && e.sent < 0 {
			x.unsent = "the HAR file does not hold the body of the request"
			h.m.note(x.unsent + " for some entries: what asks with one will not match")
		}
		return
	case len(p.text) == 0 && len(p.params) > 0 && kind == "multipart/form-data":
		x.body = multipartOf(p.params, params["boundary"])
		h.m.note("forms in parts stood there without their text: they were put together again from their fields")
	case len(p.text) == 0 && len(p.params) > 0:
		x.body = formOf(p.params)
	case strings.EqualFold(p.encoding, "base64"):
		b, err := decode64(p.text)
		if err != nil {
			h.m.note("the body of some request says base64 and is none: it is on the tape as it stands")
			b = p.text
		}
		x.body = b
	default:
		x.body = bytesOfText(p.mime, withoutHead(kind, p.text), e.sent)
		h.checkText(p.mime, x.body)
	}
	if x.header.Get("Content-Type") == "" && p.mime != "" && len(x.body) > 0 {
		x.header.Set("Content-Type", p.mime)
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
func formOf(params []harField) []byte {
	var b strings.Builder
	for i, f := range params {
		if i > 0 {
			b.WriteByte('&')
		}
		b.WriteString(escapedOnce(f.name) + "=" + escapedOnce(f.value))
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
func multipartOf(params []harField, boundary string) []byte {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	if w.SetBoundary(boundary) != nil {
		_ = w.SetBoundary("tapedeck") // of a file that lost it; requests compare without it
	}
	for _, f := range params {
		fields := map[string]string{"name": f.name}
		if f.file != "" {
			fields["filename"] = f.file
		}
		head := textproto.MIMEHeader{"Content-Disposition": {mime.FormatMediaType("form-data", fields)}}
		if f.contentType != "" {
			head.Set("Content-Type", f.contentType)
		}
		if part, err := w.CreatePart(head); err == nil {
			_, _ = part.Write([]byte(f.value)) // a buffer takes all
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

// harError is what cut an entry, in the words of a tape; "" for nothing.
func harError(e *harEntry) string {
	failed := e.failed
	if e.status <= 0 && failed == "" && strings.Contains(e.statusText, "ERR_") {
		failed = e.statusText
	}
	name := failed
	if i := strings.Index(name, "ERR_"); i >= 0 {
		name = name[i:]
	}
	for _, whole := range harWhole {
		if e.status > 0 && strings.HasPrefix(name, whole) {
			return ""
		}
	}
	switch {
	case harErrors[name] != "":
		return harErrors[name]
	case name == "ERR_NAME_NOT_RESOLVED":
		u, err := url.Parse(e.url)
		if err != nil {
			return exchange.NoSuchHost
		}
		return exchange.NoSuchHost + u.Hostname()
	case failed != "":
		return failed
	case e.status <= 0:
		return "the HAR file has no answer: it was blocked, or it failed"
	}
	return ""
}

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
	p, size := &e.Request.Post, int64(e.Request.Size)
	kind, params, _ := mime.ParseMediaType(p.MIME)
	switch {
	case len(p.Text) == 0 && len(p.Params) == 0:
		if size > 0 || p.MIME != "" && size < 0 {
			x.unsent = "the HAR file does not hold the body of the request"
			h.m.note(x.unsent + " for some entries: what asks with one will not match")
		}
		return
	case len(p.Text) == 0 && len(p.Params) > 0 && kind == "multipart/form-data":
		x.body = multipartOf(p.Params, params["boundary"])
		h.m.note("forms in parts stood there without their text: they were put together again from their fields")
	case len(p.Text) == 0 && len(p.Params) > 0:
		x.body = formOf(p.Params)
	case strings.EqualFold(p.Encoding, "base64"):
		b, err := decode64(p.Text)
		if err != nil {
			h.m.note("the body of some request says base64 and is none: it is on the tape as it stands")
			b = p.Text
		}
		x.body = b
	default:
		x.body = bytesOfText(p.MIME, withoutHead(kind, p.Text), size)
		h.checkText(p.MIME, x.body)
	}
	if x.header.Get("Content-Type") == "" && p.MIME != "" && len(x.body) > 0 {
		x.header.Set("Content-Type", p.MIME)
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
		b.WriteString(escapedOnce(f.Name) + "=" + escapedOnce(f.Value))
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
		fields := map[string]string{"name": f.Name}
		if f.File != "" {
			fields["filename"] = f.File
		}
		head := textproto.MIMEHeader{"Content-Disposition": {mime.FormatMediaType("form-data", fields)}}
		if f.ContentType != "" {
			head.Set("Content-Type", f.ContentType)
		}
		if part, err := w.CreatePart(head); err == nil {
			_, _ = part.Write([]byte(f.Value)) // a buffer takes all
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
	failed := e.Response.Failed
	if e.Response.Status <= 0 && failed == "" && strings.Contains(e.Response.StatusText, "ERR_") {
		failed = e.Response.StatusText
	}
	name := failed
	if i := strings.Index(name, "ERR_"); i >= 0 {
		name = name[i:]
	}
	for _, whole := range harWhole {
		if e.Response.Status > 0 && strings.HasPrefix(name, whole) {
			return ""
		}
	}
	switch {
	case harErrors[name] != "":
		return harErrors[name]
	case name == "ERR_NAME_NOT_RESOLVED":
		u, err := url.Parse(e.Request.URL)
		if err != nil {
			return exchange.NoSuchHost
		}
		return exchange.NoSuchHost + u.Hostname()
	case failed != "":
		return failed
	case e.Response.Status <= 0:
		return "the HAR file has no answer: it was blocked, or it failed"
	}
	return ""
}

package foreign

import (
	"bytes"
	"cmp"
	"mime"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// har reads HAR 1.1 and 1.2, as browsers and proxies write it:
//
//	{"log": {"version", "creator": {"name", "version"}, "browser": …, "entries": [{startedDateTime, time, request, response, …}]}}
//
// Bodies stand there as text or base64, and decoded whatever the headers say. Entries go by their times.
var har = Importer{
	name: "har", looks: looksHAR, within: "log", lists: []string{"entries"}, unit: "entry", byTime: true, message: harMessage,
	version: func(key string, v *node) string {
		switch key {
		case "version":
			return "HAR " + v.string()
		case "creator", "browser":
			return strings.TrimSpace(v.at("name").string() + " " + v.at("version").string())
		}
		return ""
	},
}

// looksHAR finds the key that a HAR file begins with.
func looksHAR(head []byte) bool {
	head = bytes.TrimPrefix(head, []byte("\ufeff"))
	for _, token := range []string{"{", `"log"`, ":", "{"} {
		var ok bool
		if head, ok = bytes.CutPrefix(bytes.TrimLeft(head, " \t\r\n"), []byte(token)); !ok {
			return false
		}
	}
	return true
}

// harMessage reads one entry.
func harMessage(m *maker, e *node, x *message) error {
	q, r := e.at("request"), e.at("response")
	x.Method, x.URL, x.Header = strings.ToUpper(q.at("method").string()), q.at("url").string(), harHeader(q.at("headers"))
	x.Status, x.Answer, x.Proto = max(int(r.at("status").number()), 0), harHeader(r.at("headers")), r.at("httpVersion").string() // Playwright says -1 where nothing answered
	if e.at("_resourceType").string() == "websocket" || len(e.at("_webSocketMessages").items) > 0 {                              // of Chrome
		x.Status = http.StatusSwitchingProtocols // which put tells of
	}
	x.At, _ = time.Parse(time.RFC3339Nano, e.at("startedDateTime").string())
	if ms := e.at("time").number(); ms > 0 && ms < maxEntryMS {
		x.Took = time.Duration(ms * float64(time.Millisecond))
	}
	m.harBody(q, x)
	m.harContent(r, x)
	if e.at("_fromCache").string() != "" { // of Chrome: "memory", "disk"
		m.note("some answers came from the browser's cache and were not asked for: they are on the tape as if they had been")
	}
	x.Cut = harError(r, x.URL)
	return nil
}

// maxEntryMS bounds, in ms, how long an entry may have taken: a week.
const maxEntryMS = 7 * 24 * 3600 * 1000

// content takes the body of the answer.
func (m *maker) harContent(r *node, x *message) {
	c := r.at("content")
	text, size := c.at("text").text, int64(c.at("size").number())
	switch {
	case !exchange.HasBody(x.Method, x.Status):
		x.Content = text // put tells of it
		return
	case c.at("text").kind == nullNode && (size > 0 || size < 0 && r.at("bodySize").number() > 0):
		x.Lost = "the HAR file does not hold the body of the answer"
		m.note(x.Lost + " for some entries: they cannot be answered; save it with content")
		return
	}
	x.Content = text
	if strings.EqualFold(c.at("encoding").string(), "base64") {
		b, err := decode64(text)
		if err != nil {
			x.Content, x.Lost = nil, "the HAR file says base64, and the body is none"
			m.note(x.Lost)
			return
		}
		x.Content = b
	} else {
		x.Content = bytesOfText(x.Answer.Get("Content-Type"), text, size, size+int64(c.at("compression").number()))
		m.checkText(x.Answer.Get("Content-Type"), x.Content)
	}
	m.unpacked(x, size)
}

// unpacked takes off the headers that say how the body was packed: it stands in the file as it was after that. A few writers keep
// it as it came.
func (m *maker) unpacked(x *message, size int64) {
	encoding := x.Answer.Get("Content-Encoding")
	if encoding == "" || len(x.Content) == 0 {
		return
	}
	plain, err := exchange.Decode(encoding, x.Content, MaxFile)
	if err == nil && int64(len(x.Content)) != size && !bytes.Equal(plain, x.Content) {
		return
	}
	x.Answer.Del("Content-Encoding")
	x.Answer.Del("Content-Length")
	m.note("answers stand in a HAR file decoded: Content-Encoding is left out of their headers")
}

// checkText notes what a text cannot say of the bytes that it was.
func (m *maker) checkText(contentType string, text []byte) {
	if bytes.Contains(text, []byte("\ufffd")) {
		m.note("some bodies hold U+FFFD: what stood there was no text, and the HAR file lost it")
	}
	_, charset, _ := strings.Cut(strings.ToLower(contentType), "charset=")
	charset = strings.Trim(charset, `"' `)
	if charset != "" && charset != "utf-8" && charset != "utf8" && utf8.Valid(text) && !isASCII(text) {
		m.note("bodies that say charset=" + charset + " stand in UTF-8 on the tape, as in the HAR file")
	}
}

// harHeader is a list of headers without the pseudo-headers of HTTP/2. Chrome puts several values of one name into one, a line
// each.
func harHeader(fields *node) http.Header {
	h := make(http.Header)
	for _, f := range fields.items {
		name := f.at("name").string()
		if name == "" || name[0] == ':' {
			continue
		}
		for v := range strings.SplitSeq(f.at("value").string(), "\n") {
			h.Add(name, v)
		}
	}
	return h
}

// number reads a measure; what is none, or too large, is 0.
func (n *node) number() float64 {
	v, err := strconv.ParseFloat(n.string(), 64)
	if err != nil {
		return 0
	}
	return v
}

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

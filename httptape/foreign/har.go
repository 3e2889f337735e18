package foreign

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
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
	plain, err := exchange.Decode(encoding, x.Content, MaxItem)
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

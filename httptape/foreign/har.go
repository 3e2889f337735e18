package foreign

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// har reads HAR 1.1 and 1.2, as browsers and proxies write it:
//
//	{"log": {"version", "creator": {"name", "version"}, "browser": …, "entries": [{startedDateTime, time, request, response, …}]}}
//
// Bodies stand there as text or base64, and decoded whatever the headers say. Entries go by their times.
type har struct{}

func (har) Name() string { return "har" }

// Looks finds the key that a HAR file begins with.
func (har) Looks(_ string, head []byte) bool {
	head = bytes.TrimPrefix(head, []byte("\ufeff"))
	for _, token := range []string{"{", `"log"`, ":", "{"} {
		var ok bool
		if head, ok = bytes.CutPrefix(bytes.TrimLeft(head, " \t\r\n"), []byte(token)); !ok {
			return false
		}
	}
	return true
}

func (h har) Import(ctx context.Context, path, out string, o *Options) (*Report, error) {
	m := newMaker(ctx, h.Name(), o)
	m.byTime = true
	return m.make(path, out, func(src *source) error { return (&harReader{m: m, src: src}).read() })
}

// A harReader reads one HAR file.
type harReader struct {
	m     *maker
	src   *source
	f     jsonFile
	scan  jsonscan.Scanner
	n     int // entries that were read
	found bool
}

func (h *harReader) read() error {
	h.f = newJSONFile(h.src)
	err := h.f.object(func(key string) error {
		if key == "log" {
			return h.f.object(h.member)
		}
		return h.f.skip()
	})
	if err == nil {
		err = h.f.end()
	}
	if err == nil && !h.found {
		err = fmt.Errorf("%w: want {\"log\":{\"entries\":[…]}}", ErrFormat)
	}
	var read *ReadError
	if err == nil || errors.As(err, &read) {
		return err
	}
	where := h.f.where(err)
	if h.n > 0 {
		where = strings.TrimSuffix(fmt.Sprintf("after entry %d, %s", h.n, where), ", ")
	}
	return h.src.wrong(where, err)
}

// member reads a member of the log.
func (h *harReader) member(key string) error {
	switch key {
	case "entries":
		h.found = true
		return h.f.list(h.entry)
	case "version", "creator", "browser":
		raw, err := h.f.value()
		if err == nil {
			var n *node
			if n, err = jsonNode(raw); err == nil {
				h.producer(n)
			}
		}
		return err
	}
	return h.f.skip()
}

// producer notes the version of the format, or the program that wrote the file.
func (h *harReader) producer(n *node) {
	if n.kind == scalarNode {
		h.m.version("HAR " + n.string())
	} else if name := n.at("name").string(); name != "" {
		h.m.version(strings.TrimSpace(name + " " + n.at("version").string()))
	}
}

func (h *harReader) entry(raw []byte) error {
	h.n++
	where := fmt.Sprintf("entry %d", h.n)
	e := &harEntry{}
	h.scan.Reset(raw)
	readMembers(&h.scan, e, harEntryKeys)
	err := h.scan.End()
	if err == nil {
		err = jsonscan.ValidUTF8(raw)
	}
	if err != nil {
		return h.src.wrong(where, err)
	}
	x := &message{where: where}
	if why := h.message(e, x); why != "" {
		h.m.skip(where, why)
		return nil
	}
	return h.m.put(x)
}

// message makes the message of an entry; why says what keeps it from being one.
func (h *harReader) message(e *harEntry, x *message) (why string) {
	if e.resource == "websocket" || e.messages {
		return errWebSocket.Error()
	}
	x.method, x.url, x.header = strings.ToUpper(e.method), e.url, harHeader(e.header)
	x.status, x.answer, x.proto = max(e.status, 0), harHeader(e.answer), e.proto // Playwright says -1 where nothing answered
	x.at, _ = time.Parse(time.RFC3339Nano, e.started)
	if e.ms > 0 && e.ms < maxEntryMS {
		x.took = time.Duration(e.ms * float64(time.Millisecond))
	}
	h.body(e, x)
	h.content(e, x)
	if e.cache != "" {
		h.m.note("some answers came from the browser's cache and were not asked for: they are on the tape as if they had been")
	}
	x.cut = harError(e)
	return ""
}

// maxEntryMS bounds, in ms, how long an entry may have taken: a week.
const maxEntryMS = 7 * 24 * 3600 * 1000

// content takes the body of the answer.
func (h *harReader) content(e *harEntry, x *message) {
	c := &e.content
	switch {
	case !exchange.HasBody(x.method, x.status):
		x.content = c.text // put tells of it
		return
	case c.text == nil && (c.size > 0 || c.size < 0 && e.bodySize > 0):
		x.lost = "the HAR file does not hold the body of the answer"
		h.m.note(x.lost + " for some entries: they cannot be answered; save it with content")
		return
	}
	x.content = c.text
	if strings.EqualFold(c.encoding, "base64") {
		b, err := decode64(c.text)
		if err != nil {
			x.content, x.lost = nil, "the HAR file says base64, and the body is none"
			h.m.note(x.lost)
			return
		}
		x.content = b
	} else {
		x.content = bytesOfText(x.answer.Get("Content-Type"), c.text, c.size, c.size+c.compression)
		h.checkText(x.answer.Get("Content-Type"), x.content)
	}
	h.unpacked(x, c.size)
}

// unpacked takes off the headers that say how the body was packed: it stands in the file as it was after that. A few writers keep
// it as it came.
func (h *harReader) unpacked(x *message, size int64) {
	encoding := x.answer.Get("Content-Encoding")
	if encoding == "" || len(x.content) == 0 {
		return
	}
	plain, err := exchange.Decode(encoding, x.content, MaxItem)
	if err == nil && int64(len(x.content)) != size && !bytes.Equal(plain, x.content) {
		return
	}
	x.answer.Del("Content-Encoding")
	x.answer.Del("Content-Length")
	h.m.note("answers stand in a HAR file decoded: Content-Encoding is left out of their headers")
}

// checkText notes what a text cannot say of the bytes that it was.
func (h *harReader) checkText(contentType string, text []byte) {
	if bytes.Contains(text, []byte("\ufffd")) {
		h.m.note("some bodies hold U+FFFD: what stood there was no text, and the HAR file lost it")
	}
	_, charset, _ := strings.Cut(strings.ToLower(contentType), "charset=")
	charset = strings.Trim(charset, `"' `)
	if charset != "" && charset != "utf-8" && charset != "utf8" && utf8.Valid(text) && !isASCII(text) {
		h.m.note("bodies that say charset=" + charset + " stand in UTF-8 on the tape, as in the HAR file")
	}
}

// harHeader is a list of headers without the pseudo-headers of HTTP/2. Chrome puts several values of one name into one, a line
// each.
func harHeader(fields []harField) http.Header {
	h := make(http.Header)
	for _, f := range fields {
		if f.name == "" || f.name[0] == ':' {
			continue
		}
		for v := range strings.SplitSeq(f.value, "\n") {
			h.Add(f.name, v)
		}
	}
	return h
}

// A harEntry is one entry, as far as it counts.
type harEntry struct {
	started  string
	ms       float64
	resource string // of Chrome: "websocket", "xhr", …
	cache    string // of Chrome: "memory", "disk"
	messages bool   // of a WebSocket

	method, url string
	header      []harField
	post        *harPost
	sent        int64 // bytes of the body of the request

	status     int
	statusText string
	proto      string
	answer     []harField
	bodySize   int64
	content    harContent
	failed     string
}

type harField struct{ name, value, file, contentType string }

type harPost struct {
	mime, encoding string
	text           []byte
	params         []harField
}

type harContent struct {
	size, compression int64
	text              []byte // nil where the file has none
	encoding          string
}

// readers are what reads the members of an object into a T; the rest is stepped over.
type readers[T any] map[string]func(s *jsonscan.Scanner, to *T)

var harEntryKeys = readers[harEntry]{
	"startedDateTime":    func(s *jsonscan.Scanner, e *harEntry) { e.started = textOf(s) },
	"time":               func(s *jsonscan.Scanner, e *harEntry) { e.ms = numberOf(s) },
	"request":            func(s *jsonscan.Scanner, e *harEntry) { readMembers(s, e, harRequestKeys) },
	"response":           func(s *jsonscan.Scanner, e *harEntry) { readMembers(s, e, harResponseKeys) },
	"_resourceType":      func(s *jsonscan.Scanner, e *harEntry) { e.resource = textOf(s) },
	"_fromCache":         func(s *jsonscan.Scanner, e *harEntry) { e.cache = textOf(s) },
	"_webSocketMessages": func(s *jsonscan.Scanner, e *harEntry) { e.messages = len(s.Raw()) > len("null") },
}

var harRequestKeys = readers[harEntry]{
	"method":   func(s *jsonscan.Scanner, e *harEntry) { e.method = textOf(s) },
	"url":      func(s *jsonscan.Scanner, e *harEntry) { e.url = textOf(s) },
	"headers":  func(s *jsonscan.Scanner, e *harEntry) { e.header = fieldsOf(s) },
	"bodySize": func(s *jsonscan.Scanner, e *harEntry) { e.sent = int64(numberOf(s)) },
	"postData": func(s *jsonscan.Scanner, e *harEntry) {
		p := &harPost{}
		if readMembers(s, p, harPostKeys) {
			e.post = p
		}
	},
}

var harPostKeys = readers[harPost]{
	"mimeType":  func(s *jsonscan.Scanner, p *harPost) { p.mime = textOf(s) },
	"text":      func(s *jsonscan.Scanner, p *harPost) { p.text = bytesOf(s) },
	"encoding":  func(s *jsonscan.Scanner, p *harPost) { p.encoding = textOf(s) },
	"_encoding": func(s *jsonscan.Scanner, p *harPost) { p.encoding = textOf(s) },
	"params":    func(s *jsonscan.Scanner, p *harPost) { p.params = fieldsOf(s) },
}

var harResponseKeys = readers[harEntry]{
	"status":        func(s *jsonscan.Scanner, e *harEntry) { e.status = int(numberOf(s)) },
	"statusText":    func(s *jsonscan.Scanner, e *harEntry) { e.statusText = textOf(s) },
	"httpVersion":   func(s *jsonscan.Scanner, e *harEntry) { e.proto = textOf(s) },
	"headers":       func(s *jsonscan.Scanner, e *harEntry) { e.answer = fieldsOf(s) },
	"bodySize":      func(s *jsonscan.Scanner, e *harEntry) { e.bodySize = int64(numberOf(s)) },
	"content":       func(s *jsonscan.Scanner, e *harEntry) { readMembers(s, &e.content, harContentKeys) },
	"_error":        func(s *jsonscan.Scanner, e *harEntry) { e.failed = textOf(s) },
	"_failureText":  func(s *jsonscan.Scanner, e *harEntry) { e.failed = textOf(s) }, // of Playwright
	"_errorMessage": func(s *jsonscan.Scanner, e *harEntry) { e.failed = textOf(s) }, // of BrowserUp
}

var harContentKeys = readers[harContent]{
	"size":        func(s *jsonscan.Scanner, c *harContent) { c.size = int64(numberOf(s)) },
	"compression": func(s *jsonscan.Scanner, c *harContent) { c.compression = int64(numberOf(s)) },
	"text":        func(s *jsonscan.Scanner, c *harContent) { c.text = bytesOf(s) },
	"encoding":    func(s *jsonscan.Scanner, c *harContent) { c.encoding = textOf(s) },
}

var harFieldKeys = readers[harField]{
	"name":        func(s *jsonscan.Scanner, f *harField) { f.name = textOf(s) },
	"value":       func(s *jsonscan.Scanner, f *harField) { f.value = textOf(s) },
	"fileName":    func(s *jsonscan.Scanner, f *harField) { f.file = textOf(s) },
	"contentType": func(s *jsonscan.Scanner, f *harField) { f.contentType = textOf(s) },
}

// readMembers reads an object; false for a null. A key that is read must not stand twice.
func readMembers[T any](s *jsonscan.Scanner, to *T, keys readers[T]) bool {
	if s.Null() {
		return false
	}
	var seen [12]string
	n := 0
	for s.Begin('{'); s.More('}'); {
		key := s.Key()
		read := keys[string(key)]
		if read == nil {
			s.Skip()
			continue
		}
		for _, k := range seen[:n] {
			if k == string(key) {
				s.Fail("the key %q stands twice", k)
			}
		}
		if n < len(seen) {
			seen[n] = string(key)
			n++
		}
		read(s, to)
	}
	return true
}

func fieldsOf(s *jsonscan.Scanner) (fields []harField) {
	if s.Null() {
		return nil
	}
	for s.Begin('['); s.More(']'); {
		var f harField
		readMembers(s, &f, harFieldKeys)
		fields = append(fields, f)
	}
	return fields
}

func textOf(s *jsonscan.Scanner) string {
	if s.Null() {
		return ""
	}
	return s.Text()
}

// bytesOf reads a text; nil for a null.
func bytesOf(s *jsonscan.Scanner) []byte {
	if s.Null() {
		return nil
	}
	return append([]byte{}, s.TextBytes()...)
}

// numberOf reads a number that is a measure; 0 for a null.
func numberOf(s *jsonscan.Scanner) float64 {
	if s.Null() {
		return 0
	}
	v, _ := strconv.ParseFloat(string(s.Number()), 64) // a number has a form; one that is too large is none of a measure
	return v
}

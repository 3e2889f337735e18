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
	jsonscan.Strictly(&h.scan, e)
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
	if e.Resource == "websocket" || len(e.Messages) > len("null") {
		return errWebSocket.Error()
	}
	q, r := &e.Request, &e.Response
	x.method, x.url, x.header = strings.ToUpper(q.Method), q.URL, harHeader(q.Header)
	x.status, x.answer, x.proto = max(int(r.Status), 0), harHeader(r.Header), r.Proto // Playwright says -1 where nothing answered
	x.at, _ = time.Parse(time.RFC3339Nano, e.Started)
	if e.MS > 0 && e.MS < maxEntryMS {
		x.took = time.Duration(float64(e.MS) * float64(time.Millisecond))
	}
	h.body(e, x)
	h.content(e, x)
	if e.Cache != "" {
		h.m.note("some answers came from the browser's cache and were not asked for: they are on the tape as if they had been")
	}
	x.cut = harError(e)
	return ""
}

// maxEntryMS bounds, in ms, how long an entry may have taken: a week.
const maxEntryMS = 7 * 24 * 3600 * 1000

// content takes the body of the answer.
func (h *harReader) content(e *harEntry, x *message) {
	c := &e.Response.Content
	switch {
	case !exchange.HasBody(x.method, x.status):
		x.content = c.Text // put tells of it
		return
	case c.Text == nil && (c.Size > 0 || c.Size < 0 && e.Response.Size > 0):
		x.lost = "the HAR file does not hold the body of the answer"
		h.m.note(x.lost + " for some entries: they cannot be answered; save it with content")
		return
	}
	x.content = c.Text
	if strings.EqualFold(c.Encoding, "base64") {
		b, err := decode64(c.Text)
		if err != nil {
			x.content, x.lost = nil, "the HAR file says base64, and the body is none"
			h.m.note(x.lost)
			return
		}
		x.content = b
	} else {
		x.content = bytesOfText(x.answer.Get("Content-Type"), c.Text, int64(c.Size), int64(c.Size+c.Compression))
		h.checkText(x.answer.Get("Content-Type"), x.content)
	}
	h.unpacked(x, int64(c.Size))
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
		if f.Name == "" || f.Name[0] == ':' {
			continue
		}
		for v := range strings.SplitSeq(f.Value, "\n") {
			h.Add(f.Name, v)
		}
	}
	return h
}

// A harEntry is one entry, as far as it counts.
type harEntry struct {
	Started  string `json:"startedDateTime"`
	MS       number `json:"time"`
	Resource string `json:"_resourceType"`      // of Chrome: "websocket", "xhr", …
	Cache    string `json:"_fromCache"`         // of Chrome: "memory", "disk"
	Messages []byte `json:"_webSocketMessages"` // of a WebSocket
	Request  struct {
		Method string     `json:"method"`
		URL    string     `json:"url"`
		Header []harField `json:"headers"`
		Size   number     `json:"bodySize"` // bytes of the body
		Post   harPost    `json:"postData"`
	} `json:"request"`
	Response struct {
		Status     number     `json:"status"`
		StatusText string     `json:"statusText"`
		Proto      string     `json:"httpVersion"`
		Header     []harField `json:"headers"`
		Size       number     `json:"bodySize"`
		Content    harContent `json:"content"`
		Failed     string     `json:"_error|_failureText|_errorMessage"` // of Chrome, Playwright, BrowserUp
	} `json:"response"`
}

type harField struct {
	Name        string `json:"name"`
	Value       string `json:"value"`
	File        string `json:"fileName"`
	ContentType string `json:"contentType"`
}

type harPost struct {
	MIME     string     `json:"mimeType"`
	Encoding string     `json:"encoding|_encoding"`
	Text     harText    `json:"text"`
	Params   []harField `json:"params"`
}

type harContent struct {
	Size        number  `json:"size"`
	Compression number  `json:"compression"`
	Text        harText `json:"text"` // nil where the file has none
	Encoding    string  `json:"encoding"`
}

// A harText is a text as the bytes of its UTF-8.
type harText []byte

// ReadJSON implements jsonscan.Value.
func (t *harText) ReadJSON(s *jsonscan.Scanner) {
	if !s.Null() {
		*t = append([]byte{}, s.TextBytes()...)
	}
}

// A number is a measure; one that is too large is none.
type number float64

// ReadJSON implements jsonscan.Value.
func (n *number) ReadJSON(s *jsonscan.Scanner) {
	if !s.Null() {
		v, _ := strconv.ParseFloat(string(s.Number()), 64) // a number has a form
		*n = number(v)
	}
}

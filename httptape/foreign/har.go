package foreign

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// har reads HAR 1.1 and 1.2: one JSON object, {"log":{"version","creator","browser","entries":[…]}}.
type har struct{}

func (har) Name() string { return "har" }

// Looks finds the two keys that every HAR file begins with.
func (har) Looks(_ string, head []byte) bool {
	head = bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\ufeff")), " \t\r\n")
	rest, ok := bytes.CutPrefix(head, []byte("{"))
	if !ok {
		return false
	}
	rest, ok = bytes.CutPrefix(bytes.TrimLeft(rest, " \t\r\n"), []byte(`"log"`))
	if !ok {
		return false
	}
	rest, ok = bytes.CutPrefix(bytes.TrimLeft(rest, " \t\r\n"), []byte(":"))
	return ok && bytes.HasPrefix(bytes.TrimLeft(rest, " \t\r\n"), []byte("{"))
}

func (h har) Import(ctx context.Context, path, out string, o *Options) (*Report, error) {
	m := newMaker(ctx, h.Name(), o)
	m.byTime = true
	return m.make(path, out, func(src *source) error { return (&harReader{m: m, src: src}).read() })
}

// A harReader reads one HAR file.
type harReader struct {
	m   *maker
	src *source
	n   int // entries that were read
}

// harEntry is one entry, as far as it counts.
type harEntry struct {
	StartedDateTime string
	Time            float64
	Request         struct {
		Method, URL string
		Headers     []harField
		PostData    *struct {
			MimeType, Text string
			Encoding       string // of a few writers
			Params         []harField
		}
	}
	Response struct {
		Status      int
		HTTPVersion string
		Headers     []harField
		Content     struct {
			Size     int64
			Text     *string
			Encoding string
			MimeType string
		}
		Error string `json:"_error"`
	}
	ResourceType string `json:"_resourceType"`
}

type harField struct{ Name, Value string }

func (h *harReader) read() error {
	d := json.NewDecoder(h.src)
	if err := h.descend(d, "log"); err != nil {
		return h.src.wrong("", err)
	}
	return nil
}

// descend reads the object of the log.
func (h *harReader) descend(d *json.Decoder, _ string) error {
	for _, want := range []string{"{", "log", "{"} {
		t, err := d.Token()
		if err != nil {
			return err
		}
		if fmt.Sprint(t) != want {
			return fmt.Errorf("%w: want {\"log\":{…}}", ErrFormat)
		}
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		switch key {
		case "entries":
			err = h.entries(d)
		default:
			var skip json.RawMessage
			err = d.Decode(&skip)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (h *harReader) entries(d *json.Decoder) error {
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return cmpErr(err, errors.New("entries is no list"))
	}
	for d.More() {
		var e harEntry
		if err := d.Decode(&e); err != nil {
			return err
		}
		h.n++
		if err := h.entry(&e); err != nil {
			return err
		}
	}
	_, err := d.Token()
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return err
}

func cmpErr(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

func (h *harReader) entry(e *harEntry) error {
	x := &message{
		where: fmt.Sprintf("entry %d", h.n), method: e.Request.Method, url: e.Request.URL,
		header: harHeader(e.Request.Headers), status: e.Response.Status, answer: harHeader(e.Response.Headers),
		took: time.Duration(e.Time * float64(time.Millisecond)),
	}
	x.at, _ = time.Parse(time.RFC3339Nano, e.StartedDateTime)
	if p := e.Request.PostData; p != nil {
		x.body = []byte(p.Text)
		if p.Text == "" && len(p.Params) > 0 {
			form := url.Values{}
			for _, f := range p.Params {
				form.Add(f.Name, f.Value)
			}
			x.body = []byte(form.Encode())
		}
	}
	c := &e.Response.Content
	switch {
	case c.Text == nil && c.Size > 0 && exchange.HasBody(x.method, x.status):
		x.lost = "the body is not in the HAR file"
	case c.Text == nil:
	case strings.EqualFold(c.Encoding, "base64"):
		b, err := base64.StdEncoding.DecodeString(*c.Text)
		if err != nil {
			x.lost = "the body is no base64"
		}
		x.content = b
	default:
		x.content = []byte(*c.Text)
	}
	if x.answer.Get("Content-Encoding") != "" {
		x.answer.Del("Content-Encoding")
		x.answer.Del("Content-Length")
	}
	if x.status == 0 {
		x.cut = harError(e.Response.Error)
	}
	if v := strings.ToUpper(e.Response.HTTPVersion); strings.HasPrefix(v, "H2") || strings.HasPrefix(v, "HTTP/2") {
		x.proto = "HTTP/2.0"
	}
	return h.m.put(x)
}

// harError is what an entry without an answer says, in the words of a tape.
func harError(text string) string {
	switch text {
	case "":
		return "the HAR file has no answer"
	case "net::ERR_ABORTED":
		return tape.Cancelled
	}
	return text
}

// harHeader is a list of headers without the pseudo-headers of HTTP/2. Chrome puts several values of one name into one, a line
// each.
func harHeader(fields []harField) http.Header {
	h := make(http.Header)
	for _, f := range fields {
		if strings.HasPrefix(f.Name, ":") {
			continue
		}
		for v := range strings.SplitSeq(f.Value, "\n") {
			h.Add(f.Name, v)
		}
	}
	return h
}

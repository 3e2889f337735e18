package foreign

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/internal/lazyregexp"
)

// vcr reads the cassettes of VCR (Ruby), of vcrpy and pytest-recording (Python), and of those who write the same form (betamax,
// vcr of R), in YAML or JSON.
//
//	http_interactions:                     interactions:
//	- request:                             - request:
//	    method: get                            body: null
//	    uri: http://…                          headers: {name: [value]}
//	    body: {encoding: UTF-8, string: ''}    method: GET
//	    headers: {name: [value]}               uri: http://…
//	  response:                              response:
//	    status: {code: 200, message: OK}       body: {string: …}
//	    …                                      status: {code: 200, message: OK}
//	  recorded_at: …                       version: 1
//	recorded_with: VCR 6.0.0
var vcr = Importer{
	name: "vcr", looks: looksVCR, lists: []string{"http_interactions", "interactions"}, unit: "item", message: vcrMessage,
	version: func(key string, v *node) string {
		switch key {
		case "recorded_with":
			return v.string()
		case "version":
			return "vcrpy cassette version " + v.string()
		}
		return ""
	},
}

var (
	vcrList     = lazyregexp.New(`(?m)^http_interactions:`)
	vcrJSONList = lazyregexp.New(`"(http_)?interactions"\s*:\s*\[`)
)

// errOtherCassette is the error for one family's cassette that is read as another's.
var errOtherCassette = errors.New("the request has a uri and no url: this is a cassette of VCR or vcrpy, not of go-vcr; import it as vcr")

func looksVCR(head []byte) bool {
	if isJSON(head) {
		return vcrJSONList.Match(head)
	}
	return vcrList.Match(head) || listTop.Match(head) && !looksGoVCR(head)
}

// vcrMessage reads one interaction.
func vcrMessage(m *maker, n *node, x *message) (err error) {
	req, res := n.at("request"), n.at("response")
	if req.has("url") && !req.has("uri") {
		return errors.New("the request has a url and no uri: this is a cassette of go-vcr, not of VCR or vcrpy; import it as go-vcr")
	}
	x.Method, x.URL = strings.ToUpper(req.at("method").string()), req.at("uri").string()
	x.Header, x.Answer = headersOf(req.at("headers")), headersOf(res.at("headers"))
	if x.Body, err = m.vcrBody(req.at("body")); err != nil {
		return fmt.Errorf("the body of the request: %w", err)
	}
	body := res.at("body")
	if res.has("content") { // of httpx, in vcrpy before 6
		body = res.at("content")
	}
	if x.Content, err = m.vcrBody(body); err != nil {
		return fmt.Errorf("the body of the answer: %w", err)
	}
	x.Status = vcrStatus(res)
	if x.Status == 0 {
		x.Cut = "the cassette has no answer"
	}
	x.Proto = cmp.Or(res.at("http_version").string(), res.at("protocol").string()) // "1.1", "HTTP/1.1", "2"
	x.At = vcrTime(n.at("recorded_at").string())
	m.fitEncoding(x)
	return nil
}

// vcrStatus reads the status, which is a number, or stands in a mapping.
func vcrStatus(res *node) int {
	status := res.at("status")
	for _, n := range []*node{status, status.at("code"), status.at("status_code"), res.at("status_code")} {
		if code, ok := n.int(); ok {
			return code
		}
	}
	return 0
}

// vcrTime reads when an interaction was recorded; zero for what nobody can read.
func vcrTime(s string) time.Time {
	for _, layout := range []string{time.RFC1123, time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05 MST"} {
		if t, err := time.Parse(layout, s); err == nil {
			return t
		}
	}
	return time.Time{}
}

// vcrBody reads a body: a text, or a mapping that holds one and may say how it was encoded.
func (m *maker) vcrBody(n *node) ([]byte, error) {
	switch n.kind {
	case nullNode, scalarNode:
		return n.text, nil
	case listNode: // pieces, of a body that was sent in chunks
		var all []byte
		for _, piece := range n.items {
			all = append(all, piece.text...)
		}
		return all, nil
	}
	if b := n.at("base64_string"); b.kind == scalarNode {
		return decode64(b.text)
	}
	if state := n.at("state"); state.kind == listNode && len(state.items) > 0 { // a BytesIO of Python
		return state.items[0].text, nil
	}
	return m.vcrEncoded(n.at("string").text, n.at("encoding").string()), nil
}

// vcrEncoded returns a text in the encoding that the body had.
func (m *maker) vcrEncoded(text []byte, encoding string) []byte {
	switch strings.ToUpper(encoding) {
	case "", "UTF-8", "US-ASCII", "ASCII-8BIT", "BINARY":
		return text
	case "ISO-8859-1":
		if b, ok := latin1(text); ok {
			return b
		}
	}
	if !isASCII(text) {
		m.note("bodies in " + encoding + " stand in UTF-8 on the tape")
	}
	return text
}

func isASCII(b []byte) bool {
	return !bytes.ContainsFunc(b, func(r rune) bool { return r >= utf8.RuneSelf })
}

// latin1 returns a text in ISO-8859-1; false where it has a character that is not in it.
func latin1(text []byte) ([]byte, bool) {
	out := make([]byte, 0, len(text))
	for _, r := range string(text) {
		if r > 0xff {
			return nil, false
		}
		out = append(out, byte(r))
	}
	return out, true
}

// decode64 decodes base64 with or without padding, broken into lines or not.
func decode64(text []byte) ([]byte, error) {
	clean := bytes.Map(func(r rune) rune {
		if strings.ContainsRune(" \n\r\t=", r) {
			return -1
		}
		return r
	}, text)
	out := make([]byte, base64.RawStdEncoding.DecodedLen(len(clean)))
	n, err := base64.RawStdEncoding.Decode(out, clean)
	return out[:n], err
}

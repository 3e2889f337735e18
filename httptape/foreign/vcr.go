package foreign

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
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

// goVCR reads the cassettes of github.com/dnaeon/go-vcr: version 1 (go-vcr 1 and 2) and version 2 (3 and 4).
//
//	version: 2
//	interactions:
//	    - id: 0
//	      request: {method, url, host, headers, body, form, …}
//	      response: {code, status, headers, body, duration, proto, trailer, uncompressed, …}
var goVCR = Importer{
	name: "go-vcr", looks: looksGoVCR, lists: []string{"interactions"}, unit: "item", message: goVCRMessage,
	version: func(key string, v *node) string {
		if key == "version" {
			return "cassette version " + v.string()
		}
		return ""
	},
}

var (
	goVCRTop  = lazyregexp.New(`(?m)^version: [12]\r?$`)
	listTop   = lazyregexp.New(`(?m)^interactions:`)
	goVCRItem = lazyregexp.New(`(?m)^ +url: \S`)
	vcrpyItem = lazyregexp.New(`(?m)^ +uri: \S`)
)

// looksGoVCR finds the version before the list, which go-vcr writes first, and url where vcrpy has uri.
func looksGoVCR(head []byte) bool {
	if isJSON(head) {
		return false
	}
	version, list := goVCRTop.FindIndex(head), listTop.FindIndex(head)
	if list == nil {
		return false
	}
	url, uri := goVCRItem.FindIndex(head), vcrpyItem.FindIndex(head)
	if url == nil && uri == nil { // a long first body
		return version != nil && version[0] < list[0]
	}
	return uri == nil || url != nil && url[0] < uri[0]
}

// goVCRMessage reads one interaction.
func goVCRMessage(m *maker, n *node, x *message) error {
	req, res := n.at("request"), n.at("response")
	x.Method, x.URL = req.at("method").string(), req.at("url").string()
	if host := req.at("host").string(); strings.HasPrefix(x.URL, "/") && host != "" { // of a server that was recorded
		x.URL = "http://" + host + x.URL
	}
	x.Header, x.Body = headersOf(req.at("headers")), req.at("body").text
	x.Answer, x.Content = headersOf(res.at("headers")), res.at("body").text
	x.Trailer = headersOf(res.at("trailer"))
	x.Proto = res.at("proto").string()
	code := res.at("code")
	var ok bool
	if x.Status, ok = code.int(); !ok && code.kind != nullNode {
		return errors.New("the status of the answer is no number")
	}
	if x.Status == 0 {
		x.Cut = "the cassette has no answer"
	}
	if d := res.at("duration"); d.kind == scalarNode {
		if ns, ok := d.int(); ok {
			x.Took = time.Duration(ns)
		} else {
			x.Took, _ = time.ParseDuration(d.string())
		}
	}
	x.Took = max(x.Took, 0)
	m.checkLength(req, x.Body)
	if x.Method != http.MethodHead {
		m.checkLength(res, x.Content)
	}
	if req.has("uri") && !req.has("url") {
		return errOtherCassette
	}
	m.fitEncoding(x)
	return nil
}

// checkLength notes a body of another length than the cassette says: the YAML of go-vcr 3 loses line breaks at the beginning of
// a text, and people edit cassettes.
func (m *maker) checkLength(side *node, body []byte) {
	if n, ok := side.at("content_length").int(); ok && n > 0 && n != len(body) {
		m.note("some bodies are not as long as the cassette says they were: they are on the tape as they stand there")
	}
}

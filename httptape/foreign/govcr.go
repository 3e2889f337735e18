package foreign

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/lazyregexp"
)

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

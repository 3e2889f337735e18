package foreign

import (
	"context"
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
type goVCR struct{}

func (goVCR) Name() string { return "go-vcr" }

var (
	goVCRTop  = lazyregexp.New(`(?m)^version: [12]\r?$`)
	listTop   = lazyregexp.New(`(?m)^interactions:`)
	goVCRItem = lazyregexp.New(`(?m)^ +url: \S`)
	vcrpyItem = lazyregexp.New(`(?m)^ +uri: \S`)
)

// Looks finds the version before the list, which go-vcr writes first, and url where vcrpy has uri.
func (goVCR) Looks(_ string, head []byte) bool {
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

func (g goVCR) Import(ctx context.Context, path, out string, o *Options) (*Report, error) {
	m := newMaker(ctx, g.Name(), o)
	form := &cassetteForm{lists: []string{"interactions"}, item: goVCRMessage, version: func(key string, v *node) string {
		if key == "version" {
			return "cassette version " + v.string()
		}
		return ""
	}}
	return m.make(path, out, func(src *source) error { return form.read(m, src) })
}

// goVCRMessage reads one interaction.
func goVCRMessage(m *maker, n *node, x *message) error {
	req, res := n.at("request"), n.at("response")
	x.method, x.url = req.at("method").string(), req.at("url").string()
	if host := req.at("host").string(); strings.HasPrefix(x.url, "/") && host != "" { // of a server that was recorded
		x.url = "http://" + host + x.url
	}
	x.header, x.body = headersOf(req.at("headers")), req.at("body").text
	x.answer, x.content = headersOf(res.at("headers")), res.at("body").text
	x.trailer = headersOf(res.at("trailer"))
	x.proto = res.at("proto").string()
	code := res.at("code")
	var ok bool
	if x.status, ok = code.int(); !ok && code.kind != nullNode {
		return errors.New("the status of the answer is no number")
	}
	if x.status == 0 {
		x.cut = "the cassette has no answer"
	}
	if d := res.at("duration"); d.kind == scalarNode {
		if ns, ok := d.int(); ok {
			x.took = time.Duration(ns)
		} else {
			x.took, _ = time.ParseDuration(d.string())
		}
	}
	x.took = max(x.took, 0)
	m.checkLength(req, x.body)
	if x.method != http.MethodHead {
		m.checkLength(res, x.content)
	}
	if req.has("uri") && !req.has("url") {
		return errOtherCassette
	}
	return nil
}

// checkLength notes a body of another length than the cassette says: the YAML of go-vcr 3 loses line breaks at the beginning of
// a text, and people edit cassettes.
func (m *maker) checkLength(side *node, body []byte) {
	if n, ok := side.at("content_length").int(); ok && n > 0 && n != len(body) {
		m.note("some bodies are not as long as the cassette says they were: they are on the tape as they stand there")
	}
}

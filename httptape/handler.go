package httptape

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
)

// Handler returns a handler that passes every request on to t, as one to the server at the URL base, so that a program that
// takes a base URL and no transport can be recorded and answered:
//
//	srv := httptest.NewServer(tr.Handler("https://api.openai.com"))
//
// Answers are streamed as they come. A request that is not on the tape gets status exchange.RefusedStatus, which no SDK tries
// again, with the explanation in the error shape of its provider; an answer that was cut ends in a connection that is cut.
// Accept-Encoding is not passed on, so that a tape holds text. Where base is no URL every request gets status 500.
func (t *Transport) Handler(base string) http.Handler {
	to, err := url.Parse(base)
	if err == nil && (to.Scheme == "" || to.Host == "") {
		err = fmt.Errorf("%q is no absolute URL", base)
	}
	return &handler{t: t, base: to, err: err}
}

type handler struct {
	t    *Transport
	base *url.URL
	err  error // why base is none
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.err != nil {
		http.Error(w, "httptape: base of the handler: "+h.err.Error(), http.StatusInternalServerError)
		return
	}
	res, err := h.t.RoundTrip(h.onward(r))
	var unmatched *UnmatchedError
	if errors.As(err, &unmatched) {
		refuse(w, unmatched)
		return
	}
	if err != nil {
		h.t.opts.Log.Debug("no answer", "url", r.URL.String(), "error", err)
		panic(http.ErrAbortHandler) // net/http's way to cut the connection
	}
	defer res.Body.Close()
	if err := pass(w, res); err != nil {
		panic(http.ErrAbortHandler)
	}
}

// onward is the request to the base.
func (h *handler) onward(r *http.Request) *http.Request {
	out := r.Clone(r.Context())
	u := *h.base
	u.Path = strings.TrimSuffix(h.base.Path, "/") + r.URL.Path
	u.RawPath = ""
	if r.URL.RawPath != "" || h.base.RawPath != "" {
		u.RawPath = strings.TrimSuffix(h.base.EscapedPath(), "/") + r.URL.EscapedPath()
	}
	u.RawQuery = r.URL.RawQuery
	out.URL, out.Host, out.RequestURI = &u, u.Host, ""
	if upgrade := r.Header.Get("Upgrade"); upgrade == "" {
		out.Header = endToEnd(r.Header)
	}
	out.Header.Del("Accept-Encoding")
	if _, ok := out.Header["User-Agent"]; !ok {
		out.Header["User-Agent"] = []string{""} // else net/http sends its own
	}
	return out
}

// pass writes an answer to w, each read at once.
func pass(w http.ResponseWriter, res *http.Response) error {
	setHeader(w.Header(), endToEnd(res.Header))
	w.WriteHeader(res.StatusCode)
	rc := http.NewResponseController(w)
	if err := rc.Flush(); err != nil {
		return err
	}
	buf := make([]byte, 32<<10)
	for {
		n, err := res.Body.Read(buf)
		if n > 0 {
			if _, err := w.Write(buf[:n]); err != nil {
				return err
			}
			if err := rc.Flush(); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	for name, values := range res.Trailer {
		for _, v := range values {
			w.Header().Add(http.TrailerPrefix+name, v)
		}
	}
	return nil
}

// setHeader makes dst exactly src: net/http adds nothing of its own.
func setHeader(dst, src http.Header) {
	for _, name := range []string{"Date", "Content-Type"} {
		if _, ok := src[name]; !ok {
			dst[name] = nil
		}
	}
	for name, values := range src {
		dst[name] = values
	}
}

// hopByHop are the headers that concern one connection (RFC 9110, 7.6.1).
var hopByHop = []string{
	"Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer",
	"Transfer-Encoding", "Upgrade", "Alt-Svc",
}

func endToEnd(h http.Header) http.Header {
	out := h.Clone()
	for _, list := range h["Connection"] {
		for name := range strings.SplitSeq(list, ",") {
			out.Del(textproto.TrimString(name))
		}
	}
	for _, name := range hopByHop {
		out.Del(name)
	}
	return out
}

// refuse tells a client that its request is not on the tape.
func refuse(w http.ResponseWriter, e *UnmatchedError) {
	body := e.body
	if body == nil {
		body = plainError
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Should-Retry", "false")
	w.WriteHeader(exchange.RefusedStatus)
	_, _ = w.Write(body(exchange.RefusedStatus, e.Error())) // who asked and went away needs no answer
}

// plainError is the error object for a request to no known provider.
func plainError(_ int, message string) []byte {
	type detail struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)                                                            // people read the message
	_ = enc.Encode(map[string]detail{"error": {Type: "not_on_tape", Message: message}}) // strings always have a JSON form
	return b.Bytes()
}

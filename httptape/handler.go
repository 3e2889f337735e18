package httptape

import (
	"errors"
	"fmt"
	"io"
	"net/http"
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
		h.t.opts.Log.Debug("no answer", "url", h.t.shownURL(r), "error", err)
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
		out.Header = exchange.EndToEnd(r.Header)
	}
	out.Header.Del("Accept-Encoding")
	if _, ok := out.Header["User-Agent"]; !ok {
		out.Header["User-Agent"] = []string{""} // else net/http sends its own
	}
	return out
}

// pass writes an answer to w, each read at once.
func pass(w http.ResponseWriter, res *http.Response) error {
	exchange.SetHeader(w.Header(), exchange.EndToEnd(res.Header))
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

// refuse tells a client that its request is not on the tape.
func refuse(w http.ResponseWriter, e *UnmatchedError) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Should-Retry", "false")
	w.WriteHeader(exchange.RefusedStatus)
	body := exchange.ErrorBody(e.asked, exchange.RefusedStatus, exchange.NotOnTape, e.Error())
	_, _ = w.Write(body) // who asked and went away needs no answer
}

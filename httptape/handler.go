package httptape

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"

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
	if err != nil {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "httptape: base of the handler: "+err.Error(), http.StatusInternalServerError)
		})
	}
	onward := &httputil.ReverseProxy{
		Transport: t, FlushInterval: -1, ErrorHandler: t.unanswered, ErrorLog: slog.NewLogLogger(t.opts.Log.Handler(), slog.LevelDebug),
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(to)
			p.Out.URL.RawQuery = p.In.URL.RawQuery // as it came, whatever it is
			p.Out.Header.Del("Accept-Encoding")
		},
		ModifyResponse: func(res *http.Response) error {
			res.Header.Del("Alt-Svc") // would lead around the tape
			return nil
		},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		exchange.SetHeader(w.Header(), nil)
		onward.ServeHTTP(w, r)
	})
}

// unanswered tells a client that its request is not on the tape, or cuts its connection, as that of the answer was.
func (t *Transport) unanswered(w http.ResponseWriter, r *http.Request, err error) {
	unmatched, ok := errors.AsType[*UnmatchedError](err)
	if !ok {
		t.opts.Log.Debug("no answer", "url", t.shownURL(r), "error", err)
		panic(http.ErrAbortHandler) // net/http's way to cut the connection
	}
	refuse(w, unmatched)
}

// refuse tells a client that its request is not on the tape.
func refuse(w http.ResponseWriter, e *UnmatchedError) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Should-Retry", "false")
	w.WriteHeader(exchange.RefusedStatus)
	body := exchange.ErrorBody(e.Identity, exchange.RefusedStatus, exchange.NotOnTape, e.Error())
	_, _ = w.Write(body) // who asked and went away needs no answer
}

package httptape

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
)

// readBody reads and closes the body of a request.
func (t *Transport) readBody(req *http.Request) ([]byte, error) {
	body, err := exchange.ReadBody(req, t.opts.MaxBody)
	if errors.Is(err, exchange.ErrTooLarge) {
		err = fmt.Errorf("httptape: %w; set Options.MaxBody", err)
	}
	return body, err
}

// asks is a request as it is matched and kept.
func (t *Transport) asks(req *http.Request, body []byte) *exchange.Request {
	t.secrets.LearnHeader(req.Header)
	r := exchange.RequestOf(req, body)
	r.Header = withoutNames(r.Header, t.drop)
	if t.opts.Rewrite != nil {
		r.Header, r.Body = r.Header.Clone(), bytes.Clone(body)
		t.opts.Rewrite(r)
	}
	return r
}

// shownURL is the URL of a request as errors and logs tell it.
func (t *Transport) shownURL(req *http.Request) string {
	if t.secrets == nil {
		return req.URL.Redacted()
	}
	t.secrets.LearnHeader(req.Header)
	return t.secrets.URL(exchange.RequestOf(req, nil).URL)
}

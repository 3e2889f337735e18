package httptape

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net/http"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/internal/bare"
)

// readBody reads and closes the body of a request.
func (t *Transport) readBody(req *http.Request) ([]byte, error) {
	if req.Body == nil {
		return nil, nil
	}
	defer req.Body.Close()
	b, err := io.ReadAll(io.LimitReader(req.Body, t.opts.MaxBody+1))
	if err != nil {
		return nil, err
	}
	if int64(len(b)) > t.opts.MaxBody {
		return nil, fmt.Errorf("httptape: %w: the request has more than %d bytes; set Options.MaxBody", exchange.ErrTooLarge, t.opts.MaxBody)
	}
	return b, nil
}

// asks is a request as it is matched and kept.
func (t *Transport) asks(req *http.Request, body []byte) *exchange.Request {
	t.secrets.LearnHeader(req.Header)
	header := withoutNames(req.Header, t.drop)
	if t.opts.Rewrite != nil {
		header, body = header.Clone(), bytes.Clone(body)
	}
	r := &exchange.Request{Method: methodOf(req), URL: absoluteURL(req), Header: header, Body: body}
	if r.Header == nil {
		r.Header = make(http.Header)
	}
	if t.opts.Rewrite != nil {
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
	return t.secrets.URL(absoluteURL(req))
}

func methodOf(req *http.Request) string { return cmp.Or(req.Method, http.MethodGet) }

// absoluteURL is what a request asks for: the host is the one that it names.
func absoluteURL(req *http.Request) string {
	u := *req.URL
	u.Host = cmp.Or(req.Host, u.Host)
	return bare.URL(&u)
}

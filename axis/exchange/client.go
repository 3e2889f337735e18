package exchange

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/tapedeck-dev/tapedeck/internal/bare"
)

// RequestOf is a request of net/http as a Tap takes it, with what ReadBody read of it. What it asks for is the host that it names.
func RequestOf(req *http.Request, body []byte) *Request {
	u := *req.URL
	u.Host = cmp.Or(req.Host, u.Host)
	r := &Request{Method: cmp.Or(req.Method, http.MethodGet), URL: bare.URL(&u), Header: req.Header, Body: body}
	if r.Header == nil {
		r.Header = make(http.Header)
	}
	return r
}

// ReadBody reads and closes the body of a request of net/http. One of more than limit bytes is an error that wraps ErrTooLarge.
func ReadBody(req *http.Request, limit int64) ([]byte, error) {
	if req.Body == nil {
		return nil, nil
	}
	defer req.Body.Close()
	b, err := io.ReadAll(io.LimitReader(req.Body, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = fmt.Errorf("%w: the request to %s has more than %d bytes", ErrTooLarge, req.URL.Host, limit)
	}
	if err != nil {
		return nil, err
	}
	return b, nil
}

// Outgoing is the request that leaves: what it was, with the body that ReadBody read of it.
func Outgoing(ctx context.Context, req *http.Request, body []byte) *http.Request {
	out := req.WithContext(ctx)
	if req.Body == nil || req.Body == http.NoBody {
		return out
	}
	out.Body = io.NopCloser(bytes.NewReader(body))
	out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	return out
}

// statusLine is the end of a status line, as net/http writes it: reasons of a server's own are not kept.
func statusLine(code int) string {
	return strconv.Itoa(code) + " " + cmp.Or(http.StatusText(code), "status code "+strconv.Itoa(code))
}

package network

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
)

// A denial is what a Server answers by itself while recording, before any upstream is asked.
type denial struct {
	status  int
	kind    string // type of the error object
	message string
}

// A handler answers the requests of a program, over connections that a Server has made fit for net/http.
type handler struct {
	cfg  *Config
	log  *slog.Logger
	ctx  context.Context // of the Server
	life *lifetime       // the same
	up   *upstream       // nil when answering from a tape alone
	tape *taped          // nil when recording
}

// ServeHTTP implements http.Handler: one request, from begin to end.
func (s *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.life.enter(nil) {
		panic(http.ErrAbortHandler)
	}
	defer s.life.leave(nil)
	to, c := requestURL(r), connOf(r.Context())
	req := &exchange.Request{Method: r.Method, URL: to.String(), Header: r.Header}
	if c != nil { // before the program may be gone
		req.Asker, req.Opener = c.asker.of(c, s.cfg.Asker), c.opener.of(c, s.cfg.Opener)
	}
	if isGRPC(r) && deny(r, to) == nil {
		if err := s.call(w, r, req, to); err != nil {
			panic(http.ErrAbortHandler) // as below
		}
		return
	}
	if c != nil {
		req.Came = c.came.Swap(0)
	}
	body, denied, err := s.readBody(w, r)
	if err != nil {
		panic(http.ErrAbortHandler) // the program never finished asking
	}
	if req.Body = body; denied == nil {
		denied = deny(r, to)
	}
	if err := s.exchange(w, r, req, to, denied); err != nil {
		// net/http's way to cut the connection (HTTP/1.1) or reset the stream (HTTP/2): the program must not take what it
		// got for the whole.
		panic(http.ErrAbortHandler)
	}
}

// exchange records the request and its answer, and passes the answer on. An error means that the program's connection
// must be cut.
func (s *handler) exchange(w http.ResponseWriter, r *http.Request, req *exchange.Request, to *url.URL, denied *denial) error {
	socket := denied == nil && r.ProtoMajor == 1 && r.ProtoMinor >= 1 && exchange.AsksSocket(r.Method, r.Header) // RFC 8441 is not offered
	begun := req
	if socket {
		begun = socketRequest(req)
	}
	o, err := s.cfg.Tap.Begin(begun)
	if ended := s.cfg.Tap.Err(); ended != nil { // also one that ended while this request was begun: it has no answer, not an empty one
		return ended
	}
	if err != nil {
		s.log.Error("request cannot be recorded", "url", req.URL, "error", err)
		a := localAnswer(nil, http.StatusBadRequest, "not_recordable", "tapedeck: the request cannot be recorded: "+err.Error())
		return writeWhole(w, a)
	}
	var a *answer
	switch {
	case socket && s.tape != nil:
		return s.replaySocket(w, r, begun, to, o)
	case socket:
		return s.recordSocket(w, r, req, to, o)
	case s.cfg.Fork != nil:
		a = s.forked(r, req, to, o)
	case s.tape != nil:
		a = s.tape.replayed(r, req, to.Host, o)
	}
	if a == nil {
		a = s.sentOn(r, req, to, o, denied)
	}
	return s.relay(w, r, o, a)
}

// relay passes an answer on to the program.
func (s *handler) relay(w http.ResponseWriter, r *http.Request, o *exchange.Open, a *answer) error {
	if a.body != nil {
		defer a.body.Close()
	}
	err := relayAnswer(w, r, o, a, s.log)
	if err != nil {
		s.log.Debug("exchange was cut", "url", o.Request().URL, "error", err)
	}
	return err
}

// maxPresized is the longest request body, in bytes, for which memory is taken on the word of its Content-Length.
const maxPresized = 1 << 20

// readBody reads the whole request body. One beyond the limit is denied and counts as empty.
func (s *handler) readBody(w http.ResponseWriter, r *http.Request) ([]byte, *denial, error) {
	var buf bytes.Buffer
	if r.ContentLength > 0 && r.ContentLength <= maxPresized {
		buf.Grow(int(r.ContentLength) + bytes.MinRead) // which ReadFrom wants to find the end
	}
	_, err := buf.ReadFrom(http.MaxBytesReader(w, r.Body, s.cfg.MaxBody))
	var tooLong *http.MaxBytesError
	if errors.As(err, &tooLong) {
		return nil, &denial{
			http.StatusRequestEntityTooLarge, "request_too_large",
			fmt.Sprintf("tapedeck: the request's body is longer than %d bytes, which is the most that is recorded", tooLong.Limit),
		}, nil
	}
	return buf.Bytes(), nil, err
}

// deny finds the requests that no upstream is asked for.
func deny(r *http.Request, to *url.URL) *denial {
	switch {
	case r.TLS != nil && r.TLS.ServerName != "" && cleanName(r.TLS.ServerName) != to.Hostname():
		return &denial{
			http.StatusMisdirectedRequest, "misdirected",
			fmt.Sprintf("tapedeck: the connection was opened for %s, the request is for %s", r.TLS.ServerName, to.Hostname()),
		}
	case r.Method == http.MethodConnect:
		return &denial{http.StatusMethodNotAllowed, "method_not_allowed", "tapedeck: the recorder is no proxy"}
	}
	return nil
}

// requestURL is the absolute URL that a request is for: the host is the one that the request names, the port the one
// that the program dialled, or named to the proxy.
func requestURL(r *http.Request) *url.URL {
	u := *r.URL
	u.Scheme, u.User, u.Opaque, u.Fragment = "http", nil, "", ""
	if r.TLS != nil {
		u.Scheme = "https"
	}
	host, port := r.Host, portOf(&url.URL{Scheme: u.Scheme, Host: r.Host})
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = cleanName(strings.Trim(host, "[]"))
	if c := connOf(r.Context()); c != nil {
		port = c.target.addr.Port()
		if host == "" {
			host = c.target.host()
		}
	}
	u.Host = hostPort(u.Scheme, host, port)
	return &u
}

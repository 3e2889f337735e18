package network

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/tape"
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
	fork *forking        // nil where a tape is all
}

// ServeHTTP implements http.Handler: one request, from begin to end.
func (s *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.life.enter(nil) {
		panic(http.ErrAbortHandler)
	}
	defer s.life.leave(nil)
	c := connOf(r.Context())
	if c != nil && c.tls != nil {
		r.TLS = c.tls
	}
	to := requestURL(r)
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
		begun = new(exchange.Request)
		*begun = *req
		begun.Header = without(req.Header, wsKey)
	}
	var book *exchange.Book // nil while recording
	if s.tape != nil {
		book = s.tape.Book
	}
	o, err := s.cfg.Tap.BeginFrom(book, begun)
	if ended := s.cfg.Tap.Err(); ended != nil { // also one that ended while this request was begun: it has no answer, not an empty one
		return ended
	}
	if err != nil {
		s.log.Error("request cannot be recorded", "url", req.URL, "error", err)
		a := localAnswer(nil, http.StatusBadRequest, "not_recordable", "tapedeck: the request cannot be recorded: "+err.Error())
		exchange.SetHeader(w.Header(), a.header)
		w.WriteHeader(a.status)
		b, _ := a.body.Next(r.Context())
		_, err := w.Write(b)
		return err
	}
	var a *answer
	switch {
	case socket && s.tape != nil:
		return s.replaySocket(w, r, begun, to, o)
	case socket:
		return s.recordSocket(w, r, req, to, o)
	case s.fork != nil:
		a = s.fork.answer(r, req, to, o)
	case s.tape != nil:
		a = s.tape.replayed(r, req, to.Host, o)
	}
	switch {
	case a != nil:
	case denied != nil:
		a = localAnswer(o.Identity(), denied.status, denied.kind, denied.message)
	case s.tape == nil:
		a = s.up.fetch(r, req, nil, to)
	default:
		a = s.fork.sentOn(r, req, to, o)
	}
	return relayAnswer(s.log, w, r, o, a)
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

// An answer is what a request gets, from an upstream, from the tape or from ourselves.
type answer struct {
	status int // 0 where none came: the program's connection is reset
	header http.Header
	length int64         // of the body in bytes, -1 where only its end tells
	body   exchange.Body // nil for none
	err    error         // why status is 0

	prompt bool // the header goes with the first chunk, not before it: as a replay gives it

	text string // of 101, its status line's

	passes bool // the body is that of the recorded answer, byte by byte

	asked *incoming // the request, of a gRPC call that is passed on as it comes; nil for what came whole
	ends  *callBody // what gives the body of a recorded one; nil for none

	trailer *http.Header // whose values are there once the body has come to its end, before it perhaps their names; nil for none
	trails  bool         // the trailers count: the end is waited for, also where the length says that it has come
}

// pieces is a body of given chunks.
type pieces struct{ left [][]byte }

// whole is a body of one chunk.
func whole(b []byte) *pieces { return &pieces{[][]byte{b}} }

// Next implements body.
func (p *pieces) Next(ctx context.Context) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(p.left) == 0 {
		return nil, io.EOF
	}
	next := p.left[0]
	if p.left = p.left[1:]; len(p.left) == 0 {
		return next, io.EOF
	}
	return next, nil
}

// Close implements body.
func (p *pieces) Close() error { return nil }

// dead is an answer that never came.
func dead(err error) *answer { return &answer{err: err} }

// localAnswer is an answer of our own: the provider's error object, or a plain one, around a message. No SDK retries it.
func localAnswer(id *exchange.Identity, status int, kind, message string) *answer {
	b := exchange.ErrorBody(id, status, kind, message)
	return &answer{
		status: status,
		header: http.Header{
			"Content-Type":   {"application/json"},
			"Content-Length": {strconv.Itoa(len(b))},
			"X-Should-Retry": {"false"},
		},
		length: int64(len(b)),
		body:   whole(b),
	}
}

// errCancelled is tape.Cancelled where it comes up in passing an answer on.
var errCancelled = errors.New(tape.Cancelled)

// unexpectedStatus is an informational answer where a final one belongs.
type unexpectedStatus struct{ code int }

func (e *unexpectedStatus) Error() string {
	return fmt.Sprintf("the upstream answered %d to a request that asked for no upgrade", e.code)
}

// errorText says why an upstream gave no answer, or why it ended: in the words of package exchange, but for what is ours.
func errorText(err error) string {
	var forbidden *ForbiddenError
	switch {
	case errors.Is(err, errCancelled):
		return tape.Cancelled
	case errors.As(err, &forbidden):
		return forbidden.Error()
	}
	return exchange.ErrorText(err)
}

// reduceEncodings takes the codings that cannot be decoded here, which a secret inside a body makes necessary, out of
// Accept-Encoding, "*" too.
func reduceEncodings(h http.Header) {
	given, ok := h["Accept-Encoding"]
	if !ok {
		return
	}
	h["Accept-Encoding"] = items(given, func(coding string) bool {
		name, _, _ := strings.Cut(coding, ";")
		name = textproto.TrimString(name)
		return name != "" && exchange.CanDecode(name)
	})
	if h["Accept-Encoding"] == nil {
		h["Accept-Encoding"] = []string{"identity"}
	}
}

// items are the items of comma-separated lists that keep is true of, in one list; nil for none.
func items(lists []string, keep func(item string) bool) []string {
	var kept []string
	for _, list := range lists {
		for item := range strings.SplitSeq(list, ",") {
			if item = textproto.TrimString(item); keep(item) {
				kept = append(kept, item)
			}
		}
	}
	if len(kept) == 0 {
		return nil
	}
	return []string{strings.Join(kept, ", ")}
}

// isGRPC reports whether a request is a gRPC call: its answer may come while it is still being sent, and ends with trailers.
func isGRPC(r *http.Request) bool {
	return r.ProtoMajor == 2 && r.Method == http.MethodPost && isGRPCType(r.Header)
}

// isGRPCType reports whether the Content-Type of a header is application/grpc, with or without what its messages are made of.
// gRPC-Web, which is made to do without HTTP/2 and trailers, is another.
func isGRPCType(h http.Header) bool {
	kind, _, _ := mime.ParseMediaType(h.Get("Content-Type"))
	return kind == "application/grpc" || strings.HasPrefix(kind, "application/grpc+")
}

// trailing reports whether trailers count for a request.
func trailing(r *http.Request) bool {
	return isGRPC(r) || exchange.HasToken(r.Header, "Te", "trailers")
}

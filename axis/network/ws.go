package network

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/internal/wsframe"
)

// The fields of an upgrade to a WebSocket (RFC 6455, 4.2). net/http spells them as no other program does, so what is sent on has
// their own letter case again.
const (
	wsPrefix     = "Sec-Websocket-"
	wsKey        = wsPrefix + "Key"
	wsAccept     = wsPrefix + "Accept"
	wsProtocol   = wsPrefix + "Protocol"
	wsExtensions = wsPrefix + "Extensions"
)

// without is a header of an upgrade as the tape has it: but for what is drawn anew for each one and means nothing.
func without(h http.Header, name string) http.Header {
	out := h.Clone()
	out.Del(name)
	return out
}

// socketTransport is a transport for requests for a WebSocket: over HTTP/1.1, in connections of its own, which are read eagerly.
func socketTransport(t *http.Transport) *http.Transport {
	dial := t.DialContext
	t = t.Clone()
	t.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &upConn{Conn: c, eager: &eager{conn: c}}, nil
	}
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP1(true)
	t.ForceAttemptHTTP2, t.ReadBufferSize = false, wsIdle
	return t
}

// An upConn is a connection to an upstream.
type upConn struct {
	net.Conn
	eager *eager
}

// Read implements net.Conn.
func (c *upConn) Read(b []byte) (int, error) { return c.eager.Read(b) }

// NetConn is what it is made of.
func (c *upConn) NetConn() net.Conn { return c.Conn }

// eagerOf is what reads the innermost of the connections that c is made of; nil for none.
func eagerOf(c net.Conn) *eager {
	for ; c != nil; c = beneath(c) {
		switch in := c.(type) {
		case *upConn:
			return in.eager
		case *conn:
			return in.eager()
		}
	}
	return nil
}

// An upgraded is the connection to an upstream that answered 101.
type upgraded struct {
	io.ReadWriteCloser
	conn net.Conn // beneath it
}

// upgrade sends a request for a WebSocket on. What came is an answer like any other where it is not 101, else header is that of the
// answer and up the connection.
func (u *upstream) upgrade(ctx context.Context, req *exchange.Request, to *url.URL) (*answer, *upgraded) {
	up := new(upgraded)
	trace := &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) { up.conn = i.Conn }}
	res, err := u.send(httptrace.WithClientTrace(ctx, trace), req, to, sending{socket: true})
	if err != nil {
		return dead(err), nil
	}
	if res.StatusCode != http.StatusSwitchingProtocols {
		a := answerOf(res, false)
		a.prompt = true // what a client says of the failure may depend on what it read with the head: a replay gives both at once
		return a, nil
	}
	rwc, ok := res.Body.(io.ReadWriteCloser)
	if !ok || !exchange.HasToken(res.Header, "Upgrade", "websocket") {
		res.Body.Close()
		return dead(&unexpectedStatus{code: res.StatusCode}), nil
	}
	up.ReadWriteCloser = rwc
	return &answer{status: res.StatusCode, header: upgradeFields(res.Header), text: res.Status}, up
}

// upgradeHeader is the header that leaves with a request for a WebSocket: as the program sent it, but for the extensions that
// could not be read here.
func upgradeHeader(h http.Header) http.Header {
	out := upgradeFields(h)
	for name, values := range out {
		if !strings.HasPrefix(name, wsPrefix) {
			continue
		}
		delete(out, name)
		if name == wsExtensions {
			values = items(values, wsframe.IsDeflate)
		}
		if len(values) > 0 {
			out[spelled(name)] = values
		}
	}
	return out
}

// upgradeFields are the fields that are passed on with an upgrade, with those that make it one.
func upgradeFields(h http.Header) http.Header {
	out := exchange.EndToEnd(h)
	for _, name := range []string{"Connection", "Upgrade"} {
		if values, ok := h[name]; ok {
			out[name] = values
		}
	}
	return out
}

// spelled is the name of a field of an upgrade as RFC 6455 writes it.
func spelled(name string) string {
	if rest, ok := strings.CutPrefix(name, wsPrefix); ok {
		return "Sec-WebSocket-" + rest
	}
	return name
}

// recordSocket sends a request for a WebSocket on and passes the conversation.
func (s *handler) recordSocket(w http.ResponseWriter, r *http.Request, req *exchange.Request, to *url.URL, o *exchange.Open) error {
	a, up := s.up.upgrade(r.Context(), req, to)
	if up == nil {
		return relayAnswer(s.log, w, r, o, a)
	}
	defer up.Close()
	sock, err := o.Opened(without(a.header, wsAccept))
	if err != nil {
		return err
	}
	p, err := s.takeOver(w, a)
	if err != nil {
		return errors.Join(err, sock.Closed(&exchange.SocketEnd{Code: exchange.Abnormal, Error: "", At: sock.Ordinal()}))
	}
	defer s.life.leave(lastWords{p.Conn})
	defer p.Close()
	stop := context.AfterFunc(s.ctx, func() { lastWords{up.conn}.Close() }) // the program's is told by Close itself
	defer stop()
	newWSRelay(s, sock, p, up, a.header).run()
	return nil
}

// A programConn is the program's connection, taken over from net/http.
type programConn struct {
	net.Conn
	in io.Reader // what net/http had read, then the connection
}

// Read implements net.Conn.
func (p *programConn) Read(b []byte) (int, error) { return p.in.Read(b) }

// wsLastWords bounds how long a Server that closes reads what a program has said on a socket. One that has ended is not waited for.
const wsLastWords = 500 * time.Millisecond

// lastWords ends a connection once what has come on it has been read: what a program says before it ends is said.
type lastWords struct{ c net.Conn }

// Close implements io.Closer.
func (l lastWords) Close() error { return l.c.SetDeadline(time.Now().Add(wsLastWords)) }

// takeOver answers the program 101 and takes its connection from net/http. The caller leaves s.life with its lastWords.
func (s *handler) takeOver(w http.ResponseWriter, a *answer) (*programConn, error) {
	raw, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, err
	}
	if !s.life.enter(lastWords{raw}) {
		raw.Close()
		return nil, net.ErrClosed
	}
	raw.SetDeadline(time.Time{}) // net/http's own for the header
	unwrap(raw).turnOf(1, nil).inOrder(true, false)
	if _, err := raw.Write(upgradeHead(a)); err != nil {
		raw.Close()
		s.life.leave(lastWords{raw})
		return nil, errCancelled
	}
	ahead, _ := buffered.Peek(buffered.Reader.Buffered())
	return &programConn{raw, io.MultiReader(bytes.NewReader(ahead), raw)}, nil
}

// upgradeHead is the head of an answer 101 as it is sent.
func upgradeHead(a *answer) []byte {
	var b strings.Builder
	b.WriteString("HTTP/1.1 " + a.text + "\r\n")
	for _, name := range slices.Sorted(maps.Keys(a.header)) {
		for _, v := range a.header[name] {
			b.WriteString(spelled(name) + ": " + v + "\r\n")
		}
	}
	b.WriteString("\r\n")
	return []byte(b.String())
}

// A wsEnd gathers how a socket ends. Its methods may be called by several goroutines at once.
type wsEnd struct {
	s    *handler
	sock *exchange.Socket

	mu    sync.Mutex // guards what follows
	end   exchange.SocketEnd
	first bool // end.First is known
	over  bool // end.Gone is known
}

func newWSEnd(s *handler, sock *exchange.Socket) *wsEnd {
	return &wsEnd{s: s, sock: sock, end: exchange.SocketEnd{Code: exchange.Abnormal}}
}

// closing notes a close frame.
func (x *wsEnd) closing(from exchange.Side, c exchange.CloseCode) {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case x.first && x.end.First != from:
		x.end.Answer = &c
	case !x.first:
		x.first = true
		x.end.First, x.end.Code, x.end.Reason, x.end.At = from, c.Code, c.Reason, x.sock.Ordinal()
	}
}

// broke notes what a side did that the protocol does not allow.
func (x *wsEnd) broke(from exchange.Side, why string) {
	who := "the program"
	if from == exchange.FromServer {
		who = "the upstream"
	}
	x.say(who + " broke the protocol: " + why)
}

// say adds to what is said of the end.
func (x *wsEnd) say(text string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.note(text)
}

// note is say. The caller holds mu.
func (x *wsEnd) note(text string) {
	if x.end.Error != "" {
		text = x.end.Error + "; " + text
	}
	x.end.Error = text
}

// gone notes that a side has ended the connection: with err, or having said all.
func (x *wsEnd) gone(side exchange.Side, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.over {
		return
	}
	x.over = true
	x.end.Gone = side
	if !x.first {
		x.end.At = x.sock.Ordinal()
	}
	switch {
	case x.s.ctx.Err() != nil:
		x.end.Gone = exchange.FromProgram // it ends with the run
	case err != nil:
		x.note(errorText(err))
	}
}

// record ends the socket on the tape.
func (x *wsEnd) record() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := x.sock.Closed(&x.end); err != nil {
		x.s.log.Debug("end of a WebSocket is not kept", "error", err)
	}
}

// upgradeRequired is the type of the error that a request for a WebSocket gets where the tape holds none.
const upgradeRequired = "upgrade_required"

// replaySocket answers a request for a WebSocket from the tape.
//
// One that was answered 426, as older recorders did, which carried none, is so again: a client that is told anything else about it may not
// go on by HTTP. That is also what a request gets that is not on a tape without any WebSocket.
func (s *handler) replaySocket(w http.ResponseWriter, r *http.Request, req *exchange.Request, to *url.URL, o *exchange.Open) error {
	var rec *exchange.Recorded
	var ok bool
	if s.fork == nil {
		rec, ok = o.Take(s.tape.Book)
	} else { // past the point none is opened
		rec, _ = s.fork.At.Take(o)
		ok = rec != nil
	}
	switch {
	case ok && rec.Socket != nil:
		return s.playSocket(w, r, o, rec)
	case ok:
		return relayAnswer(s.log, w, r, o, s.tape.recorded(r, o, rec))
	case s.tape.Book.DeadHost(to.Host), s.tape.Book.Sockets():
		return relayAnswer(s.log, w, r, o, s.tape.refused(r, req, to.Host, o))
	}
	_, why := s.tape.Book.Nearest(o.Identity(), o.Request())
	o.Refuse(why)
	a := localAnswer(o.Identity(), http.StatusUpgradeRequired, upgradeRequired, "tapedeck: no WebSocket is on the tape; use HTTP")
	return relayAnswer(s.log, w, r, o, a)
}

// playSocket answers a request for a WebSocket by the recorded one that was taken for it.
func (s *handler) playSocket(w http.ResponseWriter, r *http.Request, o *exchange.Open, rec *exchange.Recorded) error {
	a := &answer{header: s.tape.handshake(r.Header, rec), text: "101 Switching Protocols"}
	sock, err := o.Opened(without(a.header, wsAccept))
	if err != nil {
		return err
	}
	end := newWSEnd(s, sock)
	defer end.record()
	opts := &exchange.AnswerOptions{Speed: s.tape.Speed, Reveal: s.tape.Reveal, Patience: rec.Patience(cancelPatience)}
	play := sock.Play(o.Request(), opts, s.tape.Book)
	c, err := s.takeOver(w, a)
	if err != nil {
		end.gone(exchange.FromProgram, err)
		return err
	}
	defer s.life.leave(lastWords{c.Conn})
	defer c.Close()
	newWSPlayer(end, play, c, a.header).run()
	return nil
}

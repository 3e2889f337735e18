// Package websock carries the frames of package jsonrpc over WebSockets (RFC 6455), one JSON text in one text message.
//
// It reads frames itself, and is as strict as the RFC allows: what breaks a rule is answered with a close code at the first byte that
// shows it. Text that is not UTF-8 is refused at its first wrong byte, not at the end of its message; so is the reason of a close; a
// frame longer than the limit is refused when its header says so, before any of it is kept; a client's frame without a mask, or with
// a length in more bytes than it needs, gets a code and not silence. A client of this package is as strict with its server.
//
// Compression is never offered and never taken.
//
// The close codes that a server sends stand in docs/reference/daemon-wire.md.
//
// # A peer that is no more
//
// A connection on which nothing came for Options.PingEvery is sent a ping. When nothing comes for Options.PongWithin after
// that, it is dropped. While this side does not read, because the peer sent too much, the peer is not asked.
//
// # Memory
//
// A message up to jsonrpc.DefaultAllowance bytes is read without asking the Budget. A longer one first takes the limit's worth of
// it, and gives back what it did not need once it is whole.
package websock

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/jsonrpc"
	"github.com/tapedeck-dev/tapedeck/internal/wsframe"
)

// Options of a WebSocket. Nil and zero fields have the defaults named beside them.
type Options struct {
	Limit      int             // bytes of a message that comes in: jsonrpc.DefaultFrame
	Budget     *jsonrpc.Budget // nil: no bound over all
	PingEvery  time.Duration   // silence before a ping: 30 s; less than 0 never pings
	PongWithin time.Duration   // silence after it before the peer is given up: 15 s
	// DialContext makes the connection beneath a client; nil dials the address of the URL over TCP.
	DialContext func(ctx context.Context, network, addr string) (net.Conn, error)

	binary bool // tests echo binary messages too
}

func (o *Options) filled() Options {
	var f Options
	if o != nil {
		f = *o
	}
	f.Limit = cmp.Or(f.Limit, jsonrpc.DefaultFrame)
	f.PingEvery = cmp.Or(f.PingEvery, 30*time.Second)
	f.PongWithin = cmp.Or(f.PongWithin, 15*time.Second)
	if f.DialContext == nil {
		f.DialContext = new(net.Dialer).DialContext
	}
	return f
}

// A Stream is a jsonrpc.Stream over a WebSocket.
type Stream struct {
	wire   *wire
	in     *bufio.Reader // of the wire
	out    io.Writer     // to it
	client bool          // this side is
	o      Options

	// Of the goroutine that reads.
	kind  byte // opcode of the message that was read last
	short bool // take none that is long
	wrong bool // the peer broke a rule; read behind over

	over    chan struct{}   // closed when reading has ended
	ending  context.Context // done when the end has begun
	end     func()          // begins it
	closed  context.Context // done when the connection is closed
	hangUp  func()          // closes it
	closing sync.Once

	writing sync.Mutex // guards what follows
	held    []byte     // frames that wait for the one behind them
	bye     bool       // a close frame was sent: nothing may follow it

	mu    sync.Mutex
	pings *time.Timer
	wg    sync.WaitGroup // the ping that is out
}

// A wire is the network connection beneath a WebSocket.
type wire struct {
	net.Conn
	heard   atomic.Int64 // when bytes came last, as nanoseconds since epoch
	reading atomic.Bool  // somebody waits for bytes
}

var epoch = time.Now()

// Read implements io.Reader.
func (w *wire) Read(p []byte) (int, error) {
	w.reading.Store(true)
	n, err := w.Conn.Read(p)
	w.reading.Store(false)
	w.heard.Store(int64(time.Since(epoch)))
	return n, err
}

// silent returns for how long nothing came although somebody waited for it.
func (w *wire) silent() time.Duration {
	if !w.reading.Load() {
		return 0
	}
	return time.Since(epoch) - time.Duration(w.heard.Load())
}

func newStream(s *Stream, o Options) *Stream {
	s.o = o
	s.over = make(chan struct{})
	s.ending, s.end = context.WithCancel(context.Background())
	closed, done := context.WithCancel(context.Background())
	s.closed, s.hangUp = closed, func() {
		done()
		_ = s.wire.Close()
	}
	s.wire.heard.Store(int64(time.Since(epoch)))
	s.schedule(s.o.PingEvery)
	return s
}

// Read implements jsonrpc.Stream.
func (s *Stream) Read() ([]byte, int64, error) {
	var m message
	if err := s.whole(&m, s.read(&m)); err != nil {
		err = s.failed(err)
		close(s.over)
		return nil, 0, err
	}
	s.kind = m.op
	return m.b, m.held, nil
}

// failed says how reading ended.
func (s *Stream) failed(err error) error {
	var t net.Error
	var closed *jsonrpc.CloseError
	switch {
	case errors.As(err, &closed):
	case errors.Is(err, io.EOF):
		return io.ErrUnexpectedEOF // a WebSocket ends with a close frame
	case errors.As(err, &t) && t.Timeout():
		closed = &jsonrpc.CloseError{Code: jsonrpc.ClosePolicy, Reason: "a long message took too long", Ours: true}
	default:
		return err
	}
	s.wrong = closed.Ours
	return closed
}

// Short implements jsonrpc.Stream.
func (s *Stream) Short(only bool) { s.short = only }

// Write implements jsonrpc.Stream. Once a close has begun it returns jsonrpc.ErrClosed.
func (s *Stream) Write(frame []byte, more bool) error {
	err := s.send(wsframe.Text, frame, more)
	if err == nil {
		return nil
	}
	if s.ending.Err() != nil {
		return jsonrpc.ErrClosed
	}
	return err
}

// keepRoom is the largest buffer, in bytes, that waits for the next frame.
const keepRoom = 4 << 10

// send sends a frame, with what was held before it, or holds it.
func (s *Stream) send(op byte, p []byte, more bool) (err error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.bye {
		return jsonrpc.ErrClosed
	}
	s.bye = op == wsframe.Close
	h := wsframe.Header{Fin: true, Opcode: op, Masked: s.client}
	if s.client {
		_, _ = rand.Read(h.Key[:]) // it never fails
	}
	if len(p) > jsonrpc.DefaultAllowance && !s.client { // which needs no copy
		h.Length = uint64(len(p))
		both := net.Buffers{h.Append(s.held), p}
		s.held = nil
		_, err = both.WriteTo(s.out)
		return err
	}
	if s.held = wsframe.AppendFrame(s.held, h, p); more && len(s.held) < jsonrpc.DefaultAllowance {
		return nil
	}
	_, err = s.out.Write(s.held)
	if s.held = s.held[:0]; cap(s.held) > keepRoom {
		s.held = nil
	}
	return err
}

// closeWait is how long a peer has to answer a close.
const closeWait = 5 * time.Second

// Close implements jsonrpc.Stream. With a code it waits for the peer's close frame, for a few seconds at most, if somebody reads.
func (s *Stream) Close(code int, reason string) error {
	s.end()
	s.mu.Lock()
	if s.pings != nil {
		s.pings.Stop()
	}
	s.mu.Unlock()
	if code == 0 {
		s.hangUp()
		s.wg.Wait()
		return nil
	}
	var err error
	s.closing.Do(func() { err = s.goodbye(wsframe.AppendClose(nil, code, reason)) })
	return err
}

// goodbye sends a close frame and waits until the peer has it.
func (s *Stream) goodbye(payload []byte) error {
	_ = s.wire.SetWriteDeadline(time.Now().Add(closeWait))
	err := s.send(wsframe.Close, payload, false)
	if errors.Is(err, jsonrpc.ErrClosed) { // it was the first to say so
		err = nil
	}
	soon, stop := context.WithTimeout(s.closed, closeWait)
	defer stop()
	select {
	case <-s.over:
		if s.wrong {
			s.drain()
		}
	case <-soon.Done():
	}
	s.hangUp()
	return err
}

// What a client sends after it broke a rule is read and thrown away, so that one that is still sending does not lose our close
// frame to a reset: until it ends, until nothing came for drainIdle, but not longer than drainMost and not more than drainBytes.
const (
	drainIdle  = 2 * time.Second
	drainMost  = 15 * time.Second
	drainBytes = 256 << 20
)

func (s *Stream) drain() {
	if half, ok := s.wire.Conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite() // a client that waits for the end of the connection sees it
	}
	buf := make([]byte, 32<<10)
	last := time.Now().Add(drainMost)
	for read := 0; read < drainBytes; {
		soon := time.Now().Add(drainIdle)
		if soon.After(last) {
			soon = last
		}
		_ = s.wire.SetReadDeadline(soon)
		n, err := s.wire.Conn.Read(buf)
		if err != nil {
			return
		}
		read += n
	}
}

// schedule looks again after d whether the peer is there. It does nothing once the end has begun.
func (s *Stream) schedule(d time.Duration) {
	if s.o.PingEvery <= 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ending.Err() == nil {
		s.pings = time.AfterFunc(d, s.ask)
	}
}

// ask pings a peer that has been silent and drops it when it stays so. It runs in a goroutine of its timer, for which Close
// waits.
func (s *Stream) ask() {
	s.mu.Lock()
	ends := s.ending.Err() != nil
	if !ends {
		s.wg.Add(1)
	}
	s.mu.Unlock()
	if ends {
		return
	}
	defer s.wg.Done()
	if s.wire.silent() >= s.o.PingEvery {
		asked := int64(time.Since(epoch))
		_ = s.send(wsframe.Ping, nil, false)
		late, stop := context.WithTimeout(s.ending, s.o.PongWithin)
		defer stop()
		<-late.Done()
		if s.wire.reading.Load() && s.wire.heard.Load() < asked {
			s.hangUp()
			return
		}
	}
	s.schedule(s.o.PingEvery - s.wire.silent())
}

package websock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/tapedeck-dev/tapedeck/internal/jsonrpc"
)

// Options of a WebSocket. Nil and zero fields have the defaults named beside them.
type Options struct {
	Limit      int             // bytes of a message that comes in: jsonrpc.DefaultFrame
	Budget     *jsonrpc.Budget // nil: no bound over all
	PingEvery  time.Duration   // silence before a ping: 30 s; less than 0 never pings
	PongWithin time.Duration   // silence after it before the peer is given up: 15 s

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
	return f
}

// A Stream is a jsonrpc.Stream over a WebSocket.
type Stream struct {
	ws   *websocket.Conn
	wire *wire
	o    Options

	kind  websocket.MessageType // of the message that was read last
	short bool                  // take none that is long

	closing sync.Once
	gone    sync.Once
	done    chan struct{} // closed when the end has begun
	mu      sync.Mutex
	pings   *time.Timer
	wg      sync.WaitGroup // the ping that is out
}

func newStream(ws *websocket.Conn, w *wire, o Options) *Stream {
	w.heard.Store(int64(time.Since(epoch)))
	s := &Stream{ws: ws, wire: w, o: o, done: make(chan struct{})}
	s.schedule(o.PingEvery)
	return s
}

// Read implements jsonrpc.Stream.
func (s *Stream) Read() ([]byte, int64, error) {
	kind, r, err := s.ws.Reader(context.Background())
	if err != nil {
		return nil, 0, s.failed(err)
	}
	s.kind = kind
	if kind != websocket.MessageText && !s.o.binary {
		return nil, 0, &jsonrpc.CloseError{Code: jsonrpc.CloseUnsupported, Reason: "want text messages, got a binary one", Ours: true}
	}
	frame, held, err := s.message(r)
	if err != nil {
		s.o.Budget.Give(held)
		return nil, 0, s.failed(err)
	}
	return frame, held, nil
}

// rooms are where messages are read at first; a connection that is silent has none.
var rooms = sync.Pool{New: func() any { return new([4 << 10]byte) }}

// message reads a message to memory of its own: of the right size where it is short.
func (s *Stream) message(r io.Reader) (frame []byte, held int64, err error) {
	room := rooms.Get().(*[4 << 10]byte)
	defer rooms.Put(room)
	n, err := fill(r, room[:])
	if errors.Is(err, io.EOF) {
		return append(make([]byte, 0, n), room[:n]...), 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	buf := append(make([]byte, 0, 4*len(room)), room[:n]...)
	for {
		if len(buf) == cap(buf) {
			if len(buf) >= jsonrpc.DefaultAllowance && held == 0 {
				return s.long(buf, r)
			}
			buf = grow(buf, jsonrpc.DefaultAllowance)
		}
		n, err := fill(r, buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if errors.Is(err, io.EOF) {
			return buf, 0, nil
		}
		if err != nil {
			return nil, 0, err
		}
	}
}

// long reads on a message that is longer than a connection may hold by itself.
func (s *Stream) long(buf []byte, r io.Reader) (frame []byte, held int64, err error) {
	if s.short {
		return nil, 0, jsonrpc.ErrShort
	}
	late := time.AfterFunc(jsonrpc.LongFrame, func() { _ = s.wire.SetReadDeadline(time.Unix(1, 0)) })
	defer late.Stop()
	if !s.o.Budget.Take(int64(s.o.Limit), jsonrpc.LongFrame, s.done) {
		return nil, 0, &jsonrpc.CloseError{Code: jsonrpc.CloseTryAgain, Reason: "no memory for a long message", Ours: true}
	}
	held = int64(s.o.Limit)
	for err == nil {
		if len(buf) == cap(buf) {
			buf = grow(buf, s.o.Limit+1)
		}
		var n int
		n, err = fill(r, buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
	}
	if !errors.Is(err, io.EOF) {
		return nil, held, err
	}
	s.o.Budget.Give(held - int64(len(buf)))
	return buf, int64(len(buf)), nil
}

// Short implements jsonrpc.Stream.
func (s *Stream) Short(only bool) { s.short = only }

// grow doubles a buffer, up to most bytes.
func grow(buf []byte, most int) []byte {
	return append(make([]byte, 0, max(min(2*cap(buf), most), len(buf)+1)), buf...)
}

// fill reads until p is full or there is an error, io.EOF at the end of the message.
func fill(r io.Reader, p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		var k int
		k, err = r.Read(p[n:])
		n += k
	}
	return n, err
}

// failed says how reading ended.
func (s *Stream) failed(err error) error {
	var ours *jsonrpc.CloseError
	var theirs websocket.CloseError
	switch {
	case s.wire.wrong != nil:
		return s.wire.wrong
	case errors.As(err, &ours):
		return ours
	case errors.As(err, &theirs):
		return &jsonrpc.CloseError{Code: int(theirs.Code), Reason: theirs.Reason}
	case errors.Is(err, websocket.ErrMessageTooBig):
		return fmt.Errorf("%w of %d bytes", jsonrpc.ErrTooLong, s.o.Limit)
	case timeout(err):
		return &jsonrpc.CloseError{Code: jsonrpc.ClosePolicy, Reason: "a long message took too long", Ours: true}
	}
	return err
}

// Write implements jsonrpc.Stream. Once a close has begun it returns jsonrpc.ErrClosed.
func (s *Stream) Write(frame []byte, more bool) error {
	s.wire.hold.Store(more)
	err := s.ws.Write(context.Background(), websocket.MessageText, frame)
	if err == nil {
		return nil
	}
	select {
	case <-s.done:
		return jsonrpc.ErrClosed
	default:
		return err
	}
}

// Close implements jsonrpc.Stream. With a code it waits for the peer's close frame, for a few seconds at most.
func (s *Stream) Close(code int, reason string) error {
	s.gone.Do(func() { close(s.done) })
	s.mu.Lock()
	if s.pings != nil {
		s.pings.Stop()
	}
	s.mu.Unlock()
	if code == 0 {
		return s.abort()
	}
	var err error
	s.closing.Do(func() {
		s.wire.hold.Store(false)
		err = s.ws.Close(websocket.StatusCode(code), reason)
	})
	return err
}

// abort drops the connection.
func (s *Stream) abort() error {
	err := s.wire.Close() // ends whatever the library waits for
	_ = s.ws.CloseNow()
	s.wg.Wait()
	return err
}

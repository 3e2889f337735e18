package network

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/internal/wsframe"
)

const (
	wsIdle = 4 << 10  // bytes of memory, each way, of a socket on which little is said
	wsBusy = 32 << 10 // and of one on which much is
)

// A wsRelay passes a WebSocket on, byte by byte, and has its messages recorded on the way. The bytes are those that came, in each
// direction; the last one of a message of the server waits until it is recorded.
type wsRelay struct {
	*wsEnd
	ways [2]*wsWay // by who sends
}

// A wsWay is one direction of a relay. It has one goroutine.
type wsWay struct {
	from             exchange.Side
	src              io.Reader
	eager            *eager // beneath src; nil for none
	dst              io.Writer
	asm              *wsframe.Assembler
	flush            bool     // records are waited for
	srcConn, dstConn net.Conn // beneath them, to end them
}

// end closes both.
func (w *wsWay) end() {
	w.srcConn.Close()
	w.dstConn.Close()
}

func newWSRelay(s *handler, sock *exchange.Socket, p *programConn, up *upgraded, h http.Header) *wsRelay {
	d := wsframe.ParseDeflate(h[wsExtensions])
	x := &wsRelay{wsEnd: newWSEnd(s, sock)}
	x.ways[exchange.FromProgram] = &wsWay{
		from: exchange.FromProgram, src: p, eager: eagerOf(p.Conn), dst: up, srcConn: p.Conn, dstConn: up.conn,
		asm: wsframe.NewAssembler(&wsframe.Options{Deflate: d.On, Fresh: d.ClientFresh}),
	}
	x.ways[exchange.FromServer] = &wsWay{
		from: exchange.FromServer, src: up, eager: eagerOf(up.conn), dst: p, srcConn: up.conn, dstConn: p.Conn, flush: true,
		asm: wsframe.NewAssembler(&wsframe.Options{Deflate: d.On, Fresh: d.ServerFresh}),
	}
	return x
}

// halfClose tells the other side of a connection that no more comes: within TLS and beneath it. A connection that knows no halves is
// closed.
func halfClose(c net.Conn) error {
	told := false
	for in := c; in != nil; in = beneath(in) {
		if cw, ok := in.(interface{ CloseWrite() error }); ok {
			if err := cw.CloseWrite(); err != nil {
				return err
			}
			told = true
		}
	}
	if !told {
		return c.Close()
	}
	return nil
}

// reset makes the next Close of a connection a reset, where it is TCP.
func reset(c net.Conn) {
	for ; c != nil; c = beneath(c) {
		if in, ok := c.(interface{ SetLinger(sec int) error }); ok {
			_ = in.SetLinger(0) // else it is closed as ever
		}
	}
}

// beneath is the connection that c is made of; nil where it is none of ours.
func beneath(c net.Conn) net.Conn {
	switch in := c.(type) {
	case interface{ NetConn() net.Conn }:
		return in.NetConn()
	case *conn:
		return in.Conn
	}
	return nil
}

// run passes both ways until both have ended, and records that.
func (x *wsRelay) run() {
	var both sync.WaitGroup
	var stop func() bool
	both.Go(func() {
		w := x.ways[exchange.FromProgram]
		x.pass(w)
		stop = context.AfterFunc(x.s.ctx, func() { w.dstConn.Close() }) // nobody is there for what the upstream says from then on
	})
	x.pass(x.ways[exchange.FromServer])
	both.Wait()
	stop()
	x.record()
}

// pass passes one way until its sender ends it or its receiver has gone.
func (x *wsRelay) pass(w *wsWay) {
	buf := make([]byte, wsIdle)
	for {
		n, err := w.read(buf)
		if n > 0 {
			if kept := x.tell(w, buf[:n]); kept != nil {
				x.s.log.Debug("message is not kept", "error", kept)
				w.end()
				return
			}
			if _, werr := w.dst.Write(buf[:n]); werr != nil && err == nil {
				x.refused(w, werr)
				return
			}
		}
		if err != nil {
			x.ended(w, err)
			return
		}
		if n == len(buf) && n < wsBusy {
			buf = make([]byte, wsBusy)
		}
	}
}

// read reads what has come, at least something: all of it passes in one piece.
func (w *wsWay) read(buf []byte) (n int, err error) {
	n, err = w.src.Read(buf)
	for err == nil && n < len(buf) {
		var m int
		if m, err = w.eager.more(w.src, buf[n:]); m == 0 {
			break
		}
		n += m
	}
	return n, err
}

// tell tells the tape what ends in b.
func (x *wsRelay) tell(w *wsWay, b []byte) error {
	told := false
	err := w.asm.Feed(b, func(e *wsframe.Event) error {
		switch e.Kind {
		case wsframe.Message:
			told = true
			return x.sock.Message(w.from, &e.Data)
		case wsframe.Closing:
			x.closing(w.from, e.CloseCode)
		case wsframe.Broken:
			told = true
			x.broke(w.from, e.Why)
			return x.sock.Message(w.from, &exchange.SocketMessage{Opcode: exchange.RawBytes, Payload: e.Payload})
		case wsframe.Control:
		}
		return nil
	})
	if err == nil && told && w.flush {
		err = x.sock.Flush()
	}
	return err
}

// ended takes the end of one way: its sender has sent all, or has gone. The receiver gets the same end.
func (x *wsRelay) ended(w *wsWay, err error) {
	if isEnd(err) {
		x.finish(w, w.from, nil)
		if halfClose(w.dstConn) != nil {
			w.end()
		}
		return
	}
	x.finish(w, w.from, err)
	if exchange.IsReset(err) {
		reset(w.dstConn)
	}
	w.end()
}

// isEnd reports whether err says that the other side has said all, with or without TLS's word for it.
func isEnd(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }

// refused takes the end of one way whose receiver has gone. The sender gets the same end.
func (x *wsRelay) refused(w *wsWay, err error) {
	x.finish(w, exchange.FromServer-w.from, err)
	if !errors.Is(err, net.ErrClosed) {
		reset(w.srcConn)
	}
	w.end()
}

// finish notes how one way ended, for side has gone: with err, or having sent all.
func (x *wsRelay) finish(w *wsWay, side exchange.Side, err error) {
	if e := w.asm.Finish(); e != nil {
		_ = x.sock.Message(w.from, &e.Data) // Closed says it again
	}
	x.gone(side, err)
}

// errNotNow says that nothing has come that could be read without waiting. It counts as temporary, so that TLS goes on after it.
var errNotNow net.Error = notNow{}

type notNow struct{}

func (notNow) Error() string   { return "nothing to read by now" }
func (notNow) Timeout() bool   { return true }
func (notNow) Temporary() bool { return true }

// An eager reads a connection through a buffer, so that many small records of TLS cost one system call; and where it is told to, only
// what is in that already. It is used by one goroutine at a time.
type eager struct {
	conn   net.Conn
	before *bufio.Reader // read from while it holds anything; nil for none
	now    bool          // nothing is waited for

	buf     []byte
	at, end int // what of it has been filled and not read
}

// Read implements io.Reader. With now set its error is errNotNow where nothing has come.
func (e *eager) Read(p []byte) (int, error) {
	if e.before != nil {
		if n := e.before.Buffered(); n > 0 {
			return e.before.Read(p[:min(n, len(p))])
		}
		e.before = nil
	}
	if e.at == e.end {
		if e.now {
			return 0, errNotNow
		}
		if err := e.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(p, e.buf[e.at:e.end])
	e.at += n
	return n, nil
}

// fill reads once.
func (e *eager) fill() (err error) {
	switch {
	case e.buf == nil:
		e.buf = make([]byte, wsIdle)
	case e.end == len(e.buf) && len(e.buf) < wsBusy: // there may be more
		e.buf = make([]byte, wsBusy)
	}
	e.at = 0
	if e.end, err = e.conn.Read(e.buf); e.end > 0 {
		return nil // an error comes again
	}
	if err == nil {
		err = io.ErrNoProgress
	}
	return err
}

// more reads from src, which reads from e, what has come behind what was read last; 0 where nothing has.
func (e *eager) more(src io.Reader, p []byte) (int, error) {
	if e == nil {
		return 0, nil
	}
	e.now = true
	n, err := src.Read(p)
	e.now = false
	if errors.Is(err, errNotNow) {
		err = nil
	}
	return n, err
}

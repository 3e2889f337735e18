package network

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/internal/wsframe"
)

const (
	// wsFarewell is how long a program is waited for that the server has said farewell to.
	wsFarewell = 5 * time.Second
	// wsBatch bounds, in bytes, what is gathered of messages that are due together.
	wsBatch = 64 << 10
)

// A wsPlayer plays a recorded WebSocket to the program. One goroutine reads what the program sends, another, which owns the first, says
// what the server said.
type wsPlayer struct {
	*wsEnd
	play *exchange.SocketPlay
	c    *programConn
	asm  *wsframe.Assembler

	ctx  context.Context // done once the program's connection has ended
	stop context.CancelFunc

	writing sync.Mutex // held over a write, and guards what follows
	closed  bool       // a close frame has been sent
	frames  []byte     // memory
}

func newWSPlayer(end *wsEnd, play *exchange.SocketPlay, c *programConn, h http.Header) *wsPlayer {
	d := wsframe.ParseDeflate(h[wsExtensions])
	x := &wsPlayer{wsEnd: end, play: play, c: c, asm: wsframe.NewAssembler(&wsframe.Options{Deflate: d.On, Fresh: d.ClientFresh})}
	x.ctx, x.stop = context.WithCancel(end.s.ctx)
	return x
}

// run plays until the connection has ended.
func (x *wsPlayer) run() {
	var reader sync.WaitGroup
	reader.Go(x.read)
	x.speak()
	if x.s.ctx.Err() != nil {
		reader.Wait() // see lastWords
	}
	x.stop()
	x.c.Close()
	reader.Wait()
}

// read takes what the program sends until it sends no more.
func (x *wsPlayer) read() {
	defer x.stop()
	buf := make([]byte, wsIdle)
	for {
		n, err := x.c.Read(buf)
		if n > 0 {
			if kept := x.asm.Feed(buf[:n], x.heard); kept != nil {
				x.s.log.Debug("message is not taken", "error", kept)
				return
			}
		}
		if err != nil {
			x.hungUp(err)
			return
		}
		if n == len(buf) && n < wsBusy {
			buf = make([]byte, wsBusy)
		}
	}
}

// hungUp takes the end of what the program sends.
func (x *wsPlayer) hungUp(err error) {
	if e := x.asm.Finish(); e != nil {
		_, _ = x.play.Client(&e.Data) // the end says it again
	}
	if isEnd(err) {
		err = nil
	}
	x.gone(exchange.FromProgram, err)
	x.play.Ended(nil)
}

// heard takes one message or control frame of the program.
func (x *wsPlayer) heard(e *wsframe.Event) error {
	switch e.Kind {
	case wsframe.Message:
		return x.message(&e.Data)
	case wsframe.Control:
		if e.Opcode == wsframe.Ping {
			return x.write(wsframe.AppendFrame(nil, wsframe.Header{Fin: true, Opcode: wsframe.Pong}, e.Payload), false)
		}
	case wsframe.Closing:
		c := e.CloseCode
		x.closing(exchange.FromProgram, c)
		x.play.Ended(&c)
	case wsframe.Broken:
		x.broke(exchange.FromProgram, e.Why)
		return x.message(&exchange.SocketMessage{Opcode: exchange.RawBytes, Payload: e.Payload})
	}
	return nil
}

// message takes one message of the program. One that is not on the tape is refused.
func (x *wsPlayer) message(m *exchange.SocketMessage) error {
	refused, err := x.play.Client(m)
	switch {
	case err != nil || refused == nil:
		return err
	case refused.Message != nil:
		return x.write(wsframe.AppendFrame(nil, wsframe.Header{Fin: true, Opcode: wsframe.Text}, refused.Message), false)
	}
	x.say("refused: " + refused.Why)
	c := &exchange.CloseCode{Code: policyViolation, Reason: "not on the tape: " + refused.Why}
	err = x.close(c)
	x.play.Ended(c) // nothing is said any more
	return err
}

// The codes of ends that are ours.
const (
	policyViolation = 1008
	internalError   = 1011
)

// write sends frames, unless a close frame has been sent. The error ends the play.
func (x *wsPlayer) write(frames []byte, closes bool) error {
	x.writing.Lock()
	defer x.writing.Unlock()
	if x.closed {
		return nil
	}
	x.closed = closes
	_, err := x.c.Write(frames)
	return err
}

// close sends a close frame.
func (x *wsPlayer) close(c *exchange.CloseCode) error {
	payload := wsframe.AppendClose(nil, c.Code, strings.ToValidUTF8(c.Reason[:min(len(c.Reason), wsframe.MaxControl-2)], ""))
	x.closing(exchange.FromServer, *c)
	return x.write(wsframe.AppendFrame(nil, wsframe.Header{Fin: true, Opcode: wsframe.Close}, payload), true)
}

// speak says what the server said, and how it ended.
func (x *wsPlayer) speak() {
	for {
		out, err := x.play.Next(x.ctx)
		switch {
		case err != nil:
			x.fail(err)
			return
		case out.Message == nil:
			x.leave(out)
			return
		}
		if x.say1(out.Message) != nil {
			return
		}
	}
}

// say1 sends a message.
func (x *wsPlayer) say1(m *exchange.SocketMessage) error {
	if m.Opcode == exchange.RawBytes {
		return x.write(m.Payload, false)
	}
	h := wsframe.Header{Fin: !m.Cut, Opcode: byte(m.Opcode), Masked: m.Masked}
	x.frames = wsframe.AppendFrame(x.frames[:0], h, m.Payload)
	err := x.write(x.frames, false)
	if cap(x.frames) > wsBatch {
		x.frames = nil
	}
	return err
}

// fail ends the socket where it cannot be played on.
func (x *wsPlayer) fail(err error) {
	if x.ctx.Err() != nil || errors.Is(err, context.Canceled) {
		return
	}
	x.s.log.Error("recorded WebSocket cannot be played", "error", err)
	x.say(err.Error())
	_ = x.close(&exchange.CloseCode{Code: internalError, Reason: "tapedeck: " + err.Error()})
	x.farewell()
}

// leave ends the socket as the server did.
func (x *wsPlayer) leave(out *exchange.SocketOut) {
	if out.HeldOn {
		x.say(out.Close.Reason)
	}
	closed := out.Close != nil && x.close(out.Close) == nil
	x.gone(exchange.FromServer, nil)
	if closed {
		x.farewell()
	}
	if out.Reset {
		reset(x.c.Conn)
	}
}

// farewell waits until the program has gone too.
func (x *wsPlayer) farewell() {
	if halfClose(x.c.Conn) != nil {
		return
	}
	t := time.NewTimer(wsFarewell)
	defer t.Stop()
	select {
	case <-x.ctx.Done():
	case <-t.C:
	}
}

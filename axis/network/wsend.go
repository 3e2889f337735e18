package network

import (
	"sync"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
)

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

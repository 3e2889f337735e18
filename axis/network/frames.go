package network

import (
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Frames of HTTP/2 (RFC 9113, 4.1 and 6) that carry answers, and the flag of the last one of a stream.
const (
	frameHead    = 9 // bytes before each frame's own
	frameData    = 0x0
	frameHeaders = 0x1
	frameReset   = 0x3
	flagEnd      = 0x1
)

// framesMost is how long others wait for what an answer of HTTP/2 gives: net/http writes it from other goroutines than the answer's, and a
// program that does not read one stream blocks it.
const framesMost = 5 * WriteMost

// Frames are a connection of HTTP/2 as net/http writes it: they see what leaves. The last frame of an answer leaves once its handler has
// returned, and bytes of it some time after they were written, so nobody else knows when the program has got something.
type frames struct {
	net.Conn                      // in which they are spoken
	last     atomic.Pointer[turn] // that gave something last

	mu   sync.Mutex
	head []byte // of a frame, as much as was written
	left int    // bytes of the frame that are still to come

	waits *turn // what it writes has not left; nil for nobody. One at a time has its turn
	bytes int   // of it that are to leave
	end   bool  // and its end is
	late  *time.Timer
}

// speaksFrames reports whether what is spoken on c is HTTP/2: as was agreed upon in TLS, or by its first bytes.
func speaksFrames(spoken net.Conn, c *conn) bool {
	if tc, ok := spoken.(*tls.Conn); ok {
		return tc.ConnectionState().NegotiatedProtocol == "h2"
	}
	const preface = "PRI "
	first, _ := c.ahead.Peek(len(preface)) // which sniff has looked at
	return string(first) == preface
}

// newFrames has what is spoken on c be seen as frames. net/http takes it for HTTP/2 without TLS.
func newFrames(spoken net.Conn, c *conn) net.Conn {
	if tc, ok := spoken.(*tls.Conn); ok {
		state := tc.ConnectionState()
		c.tls = &state
	}
	c.frames = &frames{Conn: spoken}
	return c.frames
}

// expect has a turn last until so many bytes of an answer's body have left, and its end or some frame at least.
func (f *frames) expect(t *turn, n int, end bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.waits != nil && f.waits != t {
		f.done()
	}
	f.stop()
	f.waits, f.bytes, f.end = t, max(f.bytes, 0)+n, end
	f.late = time.AfterFunc(framesMost, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.waits == t {
			f.done()
		}
	})
}

// done ends the turn that waits. mu is held.
func (f *frames) done() {
	if f.waits != nil {
		f.stop()
		f.waits.given()
		f.waits, f.bytes = nil, 0
	}
}

// keep has a turn go on, whatever leaves: its answer gives more.
func (f *frames) keep(t *turn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.waits == t {
		f.stop()
		f.waits = nil
	}
}

func (f *frames) stop() {
	if f.late != nil {
		f.late.Stop()
	}
}

// Write implements net.Conn.
func (f *frames) Write(b []byte) (int, error) {
	n, err := f.Conn.Write(b)
	f.mu.Lock()
	defer f.mu.Unlock()
	if some, end := f.leave(b[:n]); f.waits != nil && (end || some && f.bytes <= 0 && !f.end) {
		f.done()
	}
	return n, err
}

// leave follows the frames in bytes that have left: whether some of them is an answer's, and whether one ends one.
func (f *frames) leave(b []byte) (some, end bool) {
	for len(b) > 0 {
		if n := min(frameHead-len(f.head), len(b)); n > 0 {
			f.head, b = append(f.head, b[:n]...), b[n:]
			if len(f.head) < frameHead {
				break
			}
			f.left = f.length()
		}
		n := min(f.left, len(b))
		f.left, b = f.left-n, b[n:]
		if f.left > 0 {
			break
		}
		switch kind, flags := f.head[3], f.head[4]; kind {
		case frameData, frameHeaders:
			some, end = true, end || flags&flagEnd != 0
			if kind == frameData {
				f.bytes -= f.length()
			}
		case frameReset:
			end = true
		}
		f.head = f.head[:0]
	}
	return some, end
}

// length is that of the frame whose head has left.
func (f *frames) length() int { return int(f.head[0])<<16 | int(f.head[1])<<8 | int(f.head[2]) }

// Close implements net.Conn.
func (f *frames) Close() error {
	err := f.Conn.Close()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.done()
	return err
}

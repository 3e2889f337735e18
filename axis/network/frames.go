package network

import (
	"crypto/tls"
	"encoding/binary"
	"net"
	"net/http"
	"reflect"
	"sync"
	"sync/atomic"
	"time"
)

// Frames of HTTP/2 (RFC 9113, 4.1 and 6) that carry answers, and the flag of the last one of a stream.
const (
	frameData    = 0x0
	frameHeaders = 0x1
	frameReset   = 0x3
	flagEnd      = 0x1

	prefaceLength = 24 // bytes that a client says before its frames
)

// framesMost is how long others wait for what an answer of HTTP/2 gives: net/http writes it from other goroutines than the answer's, and a
// program that does not read one stream blocks it.
const framesMost = 5 * WriteMost

// Frames are a connection of HTTP/2 as net/http writes it: they see what leaves. The last frame of an answer leaves once its handler has
// returned, and bytes of it some time after they were written, so nobody else knows when the program has got something.
type frames struct {
	net.Conn                      // in which they are spoken
	last     atomic.Pointer[turn] // that gave something last

	mu         sync.Mutex
	come, left frameScan
	leaving    map[uint32]*leaving // by stream
}

// A leaving is what is to leave of one answer before its turn is over.
type leaving struct {
	turn  *turn
	bytes int  // of its body
	end   bool // and its end
	over  chan struct{}
	late  *time.Timer
}

// streamOf is the number of the stream that an answer of HTTP/2 is written to, of which net/http says nothing in its interfaces; 0 for one that is not
// known.
func streamOf(w http.ResponseWriter) uint32 {
	v := reflect.ValueOf(w)
	for _, name := range []string{"rws", "stream", "id"} { // which do not change while the answer is written
		if v = reflect.Indirect(v); v.Kind() != reflect.Struct {
			return 0
		}
		v = v.FieldByName(name)
	}
	if !v.IsValid() || !v.CanUint() {
		return 0
	}
	return uint32(v.Uint())
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
	c.frames = &frames{Conn: spoken, come: frameScan{have: len(frameHeader{}), left: prefaceLength}, leaving: make(map[uint32]*leaving)}
	return c.frames
}

// expect has a turn last until so many bytes of its answer's body have left, and its end or some frame at least. over is closed then.
func (f *frames) expect(t *turn, n int, end bool) (over <-chan struct{}) {
	l := &leaving{turn: t, bytes: n, end: end, over: make(chan struct{})}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.done(t.stream)
	f.leaving[t.stream] = l
	l.late = time.AfterFunc(framesMost, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.leaving[t.stream] == l {
			f.done(t.stream)
		}
	})
	return l.over
}

// done ends the turn of a stream's answer. mu is held.
func (f *frames) done(stream uint32) {
	if l := f.leaving[stream]; l != nil {
		delete(f.leaving, stream)
		l.late.Stop()
		l.turn.given()
		close(l.over)
	}
}

// Write implements net.Conn.
func (f *frames) Write(b []byte) (int, error) {
	n, err := f.Conn.Write(b)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left.follow(b[:n], func(h frameHeader) {
		l := f.leaving[h.stream()]
		if l == nil || h.kind() != frameData && h.kind() != frameHeaders && h.kind() != frameReset {
			return
		}
		if h.kind() == frameData {
			l.bytes -= h.length()
		}
		if h.ends() || h.kind() == frameReset || l.bytes <= 0 && !l.end {
			f.done(h.stream())
		}
	})
	return n, err
}

// Read implements net.Conn. A program that has heard enough resets the stream: its end does not leave then.
func (f *frames) Read(b []byte) (int, error) {
	n, err := f.Conn.Read(b)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.come.follow(b[:n], func(h frameHeader) {
		if h.kind() == frameReset {
			f.done(h.stream())
		}
	})
	return n, err
}

// A frameHeader is what stands before each frame.
type frameHeader [9]byte

func (h frameHeader) length() int    { return int(h[0])<<16 | int(h[1])<<8 | int(h[2]) }
func (h frameHeader) kind() byte     { return h[3] }
func (h frameHeader) ends() bool     { return h[4]&flagEnd != 0 }
func (h frameHeader) stream() uint32 { return binary.BigEndian.Uint32(h[5:]) &^ (1 << 31) }

// A frameScan follows the frames of one direction.
type frameScan struct {
	head frameHeader
	have int // bytes of it
	left int // bytes of the frame that are still to come
}

// follow is told of each frame that is whole with these bytes.
func (s *frameScan) follow(b []byte, whole func(frameHeader)) {
	for len(b) > 0 {
		if s.have < len(s.head) {
			n := copy(s.head[s.have:], b)
			if s.have, b = s.have+n, b[n:]; s.have < len(s.head) {
				return
			}
			s.left = s.head.length()
		}
		n := min(s.left, len(b))
		if s.left, b = s.left-n, b[n:]; s.left > 0 {
			return
		}
		whole(s.head)
		s.have = 0
	}
}

// Close implements net.Conn.
func (f *frames) Close() error {
	err := f.Conn.Close()
	f.mu.Lock()
	defer f.mu.Unlock()
	for stream := range f.leaving {
		f.done(stream)
	}
	return err
}

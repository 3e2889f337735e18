package websock

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/jsonrpc"
)

// A wire is the network connection beneath a WebSocket. On a server's the guard looks at what comes in; what goes out may be
// held until more follows.
type wire struct {
	net.Conn
	guard *guard // nil on a client's

	// Of the goroutine that reads.
	early []byte // what came behind the request that asked for the upgrade
	wrong *jsonrpc.CloseError
	told  bool // Read has returned it

	heard   atomic.Int64 // when bytes came last, as nanoseconds since epoch
	reading atomic.Bool  // somebody waits for bytes

	hold atomic.Bool // more follows
	mu   sync.Mutex  // guards held
	held []byte
}

var epoch = time.Now()

// What a client sends after it broke a rule is read and thrown away, so that one that is still sending does not lose our close
// frame to a reset: until it ends, until nothing came for drainIdle, but not longer than drainMost and not more than drainBytes.
const (
	drainIdle  = 2 * time.Second
	drainMost  = 15 * time.Second
	drainBytes = 256 << 20
)

// Read passes on what the guard lets through. After the first wrong byte nothing passes; the rest is thrown away.
func (w *wire) Read(p []byte) (int, error) {
	if w.wrong != nil {
		return 0, w.waste()
	}
	n, err := w.read(p)
	if n > 0 && w.guard != nil {
		var why *jsonrpc.CloseError
		if n, why = w.guard.check(p[:n]); why != nil {
			w.wrong = why
			if n == 0 {
				return 0, w.waste()
			}
			return n, nil
		}
	}
	return n, err
}

func (w *wire) read(p []byte) (int, error) {
	if len(w.early) > 0 {
		n := copy(p, w.early)
		w.early = w.early[n:]
		return n, nil
	}
	w.reading.Store(true)
	n, err := w.Conn.Read(p)
	w.reading.Store(false)
	w.heard.Store(int64(time.Since(epoch)))
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF // a WebSocket ends with a close frame; the library takes EOF for the end of a message
	}
	return n, err
}

// waste says what was wrong, and when it is asked again, which is when our close frame has been sent, that there is no more.
func (w *wire) waste() error {
	if !w.told {
		w.told = true
		return w.wrong
	}
	if half, ok := w.Conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite() // the close frame has been sent: a client that waits for the end of the connection sees it
	}
	w.drain()
	return io.EOF
}

func (w *wire) drain() {
	buf := make([]byte, 32<<10)
	last := time.Now().Add(drainMost)
	for read := 0; read < drainBytes; {
		soon := time.Now().Add(drainIdle)
		if soon.After(last) {
			soon = last
		}
		_ = w.SetReadDeadline(soon)
		n, err := w.Conn.Read(buf)
		if err != nil {
			return
		}
		read += n
	}
}

// Write sends p, with what was held before it, or holds it.
func (w *wire) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	more := w.hold.Load()
	if !more && len(w.held) == 0 {
		return w.Conn.Write(p)
	}
	w.held = append(w.held, p...)
	if more && len(w.held) < jsonrpc.DefaultAllowance {
		return len(p), nil
	}
	_, err := w.Conn.Write(w.held)
	if w.held = w.held[:0]; cap(w.held) > jsonrpc.DefaultAllowance {
		w.held = nil
	}
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

// silent returns for how long nothing came although somebody waited for it.
func (w *wire) silent() time.Duration {
	if !w.reading.Load() {
		return 0
	}
	return time.Since(epoch) - time.Duration(w.heard.Load())
}

// timeout reports whether err is that of a deadline.
func timeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}

package network

import (
	"fmt"
	"io"
	"net"
	"sync"
)

// A lifetime owns the sockets and goroutines of something that ends. Whatever enters must leave.
type lifetime struct {
	mu     sync.Mutex
	open   map[io.Closer]struct{} // sockets that end closes
	ended  bool
	active sync.WaitGroup // who entered and has not left
}

// enter takes part, with a socket or nil. It reports false once the lifetime has ended; leave must not follow then.
func (l *lifetime) enter(c io.Closer) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return false
	}
	if c != nil {
		if l.open == nil {
			l.open = make(map[io.Closer]struct{})
		}
		l.open[c] = struct{}{}
	}
	l.active.Add(1)
	return true
}

// leave undoes enter. The socket belongs to the caller again.
func (l *lifetime) leave(c io.Closer) {
	l.mu.Lock()
	delete(l.open, c)
	l.mu.Unlock()
	l.active.Done()
}

// end closes the sockets and waits until everybody has left.
func (l *lifetime) end() {
	l.mu.Lock()
	l.ended = true
	for c := range l.open {
		c.Close()
	}
	l.mu.Unlock()
	l.active.Wait()
}

// accept hands the connections of a listener to take, each in a goroutine of its own that has entered, and has to leave, until the lifetime
// ends; then it returns nil.
func (l *lifetime) accept(from net.Listener, take func(net.Conn)) error {
	if !l.enter(from) {
		return from.Close()
	}
	defer l.leave(from)
	for {
		c, err := from.Accept()
		switch {
		case err == nil && l.enter(c):
			go take(c)
		case err == nil:
			c.Close()
		case l.over():
			return nil
		case !isTemporary(err):
			return fmt.Errorf("accept on %s: %w", from.Addr(), err)
		}
	}
}

func (l *lifetime) over() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended
}

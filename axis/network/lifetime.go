package network

import (
	"io"
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

func (l *lifetime) over() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended
}

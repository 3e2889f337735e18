package jail

import (
	"sync"
	"sync/atomic"

	"github.com/tapedeck-dev/tapedeck/internal/jail/network"
)

const refusalBuffer = 1024 // refusals that wait for a slow reader

// refusals gathers what was refused from the filter's notifications and from the packets on the loopback device.
type refusals struct {
	out   chan Refusal
	lost  atomic.Int64
	armed atomic.Bool // the exec stage's own trial is over

	sniff *network.Sniffer

	mu     sync.Mutex
	closed bool
}

func newRefusals() *refusals {
	return &refusals{out: make(chan Refusal, refusalBuffer)}
}

// arm makes everything from now on the program's.
func (r *refusals) arm() { r.armed.Store(true) }

// add must not block: a notified call waits for it.
func (r *refusals) add(x Refusal) {
	if !r.armed.Load() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	select {
	case r.out <- x:
	default:
		r.lost.Add(1)
	}
}

// stop reads what is left and closes the channel. It is called once.
func (r *refusals) stop() {
	if r.sniff != nil {
		r.sniff.Close()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	close(r.out)
}

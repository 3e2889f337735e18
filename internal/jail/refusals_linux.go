package jail

import (
	"fmt"
	"sync/atomic"
)

const refusalBuffer = 1024 // refusals that wait for a slow reader

// refusals gathers what was refused from the filter's notifications and from the packets on the loopback device.
type refusals struct {
	out   chan Refusal
	lost  atomic.Int64
	armed atomic.Bool // the exec stage's own trial is over

	notify *notifier
	sniff  *sniffer
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
	select {
	case r.out <- x:
	default:
		r.lost.Add(1)
	}
}

// serveNotifications takes over the one descriptor in fds.
func (r *refusals) serveNotifications(fds []int) error {
	if len(fds) != 1 {
		closeFDs(fds)
		return fmt.Errorf("jail: %d descriptors with the notification listener", len(fds))
	}
	n, err := newNotifier(fds[0], r.add)
	r.notify = n
	return err
}

// stop reads what is left and closes the channel. It is called once.
func (r *refusals) stop() {
	if r.sniff != nil {
		r.sniff.close()
	}
	if r.notify != nil {
		r.notify.close()
	}
	close(r.out)
}

//go:build linux || darwin

package terminal

import (
	"errors"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// A keyReader reads a file of the caller until it is stopped: what is typed after that is for whoever reads next, so it looks
// whether there is something before it reads.
type keyReader struct {
	from        *os.File
	wake, alarm *os.File // a pipe whose end wakes a Read
	once        sync.Once

	mu sync.Mutex // held while wake is used
}

// newKeyReader returns a reader of from, whose stop must be called.
func newKeyReader(from *os.File) (*keyReader, error) {
	wake, alarm, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	return &keyReader{from: from, wake: wake, alarm: alarm}, nil
}

// Read reads what is typed. The error is errStopped after stop.
func (k *keyReader) Read(p []byte) (int, error) {
	if err := k.wait(); err != nil {
		return 0, err
	}
	return k.from.Read(p)
}

// wait returns nil when a read will not block.
func (k *keyReader) wait() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	set := []unix.PollFd{{Events: unix.POLLIN}, {Events: unix.POLLIN}}
	var err error
	errWake := control(k.wake, func(fd int) {
		set[0].Fd = int32(fd)
		err = control(k.from, func(fd int) {
			set[1].Fd = int32(fd)
			poll(set)
		})
	})
	if errWake != nil || set[0].Revents != 0 {
		return errStopped
	}
	return err
}

func poll(set []unix.PollFd) {
	for {
		if _, err := unix.Poll(set, -1); !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// stop ends a Read that waits, and every later one.
func (k *keyReader) stop() {
	k.once.Do(func() {
		k.alarm.Close()
		k.mu.Lock()
		defer k.mu.Unlock()
		k.wake.Close()
	})
}

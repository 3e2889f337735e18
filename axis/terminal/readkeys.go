package terminal

import (
	"errors"
	"os"
	"sync"

	"github.com/tapedeck-dev/tapedeck/internal/stopread"
)

// ReadKeys gives each what is typed on the caller's terminal, as it comes, from a goroutine of its own, until stop is called,
// which waits for it, or the terminal has ended, which gives nothing once. What is given is valid during the call. A nil Caller, and one
// without keys, gives nothing at all.
func (c *Caller) ReadKeys(each func([]byte)) (stop func(), err error) {
	if c == nil || c.Keys == nil {
		return func() {}, nil
	}
	r, err := stopread.New(c.Keys)
	if err != nil {
		return nil, err
	}
	var reading sync.WaitGroup
	reading.Go(func() {
		buf := make([]byte, 256)
		for {
			n, err := r.Read(buf)
			if n > 0 {
				each(buf[:n])
			}
			if err != nil {
				if !errors.Is(err, os.ErrClosed) {
					each(nil)
				}
				return
			}
		}
	})
	return func() { r.Stop(); reading.Wait() }, nil
}

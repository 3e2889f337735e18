//go:build !linux && !darwin

package terminal

import (
	"os"
	"sync/atomic"
)

// A keyReader reads a file of the caller until it is stopped.
type keyReader struct {
	from    *os.File
	stopped atomic.Bool
}

func newKeyReader(from *os.File) (*keyReader, error) { return &keyReader{from: from}, nil }

// Read reads what is typed.
func (k *keyReader) Read(p []byte) (int, error) {
	if k.stopped.Load() {
		return 0, errStopped
	}
	return k.from.Read(p)
}

func (k *keyReader) stop() { k.stopped.Store(true) }

//go:build linux

package mcp

import (
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// TestServerLeavesBothAtOnce has a server leave its stdout and, a while later, its stdin, as a process may that ends: who has read the end
// of its stdout writes to it in vain, whoever of the relay's goroutines comes to know of it first and however long it took.
func TestServerLeavesBothAtOnce(t *testing.T) {
	var o RelayOptions
	var clientReads, clientWrites, serverReads, serverWrites *os.File
	o.ClientIn, clientWrites = newPipe(t)
	clientReads, o.ClientOut = newPipe(t)
	serverReads, o.ServerIn = newPipe(t)
	o.ServerOut, serverWrites = newPipe(t)
	carried, err := newRelay(&o)
	if err != nil {
		t.Fatal(err)
	}
	carried.leaving = time.Hour // as far as the test goes nothing but the server's leaving counts
	var relay sync.WaitGroup
	relay.Go(carried.run)
	defer relay.Wait()
	defer carried.close()
	var left atomic.Bool
	serverWrites.Close()
	time.AfterFunc(20*time.Millisecond, func() {
		left.Store(true)
		serverReads.Close()
	})
	if b, err := io.ReadAll(clientReads); len(b) > 0 || err != nil {
		t.Errorf("read %q, %v", b, err)
	}
	if !left.Load() {
		t.Error("the client was told of the end before the server had left its stdin")
	}
	if _, err := io.WriteString(clientWrites, "\n"); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("the write: %v, want a broken pipe", err)
	}
}

// newPipe returns a pipe that ends with the test.
func newPipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

package mcp

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// OnSockets has the relay go to a server over two sockets, and returns the server's ends of them.
func (f *Fed) OnSockets(t *testing.T) (in, out *os.File) {
	t.Helper()
	pair := func() (*end, *os.File) {
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		far := os.NewFile(uintptr(fds[1]), "server")
		e, err := newEnd(os.NewFile(uintptr(fds[0]), "relay"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			e.close()
			far.Close()
		})
		return e, far
	}
	f.t.serverIn, in = pair()
	f.t.serverOut, out = pair()
	return in, out
}

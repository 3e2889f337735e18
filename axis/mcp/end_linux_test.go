package mcp

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// Who waits for the end of a socket of two directions, when one of them is closed already, keeps nobody from reading the other.
func TestLateWatchOfOneSocket(t *testing.T) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	near, far := os.NewFile(uintptr(fds[0]), "near"), os.NewFile(uintptr(fds[1]), "far")
	defer far.Close()
	in, err := newEnd(near)
	if err != nil {
		t.Fatal(err)
	}
	defer in.close()
	out := in.other()
	in.closeWrite()
	if in.gone() {
		t.Error("the far end is gone")
	}
	if _, err := far.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
}

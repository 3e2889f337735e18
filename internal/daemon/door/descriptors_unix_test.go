//go:build unix

package door

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestFewDescriptors holds that clients leave descriptors for those who write files.
func TestFewDescriptors(t *testing.T) {
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	few := before
	few.Cur = 100
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	d := open(t, &Options{Listen: "127.0.0.1:0"})
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	const most = 50 // half
	for i := range most + 1 {
		c, err := net.Dial("tcp", d.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		wait := time.Now().Add(patience / 2)
		if i < most {
			wait = time.Unix(1, 0) // it has nothing to say to those whom it lets in
		}
		_ = c.SetReadDeadline(wait)
		_, err = c.Read(make([]byte, 1))
		if left := errors.Is(err, os.ErrDeadlineExceeded); left != (i < most) {
			t.Fatalf("connection %d: %v", i, err)
		} else if !left && !errors.Is(err, io.EOF) && !errors.Is(err, unix.ECONNRESET) {
			t.Fatal(err)
		}
	}
	if talking, all := room(4096, 1<<20); talking != 4096 || all != 8192 {
		t.Errorf("with many descriptors: %d, %d", talking, all)
	}
}

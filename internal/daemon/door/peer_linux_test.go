package door

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestAnotherUser is cut off unheard, though the file would let it in. It needs root, to be somebody else.
func TestAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	dir, err := os.MkdirTemp("", "door")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "s")
	why := make(chan string, 1)
	open(t, &Options{Socket: path, Refused: func(w string) { why <- w }})
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	c := dialAs(t, path, 65534)
	defer c.Close()
	_, _ = io.WriteString(c, `{"jsonrpc":"2.0","id":1,"method":"echo"}`+"\n")
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	if b, _ := io.ReadAll(c); len(b) > 0 {
		t.Errorf("it was answered %s", b)
	}
	if got := <-why; got != "credentials" {
		t.Errorf("refused for %s", got)
	}
}

// dialAs connects as another user: this thread, which is locked, is that user meanwhile.
func dialAs(t *testing.T, path string, uid int) net.Conn {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	become := func(uid int) {
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, ^uintptr(0), uintptr(uid), ^uintptr(0)); errno != 0 {
			t.Fatalf("become user %d: %v", uid, errno)
		}
	}
	become(uid)
	c, err := net.Dial("unix", path)
	become(0)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

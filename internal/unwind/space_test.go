package unwind_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/tapedeck-dev/tapedeck/internal/unwind"
	"golang.org/x/sys/unix"
)

// TestChain asks where cat is that waits in a read: it came there from its own code, through the C library's or not.
func TestChain(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the tables are read on amd64 alone")
	}
	cat, err := exec.LookPath("cat")
	if err != nil {
		t.Skip(err)
	}
	cat, _ = filepath.EvalSymlinks(cat)
	first, second := waiting(t, cat), waiting(t, cat)
	if len(first) < 3 || first[len(first)-1].File != filepath.Base(cat) && !slices.ContainsFunc(first, in(filepath.Base(cat))) {
		t.Fatalf("it came from %+v", first)
	}
	if !slices.Equal(first, second) {
		t.Errorf("another time it came from %+v, not from %+v", second, first)
	}
}

func in(file string) func(unwind.Place) bool {
	return func(p unwind.Place) bool { return p.File == file }
}

// waiting starts a program that waits for its standard input, and tells where.
func waiting(t *testing.T, name string) []unwind.Place {
	t.Helper()
	cmd := exec.Command(name)
	to, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	from, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer to.Close()
	fmt.Fprintln(to, "ready") // what comes back was read, and the next read has begun or will
	if _, err := bufio.NewReader(from).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	var nr, sp, pc, x uint64
	for nr != unix.SYS_READ || sp == 0 {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/syscall", cmd.Process.Pid))
		if err != nil {
			t.Skip(err)
		}
		_, _ = fmt.Sscanf(string(text), "%d 0x%x 0x%x 0x%x 0x%x 0x%x 0x%x 0x%x 0x%x", &nr, &x, &x, &x, &x, &x, &x, &sp, &pc)
	}
	mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", cmd.Process.Pid))
	if err != nil {
		t.Skip(err)
	}
	defer mem.Close()
	s := unwind.New(func(at uint64, b []byte) error {
		_, err := mem.ReadAt(b, int64(at))
		return err
	}, func() ([]byte, error) { return os.ReadFile(fmt.Sprintf("/proc/%d/maps", cmd.Process.Pid)) })
	return s.Chain(make([]unwind.Place, 0, 16), pc, sp)
}

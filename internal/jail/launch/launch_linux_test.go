package launch

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"syscall"
	"testing"
)

// TestMain is the init too, where this process was started as one: it says that it is there, and ends with its socket.
func TestMain(m *testing.M) {
	if os.Args[0] != InitName {
		os.Exit(m.Run())
	}
	AwaitIDs()
	os.Stderr.WriteString("begun\n")
	os.NewFile(ControlFD, "control").Read(make([]byte, 1))
}

func take(t *testing.T) *Init {
	t.Helper()
	i, err := Take()
	if err != nil {
		t.Skipf("no namespaces here: %v", err)
	}
	t.Cleanup(func() { i.Control.Close(); i.Stderr.Close() })
	return i
}

func TestTake(t *testing.T) {
	if os.Getenv("TAPEDECK_STAGES") != "" {
		t.Skip("another program is the init here: with the race detector, TAPEDECK_STAGES names one")
	}
	Ahead()
	first, second := take(t), take(t)
	if first.PID == second.PID {
		t.Error("one init was given out twice")
	}
	for _, i := range []*Init{first, second} {
		b := make([]byte, len("begun\n"))
		if _, err := io.ReadFull(i.Stderr, b); err != nil || string(b) != "begun\n" {
			t.Errorf("%q, %v", b, err)
		}
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", i.PID))
		_, after, _ := bytes.Cut(status, []byte("\nCapEff:"))
		var has uint64
		if _, err := fmt.Sscanf(string(after), "%x", &has); err != nil {
			t.Error(err)
		}
		if all := uint64(1)<<rootsCaps - 1; err != nil || os.Geteuid() == 0 && has&all != all {
			t.Errorf("the init may do %x, %v", has, err)
		}
	}
	first.Kill()
	first.Wait()
	first.Kill() // of one that is gone
	second.Control.Close()
	second.Wait()
}

// TestOwnMemory holds that a start leaves this process its memory: were it copied, each page would be copied, or looked at again, when it is
// written to next.
func TestOwnMemory(t *testing.T) {
	const size = 8 << 20
	b, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Munmap(b)
	if err := syscall.Madvise(b, syscall.MADV_NOHUGEPAGE); err != nil {
		t.Skip("pages of any size:", err)
	}
	clear(b)
	i := take(t)
	before := faults(t)
	clear(b)
	if n := faults(t) - before; n > int64(size/os.Getpagesize()/2) {
		t.Errorf("%d faults of pages that were there before", n)
	}
	end(i)
}

func end(i *Init) {
	i.Kill()
	i.Wait()
}

func faults(t *testing.T) int64 {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return u.Minflt
}

// TestOthersExecutable starts inits from an executable that root may run only because its owner's id is mapped.
func TestOthersExecutable(t *testing.T) {
	if os.Geteuid() != 0 || os.Getenv("TAPEDECK_STAGES") != "" {
		t.Skip("root's, of the test's own executable")
	}
	end(take(t))
	data, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "theirs")
	if err := errors.Join(os.WriteFile(path, data, 0o700), os.Chown(path, 65534, 65534)); err != nil {
		t.Skip(err)
	}
	out, err := exec.Command(path, "-test.run=^TestTake$", "-test.v").CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("PASS: TestTake")) {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestDrop(t *testing.T) {
	i := take(t)
	i.Kill()
	i.Wait()
	Ahead()
	Drop()
	if begun.Load() || len(ahead) > 0 {
		t.Error("what was started ahead is still to be had")
	}
	Drop()
}

func TestWholeMap(t *testing.T) {
	path := filepath.Join(t.TempDir(), "uid_map")
	if err := os.WriteFile(path, []byte("         0     100000      65536\n     65536          7 4294901759\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	want := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 65536}, {ContainerID: 65536, HostID: 65536, Size: 4294901759}}
	if got := wholeMap(path); !reflect.DeepEqual(got, want) {
		t.Errorf("%v", got)
	}
	if got := wholeMap(path + ".none"); got != nil {
		t.Errorf("%v", got)
	}
}

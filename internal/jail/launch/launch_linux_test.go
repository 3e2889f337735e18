package launch

import (
	"io"
	"os"
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
	}
	first.Kill()
	first.Wait()
	first.Kill() // of one that is gone
	second.Control.Close()
	second.Wait()
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

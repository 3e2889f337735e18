package trace

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// TestStubFile runs the stub by itself.
func TestStubFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "stub")
	syscall.ForkLock.RLock() // a file that a child has open for writing cannot be executed
	err := os.WriteFile(path, stubFile(), 0o755)
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
	for in, want := range map[string]int{"": 0, "\x00": 0, "\x03": 3, "\xff": 255, "\x07\x08": 7} {
		cmd := exec.Command(path)
		stdin, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		stdin.Write([]byte(in))
		stdin.Close()
		cmd.Wait()
		if got := cmd.ProcessState.ExitCode(); got != want {
			t.Errorf("%q: %v, want %d", in, cmd.ProcessState, want)
		}
	}
}

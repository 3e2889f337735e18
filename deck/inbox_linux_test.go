package deck

import (
	"bufio"
	"os/exec"
	"runtime"
	"testing"
)

// TestWhoWaitsForAChildIsAtWork: a process that has started another, which is no program yet, has not come to rest.
func TestWhoWaitsForAChildIsAtWork(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil || runtime.GOARCH != "amd64" {
		t.Skip("python3 is not here, or its processor is another: ", err)
	}
	cmd := exec.Command(python, "-c", `
import ctypes, signal, sys
vfork = 0x4000
if ctypes.CDLL(None).syscall(56, vfork | signal.SIGCHLD, 0, 0, 0, 0) == 0: # clone(2)
    print("begun", flush=True)
    sys.stdin.read()
`)
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait() // its child ends with its standard input
	defer in.Close()
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "begun\n" {
		t.Fatalf("%q, %v", line, err)
	}
	if !atWork(cmd.Process.Pid) {
		t.Error("it rests")
	}
	if runs, _ := busy(cmd.Process.Pid); !runs {
		t.Error("it is taken for one that is held up")
	}
}

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

// TestThreadsThatTakeTurns: of two threads of which one always has something to do neither is at rest.
func TestThreadsThatTakeTurns(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip(err)
	}
	cmd := exec.Command(python, "-c", `
import os, threading
a, b = os.pipe(), os.pipe()
def turns(read, write):
    while True: os.write(write, os.read(read, 1))
threading.Thread(target=turns, args=(a[0], b[1]), daemon=True).start()
os.write(a[1], b"x")
print("begun", flush=True)
turns(b[0], a[1])
`)
	out, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait() // it was killed
	defer cmd.Process.Kill()
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "begun\n" {
		t.Fatalf("%q, %v", line, err)
	}
	for n := range 500 {
		if !atWork(cmd.Process.Pid) {
			t.Fatalf("look %d: it rests", n)
		}
	}
}

package deck

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"
)

// What comes on another connection waits until the process rests; what comes on the same one waits for nothing.
func TestInbox(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc")
	}
	cmd := exec.Command("sh", "-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; echo; read x")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	rests, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = in.Close(), cmd.Wait() }()
	one, other := &net.TCPAddr{Port: 1}, &net.TCPAddr{Port: 2}
	box := newInbox()
	box.begin(cmd.Process.Pid, one, false)(false)
	box.begin(cmd.Process.Pid, one, false)(false)
	box.begin(cmd.Process.Pid, other, false)(false)
	if atWork(cmd.Process.Pid) {
		t.Error("the process is at work still")
	}
	if _, err := rests.Read(make([]byte, 1)); err != nil {
		t.Error(err)
	}
	if box.vain > 0 {
		t.Error("waited in vain")
	}
}

// A process that never rests is waited for a few times, and one that does not read what it is given keeps nobody.
func TestInboxOfWhoAlwaysWorks(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc")
	}
	cmd := exec.Command("sh", "-c", "while :; do :; done")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = cmd.Process.Kill(), cmd.Wait() }()
	for !atWork(cmd.Process.Pid) {
		time.Sleep(time.Millisecond)
	}
	box := newInbox()
	box.vain = restVain - 1
	box.begin(cmd.Process.Pid, &net.TCPAddr{Port: 1}, false) // is not told that it was given
	box.begin(cmd.Process.Pid, &net.TCPAddr{Port: 2}, false)(false)
	if box.vain != restVain {
		t.Error("waited in vain", box.vain)
	}
	begun := worked(os.Getpid())
	box.begin(cmd.Process.Pid, &net.TCPAddr{Port: 3}, false)(false)
	if worked(os.Getpid())-begun > restWork {
		t.Error("it was waited for once more")
	}
}

// TestHeldUp: a thread that sleeps in a place of the filter's, or in none that the kernel would say yet, may wait for the jail.
func TestHeldUp(t *testing.T) {
	thread := t.TempDir() + "/"
	if err := os.WriteFile(thread+"syscall", []byte("running\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for where, want := range map[string]bool{"seccomp_do_user_notification": true, "0": tellsPlaces(), "futex_do_wait": false, "": false} {
		if heldUp(thread, []byte(where)) != want {
			t.Errorf("in %q: %v", where, !want)
		}
	}
	if heldUp(t.TempDir()+"/", []byte("0")) {
		t.Error("one that may not be looked at")
	}
}

// TestTwice: one of two threads hands over to the other, which was looked at before it, and has no processor for a while.
func TestTwice(t *testing.T) {
	for name, tt := range map[string]struct {
		runs  []bool // at each look
		turns []int
		want  [2]bool
	}{
		"rests":         {[]bool{false, false}, []int{5, 5}, [2]bool{false, false}},
		"hands over":    {[]bool{false, true}, []int{5, 5}, [2]bool{true, false}},
		"had a turn":    {[]bool{false, false}, []int{5, 6}, [2]bool{false, true}},
		"runs at first": {[]bool{true}, []int{5}, [2]bool{true, false}},
	} {
		does := twice(func() doing {
			now := tt.runs[0]
			tt.runs = tt.runs[1:]
			return doing{runs: now}
		}, func() int {
			now := tt.turns[0]
			tt.turns = tt.turns[1:]
			return now
		})
		if got := [2]bool{does.runs, does.waits}; got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

// TestStarts: who waits for a child that is about to execute a program is not at rest; who reads from a pipe that the child would hand down is, and who
// waits for a child that waits itself, to end perhaps.
func TestStarts(t *testing.T) {
	if runtime.GOOS != "linux" || !tellsPlaces() {
		t.Skip("needs to know where a thread sleeps")
	}
	for _, tt := range []struct {
		hands, does string
		want        bool
	}{{"False", "while 1: pass", true}, {"True", "while 1: pass", false}, {"False", "time.sleep(1000)", false}} {
		cmd := exec.Command("python3", "-c", "import os, time\nr, w = os.pipe()\nos.set_inheritable(w, "+tt.hands+")\nif (pid := os.fork()) == 0:\n    "+tt.does+"\nprint(pid, flush=True)\nos.read(r, 1)")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Skip(err)
		}
		defer func() { _, _ = cmd.Process.Kill(), cmd.Wait() }()
		var pid int
		if _, err := fmt.Fscan(out, &pid); err != nil {
			t.Fatal(err)
		}
		child, err := os.FindProcess(pid)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = child.Kill() }()
		works := strings.HasPrefix(tt.does, "while")
		for atWork(cmd.Process.Pid) || works && worked(pid) < restChild || !works && atWork(pid) {
			time.Sleep(time.Millisecond)
		}
		if got := starts(cmd.Process.Pid, busy(cmd.Process.Pid).reads, func(n int) bool { return n == pid }); got != tt.want || works && starts(cmd.Process.Pid, busy(cmd.Process.Pid).reads, briefly) {
			t.Errorf("%+v: %v, and of a child that has worked for long it is to be false", tt, got)
		}
	}
}

// TestReaper: of a process that has ended it is known who is to ask for its end; of others it is not.
func TestReaper(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc")
	}
	cmd := exec.Command("sh", "-c", "read x")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }()
	pid := cmd.Process.Pid
	if got := reaper(pid); got != 0 {
		t.Errorf("%d is to reap one that lives", got)
	}
	if got := inside(pid); got != pid {
		t.Errorf("%d has the number %d where it is", pid, got)
	}
	in.Close()
	for end := time.Now().Add(10 * time.Second); reaper(pid) != os.Getpid(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d is to reap it", reaper(pid))
		}
	}
}

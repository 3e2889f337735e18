package jail

import (
	"context"
	"encoding/binary"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/jail/inputs"
)

// told is Inputs that has answers of its own.
type told struct {
	mu    sync.Mutex
	asked []string
	ends  int
}

type toldSource struct {
	*stillSource
	told *told
}

func (o *told) Started(*Program) Source { return toldSource{newStill(1), o} }

func (s toldSource) Tick(uint64) int64 { return 5e9 }

func (o *told) Ended(Source, Ended) {}

func (o *told) Reads(string) {}

func (o *told) Changing() bool { return true }

func (o *told) Recent(int64) bool { return true }

func (s toldSource) Wrote(string, int64, int64, int64) int64 { return 77e9 }

func (s toldSource) Beginning() func(context.Context) { return nil }

func (s toldSource) Leaving(func() []Source) func(context.Context) { return nil }
func (s toldSource) Forking(int, bool) func(context.Context)       { return nil }
func (s toldSource) Waking() func(context.Context)                 { return nil }
func (s toldSource) Finding(int) func(context.Context)             { return nil }
func (s toldSource) Sleeping() func(context.Context) func()        { return nil }

func (s toldSource) Ending(Exit, func() ([]Source, bool)) func(context.Context) syscall.Signal {
	s.told.mu.Lock()
	defer s.told.mu.Unlock()
	s.told.ends++
	return nil
}

func (s toldSource) Asked(what, path string, b []byte) []byte {
	s.told.mu.Lock()
	defer s.told.mu.Unlock()
	s.told.asked = append(s.told.asked, strings.Fields(what)[0]+" "+path)
	switch strings.Fields(what)[0] {
	case "read":
		return []byte("told of " + path + "\n")
	case "sysinfo":
		clear(b[:8])
		b[0] = 77 // seconds
	case "times":
		clear(b)
		b[0], b[32] = 50, 200 // hundredths of a second
	case "statfs":
		clear(b[16:24])
		b[16] = 88 // blocks
	case "cputime":
		b = binary.LittleEndian.AppendUint64(nil, 3e9)
	case "rusage":
		clear(b)
		b[0], b[16] = 4, 5 // seconds, of the program and of the kernel for it
	case "leapseconds":
		b[0] = 37
	case "statx":
		clear(b[96:104])
		b[96] = 99 // seconds of its change
	}
	return b
}

// TestAsked answers what a program asks of the machine and the moment.
func TestAsked(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, script, want string }{
		{"files of /proc", "cat /proc/uptime /proc/self/stat; read a </proc/loadavg; echo $a; cat /proc/sys/kernel/ostype",
			"told of /proc/uptime\ntold of /proc/self/stat\ntold of /proc/loadavg\nLinux\n"},
		{"statfs", "stat -f -c %b /", "88\n"},
		{"times", `python3 -c 'import os; t = os.times(); print(t.user, t.elapsed)'`, "0.5 2.0\n"},
		{"processor time", `python3 -c 'import time; print(time.process_time(), time.clock_gettime(2))'`, "3.0 3.0\n"},
		{"usage", `python3 -c 'import resource; r = resource.getrusage(0); print(r.ru_utime, r.ru_stime, r.ru_maxrss)'`, "4.0 5.0 0\n"},
		{"usage of children", `python3 -c 'import resource; r = resource.getrusage(resource.RUSAGE_CHILDREN); print(r.ru_utime, r.ru_stime, r.ru_maxrss)'`, "4.0 5.0 0\n"},
		{"uuid", "cat /proc/sys/kernel/random/uuid", "-4"},
		{"statx", "stat -c '%i %n' /etc/passwd", " /etc/passwd\n"},
		{"time of a change", "stat -c %Z /etc/passwd", "99\n"},
		{"time of a write", `python3 -c 'import os; print(os.stat("/etc/passwd").st_mtime)'`, "77.0\n"},
		{"time of a write by lstat", "find /etc/passwd -printf '%T@\\n'", "77.0000000000\n"},
		{"time of a write by statx", "ls --time-style=+%s -l /etc/passwd", " 77 /etc/passwd\n"},
		{"monotonic clock", `python3 -c 'import time; print(time.monotonic(), time.perf_counter())'`, "5.0 5.0\n"},
		{"atomic time", `python3 -c 'import time; print(*(int(time.clock_gettime(c)) - int(time.time()) for c in (time.CLOCK_TAI, time.CLOCK_TAI, 0)))'`, "37 37 0\n"},
		{"a fork's", `python3 -c 'import os, time; os.fork() or (print(time.monotonic(), flush=True), os._exit(0)); os.wait()'`, "5.0\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			sh, err := exec.LookPath("sh")
			if err != nil {
				t.Skip(err)
			}
			if strings.HasPrefix(c.script, "python3") && !inputs.Hides() {
				t.Skip("the kernel's code for the time is not known here")
			}
			o := new(told)
			r := run(t, &Config{Path: sh, Argv: []string{"sh", "-c", c.script}, Dir: "/", TTY: -1, Env: []string{"PATH=/usr/bin:/bin"}, Inputs: o, Shifted: true}, nil)
			if !strings.Contains(r.stdout, c.want) || r.stderr != "" {
				t.Errorf("stdout %q, want %q\n%s\nasked %q", r.stdout, c.want, r.stderr, o.asked)
			}
			if o.ends == 0 {
				t.Error("of no process the end was told")
			}
		})
	}
}

// TestUsage: what a process is told of its use is what the kernel says of it. How much of it was the program's own the kernel guesses from the
// few ticks of so short a life, which may all have met the other: only the sum is sure.
func TestUsage(t *testing.T) {
	t.Parallel()
	_, r := inputsOf(t, pythonConfig(t, `
import resource, time
def stat(): return open("/proc/self/task/%d/stat" % os.getpid()).read().rpartition(")")[2].split()
import os
sum(range(1000000))
fault, before = int(stat()[7]), time.thread_time() # the kernel's own: there is one thread
process, use = time.process_time(), resource.getrusage(resource.RUSAGE_SELF)
after, faults = time.thread_time(), int(stat()[7])
total = use.ru_utime + use.ru_stime + 2e-6
print(before <= process <= total <= after + 2e-6, fault <= use.ru_minflt <= faults, use.ru_maxrss > 1000)
`))
	r.want(t, "True True True\n")
}

// TestGoKeepsItsClock gives a Go program the wall time that is answered, and leaves it the monotonic clock.
func TestGoKeepsItsClock(t *testing.T) {
	t.Parallel()
	if !inputs.Hides() {
		t.Skip("the kernel's code for the time is not known here")
	}
	c := helperConfig(t, "clocks")
	c.Inputs = new(told)
	if r := run(t, c, nil); r.stdout != "2001 true\n" {
		t.Errorf("stdout %q\n%s", r.stdout, r.stderr)
	}
}

// helperClocks tells the year, and whether the monotonic clock goes on.
func helperClocks([]string) int {
	began := time.Now()
	time.Sleep(time.Millisecond)
	fmt.Println(began.UTC().Year(), time.Since(began) >= time.Millisecond)
	return 0
}

package jail

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/jail/mount"
	"github.com/tapedeck-dev/tapedeck/internal/jail/mountinfo"
	"github.com/tapedeck-dev/tapedeck/internal/jail/stage"
	"golang.org/x/sys/unix"
)

// pidfd watches a process: it becomes readable when the process ends.
func pidfd(t testing.TB, pid int) int {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

func wantEnded(t testing.TB, fd int, what string) {
	t.Helper()
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(fds, 1000)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if n != 1 {
			t.Errorf("%s still runs after a second", what)
		}
		return
	}
}

// insiders returns the host's PIDs of the processes in the PID namespace of init.
func insiders(t testing.TB, init int) []int {
	t.Helper()
	ns, err := os.Readlink("/proc/" + strconv.Itoa(init) + "/ns/pid")
	if errors.Is(err, os.ErrPermission) {
		t.Skip("cannot look at other processes here")
	}
	entries, errDir := os.ReadDir("/proc")
	if err = errors.Join(err, errDir); err != nil {
		t.Fatal(err)
	}
	var out []int
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			if got, err := os.Readlink("/proc/" + e.Name() + "/ns/pid"); err == nil && got == ns {
				out = append(out, pid)
			}
		}
	}
	return out
}

func TestRecorderKilled(t *testing.T) {
	t.Parallel()
	for _, released := range []bool{true, false} {
		c := helperConfig(t, "recorder")
		cmd := exec.Command(c.Path)
		cmd.Env = c.Env
		if released {
			cmd.Args = append(cmd.Args, "release")
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		line, _ := bufio.NewReader(out).ReadString('\n')
		init, err := strconv.Atoi(strings.TrimSpace(line))
		if err != nil {
			t.Fatalf("recorder said %q", line)
		}
		var watched []int
		for _, pid := range insiders(t, init) {
			watched = append(watched, pidfd(t, pid))
		}
		if len(watched) < 2 {
			t.Errorf("%d processes inside, want the init and another", len(watched))
		}
		cmd.Process.Kill()
		for _, fd := range watched {
			wantEnded(t, fd, "a process of a killed recorder")
		}
		cmd.Wait()
	}
}

func TestDaemonsEnd(t *testing.T) {
	t.Parallel()
	c := helperConfig(t, "daemon")
	start := time.Now()
	run(t, c, nil).want(t, "") // waits for the end of the output that the daemon holds
	if d := time.Since(start); d > 10*time.Second {
		t.Errorf("took %v", d)
	}
}

func TestContextEndsJail(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	j, err := Start(ctx, shellConfig(t, "exec sleep 3600"))
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if err := j.Release(); err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := j.Wait(); err == nil {
		t.Error("Wait knows an exit of a jail that was ended")
	}
	if j, err := Start(ctx, shellConfig(t, "")); !errors.Is(err, context.Canceled) || j != nil {
		t.Errorf("Start with a done context: %v", err)
	}
}

func TestSignals(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		sig  syscall.Signal
		want string
	}{
		{syscall.SIGTERM, "term\n"},
		{syscall.SIGINT, "int\n"},
		{syscall.SIGUSR1, "usr1\n"},
	} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		// The shell heeds a trap between commands: read is one that a signal interrupts.
		c := shellConfig(t, "trap 'echo term; exit' TERM; trap 'echo int; exit' INT; trap 'echo usr1; exit' USR1; echo ready; while :; do sleep 0.01; done")
		c.Stdout = w
		j, err := Start(t.Context(), c)
		w.Close()
		if err != nil {
			t.Fatal(err)
		}
		if err := j.Release(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewReader(r)
		if s, _ := lines.ReadString('\n'); s != "ready\n" {
			t.Fatalf("got %q", s)
		}
		if err := j.Signal(tt.sig); err != nil {
			t.Fatal(err)
		}
		if s, _ := lines.ReadString('\n'); s != tt.want {
			t.Errorf("%v: got %q", tt.sig, s)
		}
		j.Close()
		r.Close()
	}
}

func TestProgramCannotEndInit(t *testing.T) {
	t.Parallel()
	run(t, shellConfig(t, "for s in HUP INT QUIT TERM USR1 KILL STOP SEGV; do kill -$s 1; done 2>/dev/null; sleep 0.05; echo alive"), nil).want(t, "alive\n")
}

// TestProgramCannotCrippleInit: a program that lowers the limits of process 1 gets EPERM, and may do so to itself.
func TestProgramCannotCrippleInit(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("prlimit"); err != nil {
		t.Skip("no prlimit on this machine")
	}
	run(t, shellConfig(t, "prlimit --pid 1 --nofile=1:1 2>/dev/null && echo crippled; prlimit --pid $$ --nofile=64:64 && echo own"), nil).want(t, "own\n")
}

// TestThreadsOfInit: neither do the numbers of its threads lead to it. Signals that reach one of them are dropped.
func TestThreadsOfInit(t *testing.T) {
	t.Parallel()
	run(t, helperConfig(t, "cripple"), nil).want(t, "alive\n")
}

func TestBornState(t *testing.T) {
	c := helperConfig(t, "state")
	c.Hostname = "elsewhere"
	leak, err := os.Open("/") // as a shell may leave one to all its children
	if err != nil {
		t.Fatal(err)
	}
	defer leak.Close()
	if _, err := unix.FcntlInt(leak.Fd(), unix.F_SETFD, 0); err != nil {
		t.Fatal(err)
	}
	uid := strconv.Itoa(os.Geteuid())
	run(t, c, nil).want(t, strings.Join([]string{
		"Uid: " + strings.Join([]string{uid, uid, uid, uid}, " "),
		"SigBlk: 0000000000000000",
		"CapInh: 0000000000000000", "CapPrm: 0000000000000000", "CapEff: 0000000000000000", "CapBnd: 0000000000000000", "CapAmb: 0000000000000000",
		"NoNewPrivs: 1", "Seccomp: 2",
		"fd 0 nonblocking false", "fd 1 nonblocking false", "fd 2 nonblocking false",
		fmt.Sprintf("hangup ignored %v", signal.Ignored(unix.SIGHUP)), // as we were born ourselves, under nohup say
		fmt.Sprintf("interrupt ignored %v", signal.Ignored(unix.SIGINT)),
		"host elsewhere", "",
	}, "\n"))
}

func TestSigpipeAndLimits(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("yes"); err != nil {
		t.Skip("no yes here")
	}
	var own bytes.Buffer
	limit := exec.Command("sh", "-c", "ulimit -n")
	limit.Stdout = &own
	if err := limit.Run(); err != nil {
		t.Skip("no shell here")
	}
	// 141 is a shell's word for SIGPIPE; a program that inherits it ignored fails with 1.
	run(t, shellConfig(t, "ulimit -n; (yes; echo $? >&2) | head -n 1"), nil).want(t, own.String()+"y\n")
	r := run(t, shellConfig(t, "(yes; echo $? >&2) | head -n 1"), nil)
	if r.stderr != "141\n" {
		t.Errorf("yes ended with %q", r.stderr)
	}
}

func TestNothingLeaks(t *testing.T) {
	fds := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	dir := testDir(t)
	mounts := func() []string {
		points, err := mountinfo.Points("/proc/self/mountinfo")
		if err != nil {
			t.Fatal(err)
		}
		return slices.DeleteFunc(points, func(p string) bool { // other programs and tests mount in their own directories
			return !mountinfo.Within(p, dir) && (mountinfo.Within(p, "/tmp") || mountinfo.Within(p, "/var/tmp") || mountinfo.Within(p, os.TempDir()))
		})
	}
	once := func() {
		c := shellConfig(t, "")
		c.Overlays = []mount.Overlay{overlay(t, dir)}
		run(t, c, nil)
	}
	once() // what the runtime keeps is there now
	wasFDs, wasMounts := fds(), mounts()
	for range 12 {
		once()
	}
	if n := fds(); n > wasFDs {
		t.Errorf("%d descriptors, %d before", n, wasFDs)
	}
	if now := mounts(); !slices.Equal(now, wasMounts) {
		t.Errorf("mounts were left: %q, before %q", now, wasMounts)
	}
}

func TestNotEntered(t *testing.T) {
	stage.Entered.Store(false)
	defer stage.Entered.Store(true)
	if _, err := Start(t.Context(), shellConfig(t, "")); !errors.Is(err, ErrNotEntered) {
		t.Errorf("Start: %v", err)
	}
}

func TestIgnoredSignals(t *testing.T) {
	t.Parallel()
	c := helperConfig(t, "relay")
	cmd := exec.Command("/bin/sh", "-c", `trap "" HUP; exec "$0" state`, c.Path)
	cmd.Env = c.Env
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err, string(out))
	}
	if s := string(out); !strings.Contains(s, "hangup ignored true\ninterrupt ignored false\n") {
		t.Errorf("the program of a recorder under nohup: %s", s)
	}
}

func TestBytesOfArguments(t *testing.T) {
	t.Parallel()
	c := shellConfig(t, `printf '%s\n' "$1" "$V" "$0"`)
	c.Argv = append(c.Argv, "zero", "\xff\xfe")
	c.Env = append(c.Env, "V="+strings.Repeat("\x80", 100_000)) // more than a packet holds
	run(t, c, nil).want(t, "\xff\xfe\n"+strings.Repeat("\x80", 100_000)+"\nzero\n")
}

func TestPIDs(t *testing.T) {
	t.Parallel()
	if !newKernel(6, 14) {
		t.Skip("PID limits are the whole machine's before Linux 6.14")
	}
	run(t, shellConfig(t, "cat /proc/sys/kernel/pid_max; ls -d /proc/[0-9]* | head -n 2 | tail -n 1"), nil).want(t, "16384\n/proc/100\n")
}

// TestStartCancelled: a context may end at any moment of a start; the race detector sees whether what ends the jail reads what the start
// still makes.
func TestStartCancelled(t *testing.T) {
	t.Parallel()
	for after := range 30 {
		c := helperConfig(t, "nothing")
		c.Watch, c.Spawns = nothing{}, nothing{}
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(2*after)*time.Millisecond)
		j, err := Start(ctx, c)
		switch {
		case err == nil:
			j.Close()
		case !errors.Is(err, context.DeadlineExceeded):
			t.Errorf("after %d ms: %v", 2*after, err)
		}
		cancel()
	}
}

// TestPreparedIsGone: of a jail in which nothing is left Close does not wait for the init; Close of what it was made from does.
func TestPreparedIsGone(t *testing.T) {
	p, err := Prepare()
	if err != nil {
		t.Fatal(err)
	}
	c := shellConfig(t, "echo done")
	c.Prepared = p
	var init int
	run(t, c, func(j *Jail) { init = j.init.PID }).want(t, "done\n")
	if p.left == nil {
		t.Error("nobody is left to be waited for")
	}
	p.Close()
	if err := unix.Kill(init, 0); !errors.Is(err, unix.ESRCH) {
		t.Errorf("the init: %v", err)
	}
}

// TestNetworkBeforeThePlan: an init that has not been told yet what its jail is to be has its network up, and its DNS there.
func TestNetworkBeforeThePlan(t *testing.T) {
	p, err := Prepare()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
	init := p.j.init.PID
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		four, _ := os.ReadFile(fmt.Sprintf("/proc/%d/net/udp", init))
		six, _ := os.ReadFile(fmt.Sprintf("/proc/%d/net/udp6", init))
		if bytes.Contains(append(four, six...), []byte(":0035 ")) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("nobody has port 53:\n%s%s", four, six)
		}
	}
}

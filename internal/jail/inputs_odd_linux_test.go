package jail

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/jail/inputs"
	"golang.org/x/sys/unix"
)

// long is short, or long where TAPEDECK_LONG is set.
func long(short, long int) int {
	if os.Getenv("TAPEDECK_LONG") != "" {
		return long
	}
	return short
}

// pythonTimes runs a script that is told how often to do what it does.
func pythonTimes(t testing.TB, script string, n int) *Config {
	c := pythonConfig(t, script)
	c.Argv = append(c.Argv, strconv.Itoa(n))
	return c
}

// TestInputsRefused makes calls with arguments that the kernel refuses, and has its errors.
func TestInputsRefused(t *testing.T) {
	t.Parallel()
	const bad = 1 // no address
	for _, c := range []struct {
		name, want string
		call       string
	}{
		{"clock_gettime of no address", "EFAULT", call(unix.SYS_CLOCK_GETTIME, unix.CLOCK_REALTIME, bad)},
		{"clock_gettime of null", "EFAULT", call(unix.SYS_CLOCK_GETTIME, unix.CLOCK_REALTIME, 0)},
		{"clock_gettime of no clock", "EINVAL", call(unix.SYS_CLOCK_GETTIME, 99, bad)},
		{"clock_getres", "ok", call(unix.SYS_CLOCK_GETRES, unix.CLOCK_REALTIME, 0)},
		{"clock_settime", "EFAULT", call(unix.SYS_CLOCK_SETTIME, unix.CLOCK_REALTIME, bad)},
		{"gettimeofday of nothing", "ok", call(unix.SYS_GETTIMEOFDAY, 0, 0)},
		{"gettimeofday of no address", "EFAULT", call(unix.SYS_GETTIMEOFDAY, bad, 0)},
		{"gettimeofday of no zone", "EFAULT", call(unix.SYS_GETTIMEOFDAY, 0, bad)},
		{"getrandom of no address", "EFAULT", call(unix.SYS_GETRANDOM, bad, 8, 0)},
		{"getrandom of nothing", "ok", call(unix.SYS_GETRANDOM, bad, 0, 0)},
		{"getrandom of more than there is", "EFAULT", call(unix.SYS_GETRANDOM, bad, 1<<40, unix.GRND_RANDOM)},
		{"getrandom with unknown flags", "EINVAL", call(unix.SYS_GETRANDOM, bad, 8, 0x100)},
		{"getrandom with flags that exclude each other", "EINVAL", call(unix.SYS_GETRANDOM, bad, 8, unix.GRND_RANDOM|unix.GRND_INSECURE)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, r := inputsOf(t, callsConfig(t, testDir(t), c.call))
			r.want(t, c.want+"\n")
		})
	}
}

// TestInputsSignals reads the clock while signals come whose handler restarts no call: no read fails.
func TestInputsSignals(t *testing.T) {
	t.Parallel()
	if !inputs.Hides() {
		t.Skip("the vDSO of this processor is hidden")
	}
	_, r := inputsOf(t, pythonTimes(t, `
import signal, sys, time, os
came = 0
def handler(*_):
    global came
    came += 1
signal.signal(signal.SIGALRM, handler)
signal.siginterrupt(signal.SIGALRM, True)
signal.setitimer(signal.ITIMER_REAL, 0.0003, 0.0003)
while came < int(sys.argv[1]):
    time.time(); os.urandom(8); open("/etc/passwd").close()
signal.setitimer(signal.ITIMER_REAL, 0)
print("over")
`, long(200, 20000)))
	r.want(t, "over\n")
}

// TestInputsWaitSignals waits for moments of the clock while signals come: a handler that runs before the wait leaves its timeout as it is.
func TestInputsWaitSignals(t *testing.T) {
	t.Parallel()
	if !inputs.Hides() {
		t.Skip("the vDSO of this processor is hidden")
	}
	_, r := inputsOf(t, pythonTimes(t, `
import ctypes, signal, sys, time
libc = ctypes.CDLL(None)
came = 0
def handler(*_):
    global came
    came += 1
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.0003, 0.0003)
ends = set()
while came < int(sys.argv[1]):
    ends.add(libc.clock_nanosleep(0, 1, (ctypes.c_long * 2)(int(time.time()) + 3600, 0), None))
signal.setitimer(signal.ITIMER_REAL, 0)
print(ends) # EINTR, and neither over at once nor refused
`, long(200, 20000)))
	r.want(t, "{4}\n")
}

// TestInputsWaitRestarts waits for a moment of the clock while the kernel restarts the wait again and again: its timeout stays what it is,
// though a handler ran where it lies.
func TestInputsWaitRestarts(t *testing.T) {
	t.Parallel()
	if !inputs.Hides() {
		t.Skip("the vDSO of this processor is hidden")
	}
	_, r := inputsOf(t, pythonTimes(t, `
import ctypes, os, signal, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
class Attr(ctypes.Structure): _fields_ = [("flags", ctypes.c_long), ("most", ctypes.c_long), ("size", ctypes.c_long), ("rest", ctypes.c_long * 5)]
name = b"/restarts"
q = libc.mq_open(name, os.O_CREAT | os.O_RDWR, 0o600, ctypes.byref(Attr(0, 1, 64)))
libc.mq_unlink(name)
r, w = os.pipe()
os.set_blocking(w, False)
signal.set_wakeup_fd(w, warn_on_full_buffer=False)
signal.signal(signal.SIGALRM, lambda *_: None)
signal.siginterrupt(signal.SIGALRM, False)
main = threading.get_native_id()
until = (ctypes.c_long * 2)(int(time.time()) + 3600, 0)
def timeout(): # of the wait that main is in, where it is not the one of here
    f = open("/proc/self/task/%d/syscall" % main).read().split()
    if f[0] == {"x86_64": "243", "aarch64": "183"}[os.uname().machine] and int(f[5], 0) != ctypes.addressof(until):
        return tuple((ctypes.c_long * 2).from_address(int(f[5], 0)))
def work():
    global first, kept
    while not (first := timeout()): os.sched_yield()
    signal.setitimer(signal.ITIMER_REAL, 0.0003, 0.0003)
    for _ in range(int(sys.argv[1])): os.read(r, 1)
    signal.setitimer(signal.ITIMER_REAL, 0)
    for _ in range(2000): # the last restart may be under way
        if kept := timeout() == first: break
        time.sleep(0.001)
    libc.mq_send(q, b"over", 4, 0)
worker = threading.Thread(target=work)
worker.start()
n = libc.mq_timedreceive(q, ctypes.create_string_buffer(64), 64, None, until)
failed = ctypes.get_errno()
worker.join()
print(n if n >= 0 else failed, kept)
`, long(200, 20000)))
	r.want(t, "4 True\n")
}

// TestInputsCrowd has many threads read the clock.
func TestInputsCrowd(t *testing.T) {
	t.Parallel()
	_, r := inputsOf(t, pythonTimes(t, `
import sys, threading, time
threading.stack_size(1 << 16)
def work():
    for _ in range(5): time.time()
all = [threading.Thread(target=work) for _ in range(int(sys.argv[1]))]
for t in all: t.start()
for t in all: t.join()
print("over")
`, long(200, 1000)))
	r.want(t, "over\n")
}

// execKinds start programs in several ways: what succeeds has its status, what fails its error.
const execKinds = `
import os, sys, subprocess
n = int(sys.argv[1])
def status(start):
    pid = start()
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
def fork(path, *argv):
    pid = os.fork()
    if pid == 0:
        try: os.execv(path, argv)
        except OSError as e: os._exit(e.errno)
    return pid
def vfork(path, *argv):
    p = subprocess.Popen(argv, executable=path)
    p.returncode = 0 # it is waited for here
    return p.pid
def spawn(path, *argv): return os.posix_spawn(path, argv, {})
def tried(start, *args):
    try: return status(lambda: start(*args))
    except OSError as e: return e.errno
busy = open("busy", "w"); busy.write("#!/bin/sh\n"); busy.flush(); os.chmod("busy", 0o755)
open("noexec", "w").close()
open("script", "w").write("#!/bin/sh\nexit 3\n"); os.chmod("script", 0o755)
want = {("/bin/true", "true"): 0, ("/bin/sh", "sh", "-c", "exit 7"): 7, ("./script", "script"): 3, ("/nonexistent", "x"): 2,
    ("./noexec", "x"): 13, ("./busy", "x"): 26, ("/bin/true", "x" * 300000): 7}
bad = [(start.__name__, what[0], was) for _ in range(n) for start in (fork, vfork, spawn) for what, expect in want.items()
    if (was := tried(start, *what)) != expect]
print(bad)
`

// TestExecKinds starts programs in several ways, beside each other.
func TestExecKinds(t *testing.T) {
	t.Parallel()
	dir := testDir(t)
	c := pythonTimes(t, execKinds, long(5, 1000))
	c.Dir, c.Writable = dir, []string{dir}
	_, r := inputsOf(t, c)
	r.want(t, "[]\n")
}

// TestExecStorm starts many programs from several at once, each of which waits for its own.
func TestExecStorm(t *testing.T) {
	t.Parallel()
	n := strconv.Itoa(long(20, 5000))
	script := `
sh -c 'i=0; while [ $i -lt ` + n + ` ]; do /bin/true || echo sh bad; i=$((i+1)); done' &
python3 -c 'import subprocess
for i in range(` + n + `):
    if subprocess.run(["/bin/true"]).returncode: print("python bad")' &
if command -v node >/dev/null; then
    node -e 'for (let i = 0; i < ` + n + `; i++) if (require("child_process").spawnSync("/bin/true").status) console.log("node bad")' &
fi
` + helperVar + `=storm "$HELPER" ` + n + ` &
wait; echo over`
	c := shellConfig(t, script)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c.Env = append(c.Env, "HELPER="+exe)
	_, r := inputsOf(t, c)
	r.want(t, "over\n")
}

// helperStorm has threads that are not the first of their processes execute a program.
func helperStorm(args []string) int {
	n, _ := strconv.Atoi(args[0])
	exe, _ := os.Executable()
	for range n {
		cmd := exec.Command(exe)
		cmd.Env = []string{helperVar + "=threadexec"}
		if out, err := cmd.CombinedOutput(); err != nil || string(out) != "" {
			fmt.Println("go bad", err, string(out))
		}
	}
	return 0
}

func helperThreadExec([]string) int {
	runtime.LockOSThread() // the first thread stays this goroutine's
	go func() {
		runtime.LockOSThread()
		fmt.Println(unix.Exec("/bin/true", []string{"true"}, nil))
	}()
	time.Sleep(time.Minute)
	return 1
}

// TestExecKilled kills processes while they execute a program: each is waited for, and nothing of it is left.
func TestExecKilled(t *testing.T) {
	t.Parallel()
	_, r := inputsOf(t, pythonTimes(t, `
import os, random, signal, sys, time
bad = 0
for i in range(int(sys.argv[1])):
    pid = os.fork()
    if pid == 0:
        try: os.execv("/bin/true", ["true"])
        finally: os._exit(9)
    for _ in range(random.randrange(0, 400)): pass
    if i % 2: time.sleep(random.random() * 0.002)
    os.kill(pid, signal.SIGKILL)
    bad += os.waitpid(pid, 0)[1] not in (0, 9)
print(bad)
`, long(100, 20000)))
	r.want(t, "0\n")
}

// TestExecStopped stops and continues processes while they execute a program.
func TestExecStopped(t *testing.T) {
	t.Parallel()
	_, r := inputsOf(t, pythonTimes(t, `
import os, signal, sys
bad = 0
for i in range(int(sys.argv[1])):
    pid = os.fork()
    if pid == 0: os.execv("/bin/sh", ["sh", "-c", "exit 5"])
    os.kill(pid, signal.SIGSTOP)
    status = os.waitpid(pid, os.WUNTRACED)[1]
    if os.WIFSTOPPED(status):
        os.kill(pid, signal.SIGCONT)
        status = os.waitpid(pid, 0)[1]
    bad += os.waitstatus_to_exitcode(status) != 5
print(bad)
`, long(50, 5000)))
	r.want(t, "0\n")
}

// TestInputsDebugged has debuggers inside start and stop programs.
func TestInputsDebugged(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ tool, script, want string }{
		{"strace", "strace -f -o /dev/null sh -c '/bin/true; exit 4'; echo $?", "4"},
		{"gdb", "gdb -nx -batch -ex run --args /bin/true 2>&1", "exited normally"},
		{"gdb", "sleep 60 & gdb -nx -batch -p $! -ex detach 2>&1; kill $!", "detached"},
	} {
		t.Run(c.tool, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(c.tool); err != nil {
				t.Skip(c.tool, " is not here")
			}
			if _, r := inputsOf(t, shellConfig(t, c.script)); !strings.Contains(r.stdout, c.want) {
				t.Errorf("%s%s", r.stdout, r.stderr)
			}
		})
	}
}

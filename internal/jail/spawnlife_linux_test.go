package jail

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/tapedeck-dev/tapedeck/internal/jail/inspect"
	"github.com/tapedeck-dev/tapedeck/internal/jail/process"
	"golang.org/x/sys/unix"
)

// TestSpawnsOfNode: Node talks through a socket for each stream.
func TestSpawnsOfNode(t *testing.T) {
	t.Parallel()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed")
	}
	const head = "const cp = require('child_process');\n"
	const shown = "let out = '', errs = ''; p.stdout?.on('data', d => out += d); p.stderr?.on('data', d => errs += d);" +
		"p.on('close', (code, sig) => console.log(JSON.stringify([out, errs, code, sig])));"
	for name, tt := range map[string]struct {
		script, want string
		told         []string
	}{
		"spawn": {"const p = cp.spawn('sh', ['-c', 'cat; echo bad >&2; exit 3']); p.stdin.end('hello');" + shown,
			`["hello","bad\n",3,null]`, []string{"sh -c cat; echo bad >&2; exit 3"}},
		"stderr inherited": {"const p = cp.spawn('cat', {stdio: ['pipe', 'pipe', 'inherit']}); p.stdin.end('hello');" + shown, `["hello","",0,null]`, []string{"cat"}},
		"exec":             {"console.log(cp.execSync('echo x').toString())", "x\n", []string{"sh -c echo x"}},
		"inherited":        {"cp.spawn('echo', ['x'], {stdio: 'inherit'})", "x", nil},
		"killed":           {"const p = cp.spawn('cat'); p.stdin.write('hello'); p.stdout.once('data', () => p.kill());" + shown, `["hello","",null,"SIGTERM"]`, []string{"cat"}},
		"nowhere":          {"cp.spawn('nosuch').on('error', e => console.log(e.code))", "ENOENT", []string{"nosuch"}},
		"much": {"const p = cp.spawn('cat'); let n = 0; p.stdout.on('data', d => n += d.length); p.on('close', () => console.log(n)); p.stdin.end('x'.repeat(5e6))",
			"5000000", []string{"cat"}},
		"ends its output first": {"const p = cp.spawn('sh', ['-c', 'exec >&-; cat >/dev/null; exit 2']); p.stdout.on('end', () => p.stdin.end('x'));" + shown,
			`["","",2,null]`, []string{"sh -c exec >&-; cat >/dev/null; exit 2"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := shellConfig(t, "")
			c.Path, c.Argv, c.Env = node, []string{"node", "-e", head + tt.script}, []string{"PATH=/bin"}
			e := new(ear)
			runSpawns(t, c, e).want(t, tt.want+"\n")
			e.want(t, tt.told...)
		})
	}
}

// TestSpawnEnds: how a process ended is what its parent learns.
func TestSpawnEnds(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]Exit{
		"true": {}, "exit 7": {Code: 7}, "exit 255": {Code: 255}, "kill -9 $$": {Signal: syscall.SIGKILL}, "kill -15 $$": {Signal: syscall.SIGTERM},
		"exec cat": {}, "exec >&-; cat; exit 4": {Code: 4}, "kill -11 $$": {Signal: syscall.SIGSEGV}, "cat & exit 5": {Code: 5},
	} {
		e := new(ear)
		run := runSpawns(t, helperConfig(t, "talk", "", "sh", "-c", script), e)
		e.wg.Wait()
		if got := e.exits(); !slices.Equal(got, []Ended{{Exit: want, Known: true}}) {
			t.Errorf("%s: ended %v, want %v; the parent: %s", script, got, want, run.stdout)
		}
	}
}

// TestSpawnLeft: what the end of the program kills is told from what the program killed.
func TestSpawnLeft(t *testing.T) {
	t.Parallel()
	for script, left := range map[string]bool{
		"p.kill(); p.wait()": false,
		"p.kill()":           false, // it is dead before the program ends, though nobody took that
		"os._exit(0)":        true,
	} {
		e := new(ear)
		runSpawns(t, pythonConfig(t, "import os\nfrom subprocess import *\np = Popen(['sleep', '60'], stdin=PIPE, stdout=PIPE)\n"+script), e)
		e.wg.Wait()
		if want := (Ended{Exit: Exit{Signal: syscall.SIGKILL}, Known: true, Left: left}); len(e.ends) != 1 || e.ends[0] != want {
			t.Errorf("%s: ended %+v, want %+v", script, e.ends, want)
		}
	}
}

// TestSpawnKilledWhileItWaits: the answer fails, and says so; nothing hangs, and others go on.
func TestSpawnKilledWhileItWaits(t *testing.T) {
	t.Parallel()
	for _, stub := range []bool{false, true} {
		e := new(ear)
		failed := make(chan error, 1)
		e.hook = func(s *Spawn) *SpawnAnswer {
			if !strings.Contains(s.Argv[2], "victim") {
				return nil
			}
			st, err := s.Streams()
			if err != nil {
				t.Error(err)
				return nil
			}
			if err := s.Signal(syscall.SIGKILL); err != nil {
				t.Error(err)
			}
			e.wg.Go(func() {
				end := <-s.Ended()
				e.mu.Lock()
				defer e.mu.Unlock()
				e.ends = append(e.ends, end)
				st.Close()
			})
			if end := <-waitGone(s); !end {
				t.Error("the process is still there")
			}
			return &SpawnAnswer{Stdio: st.Put, Stub: stub, Failed: func(err error) { failed <- err }}
		}
		c := helperConfig(t, "talks", "victim", "other")
		var lost func() int64
		c.Spawns = e
		r := run(t, c, func(j *Jail) { lost = j.SpawnsLost })
		if !strings.Contains(r.stdout, "other: said x, exit status 0") {
			t.Errorf("%q %q", r.stdout, r.stderr)
		}
		e.wg.Wait()
		select {
		case err := <-failed:
			t.Log(err)
		default:
			t.Error("nobody was told that the answer failed")
		}
		killed := Ended{Exit: Exit{Signal: syscall.SIGKILL}, Known: true}
		if !slices.Contains(e.exits(), killed) { // whoever starts it may try again
			t.Errorf("ended %v", e.ends)
		}
		if n := lost(); n != 0 {
			t.Errorf("%d spawns that could not be looked at", n)
		}
	}
}

// waitGone waits until the process of s, which was killed, is at its end.
func waitGone(s *Spawn) <-chan bool {
	out := make(chan bool, 1)
	for range 5000 {
		if isGone(s.PID) {
			out <- true
			return out
		}
		time.Sleep(time.Millisecond)
	}
	out <- false
	return out
}

func isGone(pid int) bool {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return true
	}
	defer unix.Close(fd)
	return process.IsOver(fd, 0)
}

// helperTalks talks with a shell for each argument at once.
func helperTalks(args []string) int {
	var wg sync.WaitGroup
	var mu sync.Mutex
	for _, name := range args {
		wg.Go(func() {
			cmd := exec.Command("/bin/sh", "-c", "cat; : "+name)
			cmd.Stdin = io.MultiReader(strings.NewReader("x")) // no file: a pipe
			out, err := cmd.Output()
			mu.Lock()
			defer mu.Unlock()
			var exit *exec.ExitError
			if err != nil && !errors.As(err, &exit) {
				fmt.Printf("%s: %v\n", name, err)
				return
			}
			fmt.Printf("%s: said %s, %s\n", name, out, cmd.ProcessState)
		})
	}
	wg.Wait()
	return 0
}

// TestSpawnsMany: many at once, as they are and as stubs; each hears its own, and no descriptor stays open here.
func TestSpawnsMany(t *testing.T) {
	count := long(50, 200)
	var names []string
	for i := range count {
		names = append(names, "n"+strconv.Itoa(i))
	}
	before := openFDs(t)
	for _, stub := range []bool{false, true} {
		e := new(ear)
		if stub {
			e.hook = answering(e, 0)
		}
		r := runSpawns(t, helperConfig(t, "talks", names...), e)
		e.wg.Wait()
		said := "x"
		if stub {
			said = "yes: x"
		}
		for _, name := range names {
			if want := name + ": said " + said + ", exit status 0\n"; !strings.Contains(r.stdout, want) {
				t.Errorf("stub %v: no %q in %q", stub, want, r.stdout)
				break
			}
		}
		if len(e.told) != count || len(e.ends) != count || len(e.failed) > 0 {
			t.Errorf("stub %v: told of %d, %d ended, failed: %v", stub, len(e.told), len(e.ends), e.failed)
		}
	}
	if after := openFDs(t); after > before {
		t.Errorf("%d descriptors, %d before", after, before)
	}
}

func openFDs(t testing.TB) int {
	t.Helper()
	r, w, err := os.Pipe() // the first one opens what Go's poller has
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	w.Close()
	runtime.GC()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// helperBecome executes its arguments from a thread that is not the process's first.
func helperBecome(args []string) int {
	path, err := exec.LookPath(args[1])
	if err != nil {
		path = args[1]
	}
	done := make(chan error)
	for range map[bool]int{true: 8, false: 1}[args[0] == "race"] {
		go become(done, path, args)
	}
	fmt.Println(<-done)
	return 1
}

func become(done chan<- error, path string, args []string) {
	runtime.LockOSThread()
	if unix.Gettid() == os.Getpid() { // main may run on another thread than the first, which then is held here
		go become(done, path, args)
		select {}
	}
	if args[0] == "execveat" {
		done <- execveat(path, args[1:])
		return
	}
	argv, _ := syscall.SlicePtrFromStrings(args[1:])
	p, _ := syscall.BytePtrFromString(path)
	_, _, errno := syscall.RawSyscall(syscall.SYS_EXECVE, uintptr(unsafe.Pointer(p)), uintptr(unsafe.Pointer(&argv[0])), 0)
	done <- errno
}

// execveat executes a file by its descriptor.
func execveat(path string, argv []string) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	empty, _ := unix.BytePtrFromString("")
	args, err := syscall.SlicePtrFromStrings(argv)
	if err != nil {
		return err
	}
	_, _, errno := unix.Syscall6(unix.SYS_EXECVEAT, uintptr(fd), uintptr(unsafe.Pointer(empty)), uintptr(unsafe.Pointer(&args[0])), 0, unix.AT_EMPTY_PATH, 0)
	return errno
}

// TestSpawnsTooMany: what there are no descriptors for goes on unseen, and is counted.
func TestSpawnsTooMany(t *testing.T) {
	t.Parallel()
	e := new(ear)
	c := helperConfig(t, "talks", "a", "b")
	c.Spawns = e
	var lost func() int64
	r := run(t, c, func(j *Jail) {
		lost = j.SpawnsLost
		j.table.Lock()
		defer j.table.Unlock()
		j.table.Most = 0
	})
	if !strings.Contains(r.stdout, "a: said x, exit status 0\n") || !strings.Contains(r.stdout, "b: said x, exit status 0\n") {
		t.Error(r.stdout, r.stderr)
	}
	e.want(t)
	if n := lost(); n != 2 {
		t.Errorf("%d lost", n)
	}
}

// TestSpawnDescribed: what is told is what the program gave, up to the bounds.
func TestSpawnDescribed(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 20000)
	script := "import os\nfrom subprocess import *\nos.chdir('/usr/bin')\n" +
		"run(['./cat', '', 'ä\\n', '" + long + "'], stdin=PIPE, stdout=PIPE, stderr=PIPE, env={'A': 'b=c', 'D': ''})\n" +
		"run(['/bin/true'] + ['a'] * 2000, stdin=PIPE, stdout=PIPE)\n" +
		"run(['/bin/true', 'x' * 100000, 'y' * 100000, 'z'], stdin=PIPE, stdout=PIPE)\n"
	var got []*Spawn
	e := &ear{hook: func(s *Spawn) *SpawnAnswer { got = append(got, s); return &SpawnAnswer{} }}
	runSpawns(t, pythonConfig(t, script), e).want(t, "")
	if len(got) != 3 {
		t.Fatalf("told of %q", e.told)
	}
	if s := got[0]; s.Path != "./cat" || s.Dir != "/usr/bin" || !slices.Equal(s.Argv, []string{"./cat", "", "ä\n", long}) {
		t.Errorf("%q in %q, %.200q", s.Path, s.Dir, s.Argv)
	}
	if want := []string{"A=b=c", "D="}; !slices.Equal(got[0].Env, want) {
		t.Errorf("variables %q, want %q", got[0].Env, want)
	}
	if s := got[1]; len(s.Argv) != inspect.MaxList {
		t.Errorf("%d arguments", len(s.Argv))
	}
	if s := got[2]; len(s.Argv) != 2 || len(s.Argv[1]) != 100000 {
		t.Errorf("%d arguments", len(s.Argv))
	}
}

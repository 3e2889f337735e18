package jail

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/jail/changes"
	"golang.org/x/sys/unix"
)

// TestWatchErrors: what a Watcher cannot keep fails in the program with EIO, and does not happen.
func TestWatchErrors(t *testing.T) {
	t.Parallel()
	dir := watchDir(t)
	bad := errors.New("bad")
	w := &witness{base: dir, hook: func(c *FileCall) (func() error, error) {
		switch c.Op {
		case changes.OpUnlink:
			return nil, bad
		case changes.OpTruncate:
			return func() error { return bad }, nil
		case changes.OpMode:
			return func() error { return nil }, nil
		}
		return nil, nil
	}}
	c := callsConfig(t, dir, call(unix.SYS_UNLINKAT, cwd, "file", 0), call(unix.SYS_TRUNCATE, "file", 1), call(unix.SYS_FCHMODAT, cwd, "file", 0o600), created("x"))
	c.Watch = w
	run(t, c, nil).want(t, "EIO\nEIO\nok\nok\n")
	if s := mustRead(t, filepath.Join(dir, "file")); s != "content" {
		t.Errorf("the file holds %q", s)
	}
}

// TestWatchThenHoldsUpOnlyItsCall: while a function of the Watcher runs, others' calls go on.
func TestWatchThenHoldsUpOnlyItsCall(t *testing.T) {
	t.Parallel()
	dir := watchDir(t)
	other := make(chan struct{})
	w := &witness{base: dir, hook: func(c *FileCall) (func() error, error) {
		switch c.Paths[0].Name {
		case "slow":
			return func() error { <-other; return nil }, nil
		case "other":
			close(other)
		}
		return nil, nil
	}}
	c := shellConfig(t, "echo x >slow & while [ ! -e go ]; do sleep 0.01; done; echo x >other; wait; cat slow other")
	c.Dir, c.Writable, c.Watch = dir, []string{dir}, w
	r := run(t, c, func(*Jail) { mustWrite(t, filepath.Join(dir, "go"), "") })
	r.want(t, "x\nx\n")
}

// TestWatchMany: threads and processes at once, more functions than may run at once, and signals all the while. Each call
// is told of, none twice where the kernel can hold signals off.
func TestWatchMany(t *testing.T) {
	t.Parallel()
	const processes, threads, files = 4, 8, 10
	dir := testDir(t)
	var running, most atomic.Int64
	w := &witness{base: dir, hook: func(c *FileCall) (func() error, error) {
		return func() error {
			n := running.Add(1)
			defer running.Add(-1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			return nil
		}, nil
	}}
	c := helperConfig(t, "crowd", "", strconv.Itoa(processes), strconv.Itoa(threads), strconv.Itoa(files))
	c.Dir, c.Writable, c.Watch = dir, []string{dir}, w
	run(t, c, nil).want(t, "")
	if most.Load() > changes.MaxCopies {
		t.Errorf("%d functions at once", most.Load())
	}
	var want []string
	for p := range processes {
		for th := range threads {
			for f := range files {
				want = append(want, fmt.Sprintf("open %d-%d-%d", p, th, f))
			}
		}
	}
	slices.Sort(want)
	w.mu.Lock()
	slices.Sort(w.calls)
	if !newKernel(6, 17) { // older ones may lose an answer to a signal, and ask again
		w.calls = slices.Compact(w.calls)
	}
	w.mu.Unlock()
	w.want(t, want...)
}

// helperCrowd starts itself so many times; each makes files in so many threads while it signals itself.
func helperCrowd(args []string) int {
	n := func(i int) int { n, _ := strconv.Atoi(args[i]); return n }
	if args[0] == "" {
		return crowd(n(1), args)
	}
	stop := make(chan struct{})
	go func() {
		for {
			select {
			case <-stop:
				return
			default:
				syscall.Kill(os.Getpid(), syscall.SIGURG)
			}
		}
	}()
	var wg sync.WaitGroup
	for th := range n(2) {
		wg.Go(func() {
			for f := range n(3) {
				if err := openClose(fmt.Sprintf("%s-%d-%d", args[0], th, f), createFlags|unix.O_EXCL); err != nil {
					fmt.Println(err)
				}
			}
		})
	}
	wg.Wait()
	close(stop)
	return 0
}

// crowd starts the processes as Go does, by vfork.
func crowd(n int, args []string) int {
	var started []*os.Process
	for i := range n {
		args := append([]string{"helper", strconv.Itoa(i)}, args[1:]...)
		p, err := os.StartProcess("/proc/self/exe", args, &os.ProcAttr{Env: os.Environ(), Files: []*os.File{nil, os.Stdout, os.Stderr}})
		if err != nil {
			fmt.Println(err)
			return 1
		}
		started = append(started, p)
	}
	for _, p := range started {
		p.Wait()
	}
	return 0
}

// TestWatchKilled: a program that is killed, and a jail that is closed, while a call waits.
func TestWatchKilled(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"killed", "closed"} {
		t.Run(how, func(t *testing.T) {
			dir := testDir(t)
			waiting, goOn := make(chan int, 1), make(chan struct{})
			w := &witness{base: dir, hook: func(c *FileCall) (func() error, error) {
				return func() error { waiting <- c.PID; <-goOn; return nil }, nil
			}}
			c := callsConfig(t, dir, created("x"))
			c.Watch = w
			j, err := Start(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			defer j.Close()
			if err := j.Release(); err != nil {
				t.Fatal(err)
			}
			pid := <-waiting
			if how == "killed" {
				if err := syscall.Kill(pid, syscall.SIGKILL); err != nil { // the number is ours, too
					t.Error(err)
				}
				if x, err := j.Wait(); err != nil || x.Signal != syscall.SIGKILL {
					t.Errorf("%+v %v", x, err)
				}
				close(goOn)
			} else {
				go func() { // once the program is gone, which Close sees to
					defer close(goOn)
					for syscall.Kill(pid, 0) == nil {
						time.Sleep(5 * time.Millisecond)
					}
				}()
			}
			if err := j.Close(); err != nil {
				t.Error(err)
			}
			if _, err := os.Lstat(filepath.Join(dir, "x")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the file of a call that never went on: %v", err)
			}
		})
	}
}

// TestWatchAfterStopNetwork: a program that outlives StopNetwork is watched on, and its sockets are refused on.
func TestWatchAfterStopNetwork(t *testing.T) {
	t.Parallel()
	dir := testDir(t)
	r, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	in, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	seen := &witness{base: dir}
	c := shellConfig(t, "echo ready; read x; echo y >new; cat new")
	c.Dir, c.Writable, c.Watch, c.Stdin, c.Stdout = dir, []string{dir}, seen, in, out
	j, err := Start(t.Context(), c)
	in.Close()
	out.Close()
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if err := j.Release(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(r)
	lines.ReadString('\n')
	j.StopNetwork()
	io.WriteString(w, "go\n")
	if rest, _ := io.ReadAll(lines); string(rest) != "y\n" {
		t.Errorf("%q", rest)
	}
	j.Wait()
	seen.want(t, "open new")
}

// TestWatchRaces: a path that changes in memory, and links and directories that change places, make the program's own
// changes go unseen at worst. What is told of is a name in a directory of the jail's, nothing outside is opened, and
// nothing hangs.
func TestWatchRaces(t *testing.T) {
	t.Parallel()
	dir := watchDir(t)
	if err := unix.Mkfifo(filepath.Join(dir, "fifo"), 0o644); err != nil {
		t.Fatal(err)
	}
	w := &witness{base: dir, hook: func(c *FileCall) (func() error, error) {
		for _, p := range c.Paths {
			if p.Dir >= 0 && !strings.HasPrefix(p.Path, dir+"/") {
				return nil, fmt.Errorf("told of %s", p.Path)
			}
		}
		return nil, nil
	}}
	c := helperConfig(t, "racer")
	c.Dir, c.Writable, c.Watch = dir, []string{dir}, w
	run(t, c, nil).want(t, "done\n")
}

// helperRacer writes through paths while threads of its own change where these lead to.
func helperRacer([]string) int {
	stop := make(chan struct{})
	var wg sync.WaitGroup
	spin := func(f func()) {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					f()
				}
			}
		})
	}
	spin(func() { // a link that leads into the tree, out of it, to a FIFO and into /proc
		for _, to := range []string{"sub", "/etc", "fifo", "/proc/self/root", "/proc/self/fd", ".."} {
			os.Symlink(to, "next")
			os.Rename("next", "swapped")
		}
	})
	spin(func() { unix.Renameat2(cwd, "sub", cwd, "tosub", unix.RENAME_EXCHANGE) })
	for range 500 {
		for _, path := range []string{"swapped/x", "swapped", "sub/../sub/inner", "tosub/deep/../new", "swapped/../x"} {
			if fd, err := unix.Open(path, createFlags|unix.O_NONBLOCK, 0o644); err == nil {
				unix.Close(fd)
			} else if errors.Is(err, unix.EIO) {
				fmt.Println("refused", path)
			}
		}
	}
	close(stop)
	wg.Wait()
	fmt.Println("done")
	return 0
}

package jail

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tapedeck-dev/tapedeck/internal/jail/process"
	"github.com/tapedeck-dev/tapedeck/internal/lend"
	"golang.org/x/sys/unix"
)

// An ear is a SpawnWatcher that puts its own streams into what it is told of, copies between, and keeps what passed.
type ear struct {
	hook func(*Spawn) *SpawnAnswer // instead of all that, where it returns an answer
	left bool                      // all goes on as it is, but for the hook's answers
	only string                    // the base name of the program that the hook is asked about, and nobody about others

	mu     sync.Mutex
	told   []string // "program argument argument"
	given  []string // what is told of by its input alone, which may be a matter of moments
	again  []string
	in     bytes.Buffer // all that went to standard inputs
	ends   []Ended
	failed []error
	wg     sync.WaitGroup
}

// exits are the ends, whoever ended first: a process, or soon after it the program.
func (e *ear) exits() []Ended {
	out := slices.Clone(e.ends)
	for i := range out {
		out[i].Left = false
	}
	return out
}

func (e *ear) Spawning(s *Spawn) *SpawnAnswer {
	e.mu.Lock()
	defer e.mu.Unlock()
	text := strings.Join(append([]string{filepath.Base(s.Path)}, s.Argv[min(1, len(s.Argv)):]...), " ")
	if e.only != "" && filepath.Base(s.Path) != e.only {
		return nil
	}
	if s.Again {
		e.again = append(e.again, text)
		return nil
	}
	if s.InputOnly {
		e.given = append(e.given, text)
	} else {
		e.told = append(e.told, text)
	}
	if e.hook != nil {
		if a := e.hook(s); a != nil {
			return a
		}
	}
	if e.left {
		return nil
	}
	st, err := s.Streams()
	if err != nil {
		e.failed = append(e.failed, err)
		return nil
	}
	e.relay(s, st)
	return &SpawnAnswer{Stdio: st.Put, Failed: func(err error) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.failed = append(e.failed, err)
	}}
}

// relay copies until the process and who talks with it are done.
func (e *ear) relay(s *Spawn, st *Streams) {
	e.wg.Go(func() {
		e.input(st)
		shut(st.Near[0])
	})
	for i := 1; i < 3; i++ {
		if st.Far[i] == nil || i == 2 && st.Far[2] == st.Far[1] {
			continue
		}
		e.wg.Go(func() {
			io.Copy(st.Far[i], st.Near[i])
			shut(st.Far[i])
			if st.Near[i] != st.Near[0] {
				st.Near[i].Close()
			}
		})
	}
	e.wg.Go(func() {
		end := <-s.Ended()
		e.mu.Lock()
		e.ends = append(e.ends, end)
		e.mu.Unlock()
		if st.Far[0] != st.Far[1] { // nobody reads what is still being said
			st.Far[0].Close()
		}
	})
}

// input passes on what a process is given. What it leaves in a pipe others may read.
func (e *ear) input(st *Streams) {
	in := lockedWriter{&e.mu, &e.in}
	loan, err := lend.New(st.Far[0], st.Near[0])
	if err != nil {
		io.Copy(io.MultiWriter(st.Near[0], in), st.Far[0])
		return
	}
	defer loan.Close()
	for err == nil {
		var b []byte
		b, err = loan.Pass(nil)
		in.Write(b)
	}
	st.Far[0].Close()
}

// shut ends what is written to f, which may be a socket that is read too.
func shut(f *os.File) {
	err := process.WithFD(f, func(fd int) error { return unix.Shutdown(fd, unix.SHUT_WR) })
	if errors.Is(err, unix.ENOTSOCK) {
		f.Close()
	}
}

type lockedWriter struct {
	mu *sync.Mutex
	w  io.Writer
}

func (l lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

func (e *ear) want(t testing.TB, told ...string) {
	t.Helper()
	e.wg.Wait()
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, err := range e.failed {
		t.Error(err)
	}
	if !slices.Equal(e.told, told) {
		t.Errorf("told of %q, want %q", e.told, told)
	}
}

// runSpawns runs c with a watcher of spawns.
func runSpawns(t testing.TB, c *Config, e *ear) result {
	t.Helper()
	c.Spawns = e
	return run(t, c, nil)
}

// helperTalk starts a program with pipes as Go does, by vfork: it writes its first argument to it, waits for a line if that was
// one, ends its input, and prints what the program says and how it ends.
func helperTalk(args []string) int {
	cmd := exec.Command(args[1], args[2:]...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		fmt.Println(err)
		return 1
	}
	out, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		fmt.Println(err)
		return 1
	}
	io.WriteString(in, args[0])
	lines := bufio.NewReader(out)
	if args[0] != "" {
		line, _ := lines.ReadString('\n')
		fmt.Print(line)
	}
	in.Close()
	io.Copy(os.Stdout, lines)
	err = cmd.Wait()
	fmt.Println(cmd.ProcessState, err != nil)
	return 0
}

func TestSpawnTalk(t *testing.T) {
	t.Parallel()
	e := new(ear)
	r := runSpawns(t, helperConfig(t, "talk", "hello\n", "sh", "-c", "cat; echo bye; exit 3"), e)
	r.want(t, "hello\nbye\nexit status 3 true\n")
	e.want(t, "sh -c cat; echo bye; exit 3")
	if e.in.String() != "hello\n" {
		t.Errorf("said %q", e.in.String())
	}
	if want := []Ended{{Exit: Exit{Code: 3}, Known: true}}; !slices.Equal(e.exits(), want) {
		t.Errorf("ended %v, want %v", e.ends, want)
	}
}

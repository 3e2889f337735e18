//go:build tty && linux

package tty

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/tapedeck-dev/tapedeck/axis/terminal"
	"github.com/tapedeck-dev/tapedeck/integration/run"
)

func TestMain(m *testing.M) { run.Main(m) }

// limit is how long anything may take to be shown.
const limit = 30 * time.Second

// answers are what a terminal says to the questions of programs: where the cursor is, what it is, its colours.
var answers = map[string]string{
	"\x1b[6n": "\x1b[1;1R", "\x1b[c": "\x1b[?62;22c", "\x1b[>c": "\x1b[>1;10;0c", "\x1b[?u": "\x1b[?0u",
	"\x1b]10;?\x1b\\": "\x1b]10;rgb:ffff/ffff/ffff\x1b\\", "\x1b]11;?\x1b\\": "\x1b]11;rgb:0000/0000/0000\x1b\\",
}

// An outer is the terminal of a person who runs tapedeck; the test types, looks and changes its size.
type outer struct {
	t      *testing.T
	master *os.File
	slave  *os.File
	cmd    *exec.Cmd
	before string // modes

	mu      sync.Mutex
	more    chan struct{} // closed and replaced whenever something is shown
	shown   []byte        // all of it
	seen    int           // how much of it expect has passed
	answers bool
	ended   chan error
}

// newOuter returns a terminal of 24 by 80 on which nothing runs yet.
func newOuter(t *testing.T) *outer {
	t.Helper()
	master, slave, err := pty.Open()
	if err != nil {
		t.Skip("no PTY here:", err)
	}
	master = pollable(t, master)
	o := &outer{t: t, master: master, slave: slave, more: make(chan struct{}), ended: make(chan error, 1)}
	t.Cleanup(o.close)
	o.resize(24, 80)
	return o
}

// pollable is f as a file whose Close ends a Read.
func pollable(t *testing.T, f *os.File) *os.File {
	t.Helper()
	defer f.Close()
	fd, err := syscall.Dup(int(f.Fd()))
	if err == nil {
		syscall.CloseOnExec(fd)
		err = syscall.SetNonblock(fd, true)
	}
	if err != nil {
		t.Fatal(err)
	}
	return os.NewFile(uintptr(fd), f.Name())
}

// start runs cmd as the leader of the terminal's session, on those of its streams that are not set.
func (o *outer) start(cmd *exec.Cmd) {
	o.t.Helper()
	o.startQuietly(cmd)
	go o.read()
}

// startQuietly is start for a test that looks at what is shown by itself.
func (o *outer) startQuietly(cmd *exec.Cmd) {
	o.t.Helper()
	o.before = terminal.Modes(o.slave)
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	cmd.SysProcAttr.Setsid, cmd.SysProcAttr.Setctty = true, true
	if cmd.Stdin == nil {
		cmd.Stdin = o.slave
	} else {
		cmd.SysProcAttr.Ctty = 1
	}
	if cmd.Stdout == nil {
		cmd.Stdout = o.slave
	} else if cmd.SysProcAttr.Ctty == 1 {
		cmd.SysProcAttr.Ctty = 2
	}
	if cmd.Stderr == nil {
		cmd.Stderr = o.slave
	}
	if err := cmd.Start(); err != nil {
		o.t.Fatal(err)
	}
	o.cmd = cmd
	go func() { o.ended <- cmd.Wait() }()
}

// read collects what is shown, until the terminal is closed.
func (o *outer) read() {
	buf := make([]byte, 64<<10)
	for {
		n, err := o.master.Read(buf)
		o.mu.Lock()
		o.shown = append(o.shown, buf[:n]...)
		close(o.more)
		o.more = make(chan struct{})
		answer := o.answers
		o.mu.Unlock()
		if err != nil {
			return
		}
		for question, text := range answers {
			if answer && bytes.Contains(buf[:n], []byte(question)) {
				o.master.WriteString(text)
			}
		}
	}
}

func (o *outer) close() {
	o.master.Close()
	o.slave.Close()
	if o.cmd != nil && o.cmd.ProcessState == nil {
		o.cmd.Process.Kill()
	}
}

// types writes keys, as they are.
func (o *outer) types(keys string) {
	o.t.Helper()
	if _, err := o.master.WriteString(keys); err != nil {
		o.t.Errorf("typing %q: %v", keys, err)
	}
}

func (o *outer) resize(rows, cols uint16) {
	o.t.Helper()
	if err := pty.Setsize(o.slave, &pty.Winsize{Rows: rows, Cols: cols, X: cols * 10, Y: rows * 20}); err != nil {
		o.t.Fatal(err)
	}
}

// expect waits until text is shown, after what was expected before.
func (o *outer) expect(text string) {
	o.t.Helper()
	deadline := time.After(limit)
	for {
		o.mu.Lock()
		at, more := bytes.Index(o.shown[o.seen:], []byte(text)), o.more
		if at >= 0 {
			o.seen += at + len(text)
		}
		rest := string(o.shown[o.seen:])
		o.mu.Unlock()
		if at >= 0 {
			return
		}
		select {
		case <-more:
		case <-deadline:
			o.t.Fatalf("not shown: %q\nshown since: %q", text, rest)
		}
	}
}

// rest waits until nothing was shown for a while: what a program shows in several steps is whole then.
func (o *outer) rest() {
	for {
		o.mu.Lock()
		more := o.more
		o.mu.Unlock()
		select {
		case <-more:
		case <-time.After(200 * time.Millisecond):
			return
		}
	}
}

// all is what was shown so far.
func (o *outer) all() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(o.shown)
}

// ends waits for the end of the command, wants one of these statuses, and its terminal as it was.
func (o *outer) ends(status ...int) {
	o.t.Helper()
	select {
	case err := <-o.ended:
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			o.t.Fatal(err)
		}
	case <-time.After(limit):
		o.t.Fatalf("did not end; shown: %q", o.all())
	}
	if got := o.cmd.ProcessState.ExitCode(); !slices.Contains(status, got) {
		o.t.Errorf("status %d, want %v; shown: %q", got, status, tail(o.all()))
	}
	if after := terminal.Modes(o.slave); after != o.before {
		o.t.Errorf("the terminal's modes are %s, were %s", after, o.before)
	}
	o.rest()
}

func tail(s string) string { return s[max(0, len(s)-1000):] }

// record starts `tapedeck record` of a program on a new terminal.
func record(t *testing.T, b *run.Box, argv ...string) *outer {
	t.Helper()
	o := newOuter(t)
	o.start(b.Command(append([]string{"record", "-o", b.Recording(), "--"}, argv...)...))
	return o
}

// wantGreen replays the recording and wants it to be faithful.
func wantGreen(t *testing.T, b *run.Box) {
	t.Helper()
	report, res := b.Replay()
	if res.Status != 0 || report == nil {
		t.Errorf("replay: %v", res)
	}
}

// wantRed replays another command against the recording and wants it to diverge.
func wantRed(t *testing.T, b *run.Box, argv ...string) {
	t.Helper()
	report, res := b.Replay(argv...)
	if res.Status != 2 || report == nil {
		t.Errorf("replay of %q: %v", argv, res)
	}
}

// firstOf returns the first of some programs that is here.
func firstOf(t *testing.T, names ...string) string {
	t.Helper()
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skipf("none of %s here: apt-get install %s", strings.Join(names, ", "), names[len(names)-1])
	return ""
}

// file is the content of a file, "" where there is none.
func file(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return fmt.Sprintf("(%v)", err)
	}
	return string(b)
}

// resizedTo reports whether a new size of the terminal is among what was typed.
func resizedTo(typed []terminal.Input, rows, cols int) bool {
	return slices.ContainsFunc(typed, func(in terminal.Input) bool { return in.Rows == rows && in.Cols == cols })
}

// signalChild asks the tapedeck that a shell started to stop, as a kill of another terminal would.
func signalChild(t *testing.T, o *outer) {
	t.Helper()
	pid := strconv.Itoa(o.cmd.Process.Pid)
	children := strings.Fields(file("/proc/" + pid + "/task/" + pid + "/children"))
	if len(children) != 1 {
		t.Fatalf("children %q", children)
	}
	child, err := strconv.Atoi(children[0])
	if err == nil {
		err = syscall.Kill(child, syscall.SIGTSTP)
	}
	if err != nil {
		t.Fatal(err)
	}
}

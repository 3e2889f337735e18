//go:build unix

package terminal_test

import (
	"bytes"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/term"

	"github.com/tapedeck-dev/tapedeck/axis/terminal"
)

// open returns a pseudo-terminal that is closed with the test.
func open(t *testing.T, size terminal.Size) *terminal.PTY {
	t.Helper()
	p, err := terminal.Open(size)
	if err != nil {
		t.Skip(err) // no /dev/ptmx in this sandbox
	}
	t.Cleanup(func() { p.Master.Close(); p.Slave.Close() })
	return p
}

// sizeOf returns the size that a program in p sees.
func sizeOf(t *testing.T, p *terminal.PTY) terminal.Size {
	t.Helper()
	cols, rows, err := term.GetSize(int(p.Slave.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	return terminal.Size{Rows: rows, Cols: cols}
}

func TestStreams(t *testing.T) {
	tty := open(t, terminal.Size{}).Slave
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	for _, test := range []struct {
		name string
		mode terminal.Mode
		std  [3]any
		want []int
	}{
		{"all", terminal.Auto, [3]any{tty, tty, tty}, []int{0, 1, 2}},
		{"into a pipe", terminal.Auto, [3]any{tty, w, tty}, []int{0, 2}},
		{"from a pipe", terminal.Auto, [3]any{r, tty, tty}, []int{1, 2}},
		{"no files", terminal.Auto, [3]any{nil, new(bytes.Buffer), w}, nil},
		{"on", terminal.On, [3]any{r, w, nil}, []int{0, 1, 2}},
		{"off", terminal.Off, [3]any{tty, tty, tty}, nil},
	} {
		if got := test.mode.Streams(test.std); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

func TestSize(t *testing.T) {
	p := open(t, terminal.Size{})
	if got := sizeOf(t, p); got != (terminal.Size{Rows: 24, Cols: 80}) {
		t.Errorf("by default %v", got)
	}
	want := terminal.Size{Rows: 50, Cols: 132}
	if err := p.Resize(want); err != nil || sizeOf(t, p) != want {
		t.Errorf("resized to %v, %v", sizeOf(t, p), err)
	}
	if host, size := terminal.Host([3]any{nil, p.Slave, nil}); host != p.Slave || size != want {
		t.Errorf("host of size %v", size)
	}
	for _, bad := range []terminal.Size{{Rows: -1, Cols: 80}, {Rows: 24, Cols: 1 << 16}} {
		if err := p.Resize(bad); err == nil {
			t.Errorf("resized to %v", bad)
		}
		if p, err := terminal.Open(bad); err == nil {
			t.Errorf("opened %v with %v", p, bad)
		}
	}
	if got := sizeOf(t, p); got != want {
		t.Errorf("a bad size changed it to %v", got)
	}
}

// TestProgramSeesTerminal runs a program whose stdout is the terminal.
func TestProgramSeesTerminal(t *testing.T) {
	stty, err := exec.LookPath("stty")
	if err != nil {
		t.Skip(err)
	}
	p := open(t, terminal.Size{Rows: 7, Cols: 33})
	cmd := exec.Command(stty, "size")
	cmd.Stdin, cmd.Stdout = p.Slave, p.Slave
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 100)
	if n, err := p.Master.Read(buf); string(buf[:n]) != "7 33\r\n" || err != nil {
		t.Errorf("%q, %v", buf[:n], err)
	}
}

// TestRaw sends a key that a terminal in line mode keeps for itself.
func TestRaw(t *testing.T) {
	p := open(t, terminal.Size{})
	before, err := term.GetState(int(p.Slave.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	restore, err := terminal.Raw(p.Slave)
	if err != nil {
		t.Fatal(err)
	}
	p.Master.Write([]byte{3}) // Ctrl-C
	buf := make([]byte, 10)
	if n, err := p.Slave.Read(buf); n != 1 || buf[0] != 3 || err != nil {
		t.Errorf("read %q, %v", buf[:n], err)
	}
	restore()
	if after, err := term.GetState(int(p.Slave.Fd())); err != nil || *after != *before {
		t.Errorf("not restored: %v", err)
	}
}

// TestFollow changes the size of the host's terminal. The kernel tells only the terminal's own foreground group, so the
// test sends itself the signal.
func TestFollow(t *testing.T) {
	host, p := open(t, terminal.Size{}), open(t, terminal.Size{})
	stop := p.Follow(host.Slave)
	defer stop()
	want := terminal.Size{Rows: 10, Cols: 20}
	change(t, host, want)
	for deadline := time.Now().Add(10 * time.Second); sizeOf(t, p) != want; {
		if time.Now().After(deadline) {
			t.Fatalf("size is %v", sizeOf(t, p))
		}
		time.Sleep(time.Millisecond) // an ioctl of another goroutine gives no signal
	}
	stop()
	stop()
	change(t, host, terminal.Size{Rows: 1, Cols: 1})
	if got := sizeOf(t, p); got != want {
		t.Errorf("followed after stop to %v", got)
	}
	p.Follow(nil)()
}

// change gives host a new size and returns when this process has had the signal of it.
func change(t *testing.T, host *terminal.PTY, size terminal.Size) {
	t.Helper()
	if err := host.Resize(size); err != nil {
		t.Fatal(err)
	}
	had := make(chan os.Signal, 1)
	signal.Notify(had, syscall.SIGWINCH)
	defer signal.Stop(had)
	if err := syscall.Kill(os.Getpid(), syscall.SIGWINCH); err != nil {
		t.Fatal(err)
	}
	<-had
}

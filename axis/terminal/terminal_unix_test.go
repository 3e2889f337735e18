//go:build unix

package terminal_test

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
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
		t.Skip("stty is what the test runs: ", err)
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

// modes returns what of p's terminal Take changes.
func modes(t *testing.T, p *terminal.PTY) string {
	t.Helper()
	m := terminal.Modes(p.Slave)
	if m == "" {
		t.Fatal("a terminal without modes")
	}
	return m
}

// TestTake sends a key that a terminal in line mode keeps for itself, and writes an end of a line as a program's terminal does.
func TestTake(t *testing.T) {
	p := open(t, terminal.Size{})
	before := modes(t, p)
	c := terminal.NewCaller([3]any{p.Slave, nil, nil})
	defer c.Close()
	if c.Keys != p.Slave || !c.Foreground() {
		t.Errorf("keys from %v", c.Keys)
	}
	w := c.Writer(p.Slave)
	for range 2 { // the second has nothing to do
		if err := c.Take(true); err != nil {
			t.Fatal(err)
		}
	}
	p.Master.Write([]byte{3}) // Ctrl-C
	buf := make([]byte, 10)
	if n, err := p.Slave.Read(buf); n != 1 || buf[0] != 3 || err != nil {
		t.Errorf("read %q, %v", buf[:n], err)
	}
	shows(t, p, w, "one\r\n", "one\r\n")
	c.Release(false)
	if after := modes(t, p); after != before {
		t.Errorf("left as %s, was %s", after, before)
	}
	shows(t, p, w, "two\r\n", "two\r\n")
	shows(t, p, w, "half\r", "half")
	shows(t, p, w, "\nmore\r", "\r\nmore")
	shows(t, p, w, "over\r\n", "\rover\r\n")
}

// shows writes to the terminal and wants to see it so.
func shows(t *testing.T, p *terminal.PTY, w io.Writer, text, want string) {
	t.Helper()
	if n, err := io.WriteString(w, text); n != len(text) || err != nil {
		t.Fatal(n, err)
	}
	buf := make([]byte, len(want)) // a terminal may give it in pieces
	if n, err := io.ReadFull(p.Master, buf); string(buf) != want || err != nil {
		t.Errorf("%q is shown as %q, %v", text, buf[:n], err)
	}
}

// TestTakeDeaf has a terminal answer a question that nobody asked now.
func TestTakeDeaf(t *testing.T) {
	p := open(t, terminal.Size{})
	before := modes(t, p)
	c := terminal.NewCaller([3]any{nil, p.Slave, nil})
	defer c.Close()
	if err := c.TakeDeaf(); err != nil {
		t.Fatal(err)
	}
	p.Master.Write([]byte("\x1b[1;1R\n"))
	shows(t, p, p.Slave, "shown", "shown") // and no echo before it
	c.Release(true)
	if after := modes(t, p); after != before {
		t.Errorf("left as %s, was %s", after, before)
	}
	p.Master.Write([]byte("next\n"))
	buf := make([]byte, 20)
	if n, err := p.Slave.Read(buf); string(buf[:n]) != "next\n" || err != nil {
		t.Errorf("the next reader gets %q, %v", buf[:n], err)
	}
}

// TestModes gives one terminal the modes of another.
func TestModes(t *testing.T) {
	p, q := open(t, terminal.Size{}), open(t, terminal.Size{})
	if err := terminal.NewCaller([3]any{p.Slave, nil, nil}).Take(true); err != nil {
		t.Fatal(err)
	}
	want := modes(t, p)
	if modes(t, q) == want {
		t.Fatal("a raw terminal is as another")
	}
	if err := q.SetModes(want); err != nil || modes(t, q) != want {
		t.Errorf("%s, %v, want %s", modes(t, q), err, want)
	}
	for _, bad := range []string{"1", "1:2:3:4", "1:2:3:4:00", "x:2:3:4" + want[strings.LastIndexByte(want, ':'):]} {
		if err := q.SetModes(bad); err == nil {
			t.Errorf("%q are modes", bad)
		}
	}
	if err := q.SetModes(""); err != nil || modes(t, q) != want {
		t.Errorf("no modes change them: %v", err)
	}
}

// TestFollow changes the size of the host's terminal. The kernel tells only the terminal's own foreground group, so the
// test sends itself the signal.
func TestFollow(t *testing.T) {
	host := open(t, terminal.Size{})
	sizes := make(chan terminal.Size, 8) // a size may be told twice, where two signals come close together
	stop := terminal.Follow(host.Slave, func(s terminal.Size) { sizes <- s })
	defer stop()
	want := terminal.Size{Rows: 10, Cols: 20, Width: 200, Height: 300}
	change(t, host, want)
	if got := <-sizes; got != want {
		t.Errorf("size is %v", got)
	}
	change(t, host, terminal.Size{}) // is none
	change(t, host, want)
	if got := <-sizes; got != want {
		t.Errorf("size is %v", got)
	}
	stop()
	stop()
	for len(sizes) > 0 {
		<-sizes
	}
	change(t, host, terminal.Size{Rows: 1, Cols: 1})
	select {
	case got := <-sizes:
		t.Errorf("followed after stop to %v", got)
	default:
	}
	terminal.Follow(nil, nil)()
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

// TestSettle waits for a reader that has not shown yet what the program wrote, and for one that never does no longer than said.
func TestSettle(t *testing.T) {
	p := open(t, terminal.Size{})
	typist := terminal.NewTypist()
	p.Slave.WriteString("left")
	begun := time.Now()
	typist.Settle(p, 100*time.Millisecond)
	if d := time.Since(begun); d < 100*time.Millisecond {
		t.Errorf("settled after %v with output unread", d)
	}
	buf := make([]byte, 10)
	n, _ := p.Master.Read(buf)
	typist.Write(buf[:n])
	begun = time.Now()
	typist.Settle(p, time.Hour)
	if d := time.Since(begun); d > time.Minute {
		t.Errorf("settled after %v", d)
	}
}

//go:build linux || darwin

package terminal_test

import (
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/terminal"
)

// A person is who sits before a terminal: reads what is shown, and types.
type person struct {
	p *terminal.PTY

	mu    sync.Mutex
	more  *sync.Cond
	shown strings.Builder
}

func newPerson(t *testing.T, size terminal.Size) *person {
	t.Helper()
	o := &person{p: open(t, size)}
	o.more = sync.NewCond(&o.mu)
	go func() { // until the terminal is closed
		buf := make([]byte, 4096)
		for {
			n, err := o.p.Master.Read(buf)
			o.mu.Lock()
			o.shown.Write(buf[:n])
			o.more.Broadcast()
			o.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return o
}

// sees waits until text was shown.
func (o *person) sees(text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for !strings.Contains(o.shown.String(), text) {
		o.more.Wait()
	}
}

func (o *person) types(keys string) { o.p.Master.WriteString(keys) }

// TestAttach has a person use a session: keys, a new size, a signal, the end. Its terminal is as it was then.
func TestAttach(t *testing.T) {
	o := newPerson(t, terminal.Size{Rows: 20, Cols: 70})
	before := modes(t, o.p)
	k := new(kept)
	std := [3]any{o.p.Slave, o.p.Slave, o.p.Slave}
	caller := terminal.NewCaller(std)
	size, _ := caller.Size()
	s := start(t, &terminal.SessionOptions{Keeper: k, Size: size, Mute: true, Output: caller.Writer(o.p.Slave)},
		`stty size; trap 'stty size' WINCH; trap 'echo term' TERM; n=0; while [ $n -lt 2 ]; do read x && n=$((n+1)) && echo "got $x"; done; exit 5`)
	signals := make(chan os.Signal, 1)
	ended := make(chan terminal.Exit)
	go func() {
		exit, err := s.Attach(&terminal.AttachOptions{Std: std, Caller: caller, Signals: signals})
		if err != nil {
			t.Error(err)
		}
		ended <- exit
	}()
	o.sees("20 70\r\n")
	for modes(t, o.p) == before { // what is typed before the caller's terminal is raw passes as lines
		time.Sleep(time.Millisecond)
	}
	o.types("one\r")
	o.sees("one\r\ngot one\r\n")
	change(t, o.p, terminal.Size{Rows: 21, Cols: 71})
	o.sees("21 71\r\n")
	signals <- syscall.SIGTERM
	o.sees("term\r\n")
	o.types("two\r")
	if exit := <-ended; exit.Code != 5 {
		t.Errorf("%+v", exit)
	}
	o.sees("got two\r\n")
	if after := modes(t, o.p); after != before {
		t.Errorf("left as %s, was %s", after, before)
	}
	if want := "\"one\\r\" \n21x71\nSIGTERM\n\"two\\r\" "; k.String() != want {
		t.Errorf("kept %q, want %q", k, want)
	}
	o.types("next\n")
	buf := make([]byte, 20)
	if n, err := o.p.Slave.Read(buf); string(buf[:n]) != "next\n" {
		t.Errorf("the next reader gets %q, %v", buf[:n], err)
	}
}

// TestAttachHangUp takes the person's terminal away.
func TestAttachHangUp(t *testing.T) {
	o := newPerson(t, terminal.Size{})
	std := [3]any{o.p.Slave, o.p.Slave, o.p.Slave}
	caller := terminal.NewCaller(std)
	s := start(t, &terminal.SessionOptions{Output: caller.Writer(o.p.Slave), Mute: true}, "echo ready; sleep 60")
	signals := make(chan os.Signal, 1)
	signals <- syscall.SIGHUP
	if exit, _ := s.Attach(&terminal.AttachOptions{Std: std, Caller: caller, Signals: signals}); exit.Signal != "SIGHUP" {
		t.Errorf("%+v", exit)
	}
}

// TestAttachPipe types what stdin holds, and its end.
func TestAttachPipe(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	io.WriteString(w, "one\nhalf")
	w.Close()
	for name, in := range map[string]any{"a pipe": r, "a reader": strings.NewReader("one\nhalf"), "nothing": nil} {
		var out strings.Builder
		script := "stty -echo; cat; exit 3"
		if in == nil {
			script = "echo one; printf half; exit 3"
		}
		s := start(t, &terminal.SessionOptions{Output: &out, Blind: true}, script)
		exit, err := s.Attach(&terminal.AttachOptions{Std: [3]any{in, nil, nil}})
		if exit.Code != 3 || err != nil || !strings.HasSuffix(out.String(), "one\r\nhalf") {
			t.Errorf("%s: %+v, %v, %q", name, exit, err, out.String())
		}
	}
}

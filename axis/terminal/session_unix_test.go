//go:build linux || darwin

package terminal_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/terminal"
)

// start runs a script of sh on a terminal.
func start(t *testing.T, o *terminal.SessionOptions, script string) *terminal.Session {
	t.Helper()
	if o == nil {
		o = new(terminal.SessionOptions)
	}
	o.Argv = []string{"sh", "-c", script}
	s, err := terminal.StartSession(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// until waits for the first of some things and fails the test where it does not come.
func until(t *testing.T, s *terminal.Session, any ...terminal.Until) *terminal.Screen {
	t.Helper()
	_, screen, err := s.WaitFor(t.Context(), any...)
	if err != nil {
		t.Fatal(err)
	}
	return screen
}

// ends waits for the end and wants a status.
func ends(t *testing.T, s *terminal.Session, code int) terminal.Exit {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	exit, err := s.Wait(ctx)
	if err != nil || exit.Code != code {
		t.Fatalf("ended with %+v, %v, want status %d; %v", exit, err, code, s.Screen())
	}
	return exit
}

// kept is a Keeper that keeps everything, one line an event.
type kept struct {
	mu     sync.Mutex
	output bytes.Buffer
	events []string
}

func (k *kept) add(format string, args ...any) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.events = append(k.events, fmt.Sprintf(format, args...))
	return nil
}

// Output implements terminal.Keeper.
func (k *kept) Output(p []byte) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.output.Write(p)
	return nil
}

// Input implements terminal.Keeper.
func (k *kept) Input(p []byte, key string) error { return k.add("%q %s", p, key) }

// Resize implements terminal.Keeper.
func (k *kept) Resize(s terminal.Size) error { return k.add("%dx%d", s.Rows, s.Cols) }

// Signal implements terminal.Keeper.
func (k *kept) Signal(name string) error { return k.add("%s", name) }
func (k *kept) NoEcho(on bool) error     { return k.add("no echo %v", on) }

func (k *kept) String() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return strings.Join(k.events, "\n")
}

// TestSession looks at what a program finds on its terminal, types, changes its size, and sees all of it kept.
func TestSession(t *testing.T) {
	t.Setenv("SEEN", "caller's")
	t.Setenv("UNSEEN", "x")
	k := new(kept)
	s := start(t, &terminal.SessionOptions{
		Keeper: k, Dir: "/", Size: terminal.Size{Rows: 10, Cols: 40}, Env: []string{"PATH", "SEEN", "GIVEN=1", "GIVEN=2"},
	}, `pwd; stty size; echo "$SEEN/$UNSEEN/$GIVEN/$TERM"; printf 'name? '; read x; stty size; echo "it is $x"; exit 3`)
	screen := until(t, s, terminal.Text("name? "))
	if want := "/\n10 40\ncaller's//2/xterm-256color\nname?"; screen.Text() != want {
		t.Errorf("the screen is %q, want %q", screen.Text(), want)
	}
	if err := s.Resize(terminal.Size{Rows: 12, Cols: 50}); err != nil {
		t.Error(err)
	}
	if err := s.Type("ada\n"); err != nil {
		t.Error(err)
	}
	screen = until(t, s, terminal.Exited())
	if screen.Size != (terminal.Size{Rows: 12, Cols: 50}) || !screen.Contains("12 50\nit is ada") {
		t.Error(screen)
	}
	exit := ends(t, s, 3)
	if exit.Signal != "" || exit.Killed || exit.Held || exit.Duration <= 0 {
		t.Errorf("%+v", exit)
	}
	if want := "12x50\n\"ada\\r\" "; k.String() != want || !strings.HasSuffix(k.output.String(), "it is ada\r\n") {
		t.Errorf("kept %q, %q, want %q", k, k.output.String(), want)
	}
	if err := s.Type("x"); err == nil {
		t.Error("a program that has ended is typed into")
	}
}

// TestWaitFor waits for one thing of several, for what is not there, and for what cannot come any more.
func TestWaitFor(t *testing.T) {
	s := start(t, nil, "echo one; seq 100; echo two; read x; echo three; exit 1")
	came, _, err := s.WaitFor(t.Context(), terminal.Text("never"), terminal.Regexp(regexp.MustCompile(`(?m)^t.o$`)), terminal.Exited())
	if came != 1 || err != nil {
		t.Fatal(came, err)
	}
	until(t, s, terminal.Text("one")) // which has scrolled off
	until(t, s, terminal.Gone("one"))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, _, err = s.WaitFor(ctx, terminal.Text("three"), terminal.When("a title", func(s *terminal.Screen) bool { return s.Title != "" }))
	var late *terminal.TimeoutError
	if !errors.As(err, &late) || !errors.Is(err, context.DeadlineExceeded) || late.Screen.Row(22) != "two" {
		t.Errorf("%#v", err)
	}
	for _, want := range []string{`for the text "three" or a title`, "screen of 24 by 80, cursor at row 23, column 0", "| two"} {
		if err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
	s.Key("enter")
	_, _, err = s.WaitFor(t.Context(), terminal.Text("four"))
	var ended *terminal.EndedError
	if !errors.As(err, &ended) || ended.Exit.Code != 1 || !ended.Screen.Contains("three") {
		t.Errorf("%#v", err)
	}
	if _, _, err := s.WaitFor(t.Context()); err == nil {
		t.Error("waited for nothing")
	}
}

// TestSettled waits for a screen that is drawn in steps, within synchronised output, and with a sequence that stays open.
func TestSettled(t *testing.T) {
	s := start(t, nil, `printf 'a'; sleep 0.05; printf 'b'; sleep 0.05; printf 'c'; read x
		printf '\033[?2026hd'; sleep 0.6; printf 'e\033[?2026l'; read x; printf 'f\033[3'; sleep 0.6; printf '1mg'; read x`)
	for _, want := range []string{"abc", "de", "fg"} {
		if screen := until(t, s, terminal.Settled(400*time.Millisecond)); !strings.HasSuffix(screen.Text(), want) {
			t.Errorf("%q, want %q at the end", screen.Text(), want)
		}
		s.Key("enter")
	}
	ends(t, s, 0)
}

// TestKeyModes types into programs that turned modes of their terminal on.
func TestKeyModes(t *testing.T) {
	k := new(kept)
	s := start(t, &terminal.SessionOptions{Keeper: k}, `stty raw -echo; printf 'ready'; dd bs=1 count=17 >/dev/null 2>&1
		printf '\033[?1;1004;1000;2004hmodes'; dd bs=1 count=41 >/dev/null 2>&1; printf '\033[?1002;1006hsgr'; dd bs=1 count=33 >/dev/null 2>&1`)
	until(t, s, terminal.Text("ready"))
	for _, err := range []error{s.Focus(true), s.Mouse(terminal.Mouse{})} {
		if !errors.Is(err, terminal.ErrNotAsked) {
			t.Error(err)
		}
	}
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	do(s.Key("up", "ctrl-c", "alt-x", "F5"))
	do(s.Paste("a\nb\ncd"))
	until(t, s, terminal.Text("modes"))
	do(s.Key("up", "shift-up"))
	do(s.Paste("a\nb"))
	do(s.Focus(true))
	do(s.Focus(false))
	do(s.Click(1, 2))
	until(t, s, terminal.Text("sgr"))
	do(s.Mouse(terminal.Mouse{Button: terminal.Right, Row: 4, Col: 9, Ctrl: true}))
	do(s.Mouse(terminal.Mouse{Button: terminal.Left, Action: terminal.Move, Row: 4, Col: 9}))
	do(s.Mouse(terminal.Mouse{Button: terminal.WheelDown, Row: 23, Col: 79}))
	if err := s.Mouse(terminal.Mouse{Button: terminal.None, Action: terminal.Move}); !errors.Is(err, terminal.ErrNotAsked) {
		t.Error(err)
	}
	if err := s.Mouse(terminal.Mouse{Row: 24}); err == nil {
		t.Error("a mouse below the screen")
	}
	ends(t, s, 0)
	want := `"\x1b[A" up
"\x03" ctrl-c
"\x1bx" alt-x
"\x1b[15~" f5
"a\rb\rcd" paste
"\x1bOA" up
"\x1b[1;2A" shift-up
"\x1b[200~a\rb\x1b[201~" paste
"\x1b[I" focus-in
"\x1b[O" focus-out
"\x1b[M #\"" mouse
"\x1b[M##\"" mouse
"\x1b[<18;10;5M" mouse
"\x1b[<32;10;5M" mouse
"\x1b[<65;80;24M" mouse`
	if k.String() != want {
		t.Errorf("typed:\n%s\nwant:\n%s", k, want)
	}
}

// TestAnswers has a program ask where the cursor is, which the screen answers unless another terminal does.
func TestAnswers(t *testing.T) {
	script := `stty raw -echo; printf 'ab\033[6n'; dd bs=1 count=6 2>/dev/null | od -An -c; stty sane`
	k := new(kept)
	s := start(t, &terminal.SessionOptions{Keeper: k}, script)
	screen := until(t, s, terminal.Exited())
	if !screen.Contains("033   [   1   ;   3   R") || k.String() != `"\x1b[1;3R" reply` {
		t.Errorf("%v\n%s", screen, k)
	}
	s = start(t, &terminal.SessionOptions{Mute: true}, script)
	until(t, s, terminal.Text("ab"))
	s.Type("\x1b[9;9R")
	if screen := until(t, s, terminal.Exited()); !screen.Contains("033   [   9   ;   9   R") {
		t.Error(screen)
	}
}

// TestSignals sends signals to a program and to the job that it has in the foreground.
func TestSignals(t *testing.T) {
	k := new(kept)
	s := start(t, &terminal.SessionOptions{Keeper: k}, `trap 'echo term' TERM; echo on; while :; do sleep 60 & wait; done`)
	until(t, s, terminal.Text("on"))
	s.Signal(syscall.SIGTERM)
	until(t, s, terminal.Text("term"))
	s.Signal(syscall.SIGKILL)
	exit := ends(t, s, 137)
	if exit.Signal != "SIGKILL" || k.String() != "SIGTERM\nSIGKILL" {
		t.Errorf("%+v, kept %q", exit, k)
	}
	s = start(t, nil, `set -m; trap 'echo shell' INT; sh -c 'trap "echo job; exit 0" INT; echo on; sleep 60 & until wait; do :; done'; echo ended`)
	until(t, s, terminal.Text("on"))
	s.Signal(syscall.SIGINT)
	if screen := until(t, s, terminal.Exited()); !strings.Contains(screen.Text(), "job\nended") || screen.Contains("shell") {
		t.Error(screen)
	}
}

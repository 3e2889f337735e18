//go:build linux || darwin

package terminal_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/terminal"
)

// init has programs end by SIGHUP where nohup started the tests, too: what is ignored is passed on to them, and what is caught is not.
func init() {
	if signal.Ignored(syscall.SIGHUP) {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
}

// TestBurstAtExit has programs write much and end at once, some in the midst of a line or a sequence: every byte arrives.
func TestBurstAtExit(t *testing.T) {
	for range 10 {
		var out bytes.Buffer
		s := start(t, &terminal.SessionOptions{Output: &out}, `head -c 300000 /dev/zero | tr '\0' x; printf 'the end\033[3'`)
		screen := until(t, s, terminal.Exited())
		if want := 300000 + len("the end\x1b[3"); out.Len() != want || !strings.HasSuffix(out.String(), "x"+"the end\x1b[3") {
			t.Fatalf("%d bytes, want %d", out.Len(), want)
		}
		if !screen.Contains("xthe end") {
			t.Fatal(screen)
		}
	}
}

// TestEndInRedraw ends a program that draws on the alternate screen, in synchronised output: the screen is as it left it.
func TestEndInRedraw(t *testing.T) {
	s := start(t, nil, `printf 'before\033[?1049h\033[H\033[2J\033[?2026hhalf a pic'; exit 4`)
	if screen := until(t, s, terminal.Settled(time.Hour), terminal.Exited()); !screen.Alt || screen.Row(0) != "half a pic" {
		t.Error(screen)
	}
	ends(t, s, 4)
}

// TestHangUpIgnored closes a program that ignores SIGHUP, and one that takes it as a reason to say goodbye.
func TestHangUpIgnored(t *testing.T) {
	s := start(t, &terminal.SessionOptions{Grace: 100 * time.Millisecond}, `trap '' HUP; echo on; while :; do sleep 60; done`)
	until(t, s, terminal.Text("on"))
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if exit := ends(t, s, 137); !exit.Killed || exit.Signal != "SIGKILL" {
		t.Errorf("%+v", exit)
	}
	var out bytes.Buffer
	s = start(t, &terminal.SessionOptions{Output: &out}, `trap 'echo bye; exit 5' HUP; echo on; sleep 60 & wait`)
	until(t, s, terminal.Text("on"))
	s.Close()
	if exit := ends(t, s, 5); exit.Killed || !strings.HasSuffix(out.String(), "bye\r\n") {
		t.Errorf("%+v, %q", exit, out.String())
	}
}

// TestCancel ends the context of a session.
func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s, err := terminal.StartSession(ctx, &terminal.SessionOptions{Argv: []string{"sleep", "60"}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Wait(canceled()); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	cancel()
	if exit := ends(t, s, 129); exit.Signal != "SIGHUP" || exit.Killed {
		t.Errorf("%+v", exit)
	}
}

func canceled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// TestHeld leaves jobs in the background that hold the terminal: one that is quiet, one that goes on printing. What the first
// prints soon after the program's end is read.
func TestHeld(t *testing.T) {
	var out bytes.Buffer
	s := start(t, &terminal.SessionOptions{Output: &out, Quiet: 400 * time.Millisecond},
		`trap '' HUP; (sleep 0.1; echo soon; sleep 60) & echo ended`)
	begun := time.Now()
	if exit := ends(t, s, 0); !exit.Held || out.String() != "ended\r\nsoon\r\n" {
		t.Errorf("%+v, %q", exit, out.String())
	}
	if d := time.Since(begun); d > 20*time.Second {
		t.Errorf("it took %v", d)
	}
	s = start(t, &terminal.SessionOptions{Output: io.Discard, Grace: 200 * time.Millisecond, Blind: true},
		`trap '' HUP; (while echo more; do :; done) & sleep 0.1`)
	if exit := ends(t, s, 0); !exit.Held {
		t.Errorf("%+v", exit)
	}
}

// TestBlind has a session without a screen.
func TestBlind(t *testing.T) {
	s := start(t, &terminal.SessionOptions{Blind: true}, "read x; exit $x")
	if _, _, err := s.WaitFor(t.Context(), terminal.Text("x")); err == nil || !strings.Contains(err.Error(), terminal.ErrNoScreen.Error()) {
		t.Error(err)
	}
	s.Type("6\n")
	until(t, s, terminal.Exited())
	ends(t, s, 6)
}

// TestOutputFails goes on where nobody takes the output any more, and says so in the end.
func TestOutputFails(t *testing.T) {
	r, w := io.Pipe()
	r.Close()
	s := start(t, &terminal.SessionOptions{Output: w}, "echo one; echo two")
	until(t, s, terminal.Text("two"))
	if _, err := s.Wait(t.Context()); !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
}

// A slowWriter holds up who writes to it until it is released.
type slowWriter struct {
	release chan struct{}
	n       atomic.Int64
}

// Write implements io.Writer.
func (w *slowWriter) Write(p []byte) (int, error) {
	<-w.release
	w.n.Add(int64(len(p)))
	return len(p), nil
}

// TestSlowOutput has who takes the output take it late, after the program has ended: all of it is there.
func TestSlowOutput(t *testing.T) {
	w := &slowWriter{release: make(chan struct{})}
	s := start(t, &terminal.SessionOptions{Output: w, Quiet: time.Millisecond, Grace: time.Millisecond}, "seq 300")
	time.AfterFunc(300*time.Millisecond, func() { close(w.release) })
	ends(t, s, 0)
	if want := int64(9*3 + 90*4 + 201*5); w.n.Load() != want {
		t.Errorf("%d bytes, want %d", w.n.Load(), want)
	}
}

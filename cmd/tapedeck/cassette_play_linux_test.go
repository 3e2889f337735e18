package main

import (
	"bytes"
	"context"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/terminal"
	"github.com/tapedeck-dev/tapedeck/cassette"
)

// playable is a cassette that turns modes on and then waits for an hour.
func playable(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "c")
	var now time.Duration
	r, err := cassette.Create(dir, &cassette.CreateOptions{FrameEvery: -1, Clock: func() time.Duration { return now },
		Terminal: cassette.Terminal{InitialRows: 30, InitialCols: 100}})
	if err != nil {
		t.Fatal(err)
	}
	r.Output([]byte("\x1b[?1049h\x1b[?2004h\x1b[?25l\x1b[chello"))
	now = time.Hour
	r.Output([]byte("the end"))
	if _, err := r.Finish(&cassette.Final{}); err != nil {
		t.Fatal(err)
	}
	return dir
}

// watched is a terminal on which something is played.
type watched struct {
	p     *terminal.PTY
	shown bytes.Buffer
}

// until reads what is shown until it holds text.
func (w *watched) until(t *testing.T, text string) {
	t.Helper()
	buf := make([]byte, 4096)
	for !strings.Contains(w.shown.String(), text) {
		n, err := w.p.Master.Read(buf)
		if err != nil {
			t.Fatalf("%v after %q", err, w.shown.String())
		}
		w.shown.Write(buf[:n])
	}
}

// TestPlayOnATerminal: keys are heard while it plays, and in the end the terminal is as it was, whatever was turned on.
func TestPlayOnATerminal(t *testing.T) {
	dir := playable(t)
	t.Chdir(t.TempDir())
	p, err := terminal.Open(terminal.Size{Rows: 24, Cols: 80})
	if err != nil {
		t.Skip(err)
	}
	before := terminal.Modes(p.Slave)
	ended := make(chan int, 1)
	go func() {
		ended <- run(context.Background(), []string{"cassette", "play", dir}, streams{p.Slave, p.Slave, p.Slave})
		p.Slave.Close()
	}()
	w := &watched{p: p}
	w.until(t, "hello")
	if during := terminal.Modes(p.Slave); during == before {
		t.Error("the terminal's modes are the same while it plays: keys are not heard as they come")
	}
	p.Master.Write([]byte("\x1b[?62;22c \x1b[Cq")) // an answer of the terminal, pause, on, quit
	w.until(t, "\x1b[?1049l")
	rest := make(chan string)
	go func() { b, _ := io.ReadAll(p.Master); rest <- string(b) }()
	select {
	case status := <-ended:
		if status != 0 {
			t.Errorf("status %d", status)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("q does not quit")
	}
	all := w.shown.String() + <-rest
	for _, want := range []string{"had up to 30 rows and 100 columns, this one has 24 and 80", "\x1b[?2004l", "\x1b[?25h"} {
		if !strings.Contains(all, want) {
			t.Errorf("%q does not hold %q", all, want)
		}
	}
	if strings.Contains(all, "\x1b[c") {
		t.Errorf("%q asks the terminal something", all)
	}
}

// TestPlayGivesTheTerminalBack: its modes are the old ones, also when it is interrupted.
func TestPlayGivesTheTerminalBack(t *testing.T) {
	dir := playable(t)
	t.Chdir(t.TempDir())
	p, err := terminal.Open(terminal.Size{Rows: 40, Cols: 120})
	if err != nil {
		t.Skip(err)
	}
	defer p.Master.Close()
	defer p.Slave.Close()
	before := terminal.Modes(p.Slave)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"cassette", "play", dir}, streams{p.Slave, p.Slave, p.Slave})
	}()
	w := &watched{p: p}
	w.until(t, "hello")
	cancel()
	go io.Copy(io.Discard, p.Master) // who waits for the output to be drained
	if status := <-ended; status != 130 {
		t.Errorf("status %d, want 130", status)
	}
	if after := terminal.Modes(p.Slave); after != before {
		t.Errorf("modes %s, before %s", after, before)
	}
}

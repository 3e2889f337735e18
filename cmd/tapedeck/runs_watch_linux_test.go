package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/terminal"
	"github.com/tapedeck-dev/tapedeck/internal/vt"
)

// A traceFile is the trace of a run that goes on, as a daemon writes it.
type traceFile struct {
	t     *testing.T
	f     *os.File
	turns int
}

// newTrace begins a run in a data directory.
func newTrace(t *testing.T, data, run, intent string) *traceFile {
	t.Helper()
	dir := filepath.Join(data, "runs", "name:pi")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(dir, run+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	tr := &traceFile{t: t, f: f}
	tr.line(`{"record":"started","run_id":%q,"agent_id":"name:pi","intent":%s,"started_at":%q}`, run, intent, time.Now().UTC().Format(time.RFC3339Nano))
	return tr
}

func (tr *traceFile) line(format string, args ...any) {
	tr.t.Helper()
	if _, err := fmt.Fprintf(tr.f, format+"\n", args...); err != nil {
		tr.t.Fatal(err)
	}
}

// turn appends a turn; rest are its keys behind the tool.
func (tr *traceFile) turn(tool, rest string) {
	tr.t.Helper()
	tr.line(`{"record":"turn","index":%d,"tool":%q,%s,"verifier_verdict":"not_run"}`, tr.turns, tool, rest)
	tr.turns++
}

func (tr *traceFile) end() {
	tr.t.Helper()
	tr.line(`{"record":"ended","status":"completed","outcome":{"status":"success","summary":"All is well."},"ended_at":%q}`, time.Now().UTC().Format(time.RFC3339Nano))
}

// watching starts runs watch on a terminal.
func watching(t *testing.T, size terminal.Size, env []string, args ...string) *terminal.Session {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s, err := terminal.StartSession(context.Background(), &terminal.SessionOptions{
		Argv: append([]string{exe, "runs", "watch"}, args...), Env: append([]string{"PATH", "HOME"}, env...), Size: size,
	})
	if err != nil {
		t.Skipf("no pseudo-terminal here: %v", err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// sees waits for a text on the screen.
func sees(t *testing.T, s *terminal.Session, texts ...string) *terminal.Screen {
	t.Helper()
	var scr *terminal.Screen
	for _, text := range texts {
		var err error
		if _, scr, err = s.WaitFor(context.Background(), terminal.Text(text)); err != nil {
			t.Fatal(err)
		}
	}
	return scr
}

// ends waits for the end of the program.
func ends(t *testing.T, s *terminal.Session, status int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if exit, err := s.Wait(ctx); err != nil || exit.Code != status {
		t.Fatalf("%+v, %v; on the screen:\n%s", exit, err, s.Screen())
	}
}

// fits fails where a row is wider than the terminal, or a control character of the run is obeyed.
func fits(t *testing.T, scr *terminal.Screen) {
	t.Helper()
	for _, row := range scr.Rows {
		if vt.StringWidth(row) > scr.Size.Cols {
			t.Errorf("%q is wider than %d", row, scr.Size.Cols)
		}
	}
	if scr.Title != "" {
		t.Errorf("the run set the terminal's title to %q", scr.Title)
	}
}

const nasty = `"fix \u001b]0;mine\u0007 日本語 it"`

// TestWatchOnATerminal: turns come, the newest is shown whole, keys choose another, the terminal's size is followed; nothing that
// a run holds steers the terminal; in the end the last picture stands on the terminal's own screen.
func TestWatchOnATerminal(t *testing.T) {
	for _, cols := range []int{40, 120} {
		t.Run(fmt.Sprint(cols), func(t *testing.T) {
			data := t.TempDir()
			tr := newTrace(t, data, "r1", nasty)
			s := watching(t, terminal.Size{Rows: 20, Cols: cols}, nil, "--data", data)
			fits(t, sees(t, s, `fix \x1b]0;mine`))
			tr.turn("read_file", `"parameters":{"path":"a.go"},"output":"one\u001b[2J\ntwo 日本語日本語日本語日本語日本語"`)
			tr.turn("bash", `"parameters":{"command":"rm -rf /"},"policy_rejected":{"rule":"no_rm","param":"command","reason":"no"}`)
			scr := sees(t, s, "rejected", "no_rm (command): no", "2 turns")
			fits(t, scr)
			if !scr.Alt {
				t.Error("it is not on a screen of its own")
			}
			if err := s.Key("up"); err != nil {
				t.Fatal(err)
			}
			scr = sees(t, s, `── 0 read_file`, `one\x1b[2J`)
			fits(t, scr)
			if err := s.Resize(terminal.Size{Rows: 16, Cols: 60}); err != nil {
				t.Fatal(err)
			}
			_, scr, err := s.WaitFor(context.Background(), terminal.When("60 columns", func(scr *terminal.Screen) bool {
				return scr.Size.Cols == 60 && scr.Row(3) == strings.Repeat("─", 60)
			}))
			if err != nil {
				t.Fatal(err)
			}
			fits(t, scr)
			tr.end()
			ends(t, s, 0)
			scr = s.Screen()
			if scr.Alt || !scr.Contains("✓ success") || !scr.Contains("All is well.") || !scr.Contains("⊘") {
				t.Errorf("it left behind:\n%s", scr)
			}
			if _, _, visible := scr.CursorAt(); !visible {
				t.Error("the cursor is gone")
			}
		})
	}
}

// TestWatchQuits: q ends it, the run does not; the terminal is as it was, and NO_COLOR has no colours.
func TestWatchQuits(t *testing.T) {
	data := t.TempDir()
	newTrace(t, data, "r1", `"go"`).turn("bash", `"parameters":{},"policy_rejected":{"rule":"r","reason":"no"}`)
	s := watching(t, terminal.Size{Rows: 24, Cols: 80}, []string{"NO_COLOR=1"}, "last", "--data", data)
	scr := sees(t, s, "rejected")
	for _, row := range scr.Cells {
		for _, c := range row {
			if c.Style.FG != vt.ColorDefault {
				t.Fatalf("%+v has a colour", c)
			}
		}
	}
	if err := s.Type("q"); err != nil {
		t.Fatal(err)
	}
	ends(t, s, 0)
	if scr := s.Screen(); scr.Alt || !scr.Contains("in progress  go") {
		t.Errorf("it left behind:\n%s", scr)
	}
}

// TestWatchWaits: without a run that goes on it says so, and shows the first that begins.
func TestWatchWaits(t *testing.T) {
	data := t.TempDir()
	newTrace(t, data, "r0", `"an old one"`).end()
	s := watching(t, terminal.Size{Rows: 24, Cols: 80}, nil, "--data", data, "--agent", "name:pi")
	sees(t, s, "no run of agent name:pi goes on: waiting for one")
	newTrace(t, data, "r1", `"a new one"`)
	sees(t, s, "a new one")
	if err := s.Key("ctrl-c"); err != nil {
		t.Fatal(err)
	}
	ends(t, s, 130)
}

// TestWatchWaitsForAShortRun: a run that has ended before anybody could look is shown all the same, and not the one before it.
func TestWatchWaitsForAShortRun(t *testing.T) {
	data := t.TempDir()
	newTrace(t, data, "r0", `"an old one"`).end()
	s := watching(t, terminal.Size{Rows: 24, Cols: 40}, nil, "--data", data)
	scr := sees(t, s, "waiting for one")
	if !scr.Contains("q quit") || !scr.Contains(" waiting\n") || !scr.Contains(strings.Repeat("─", 40)) { // to the last column
		t.Errorf("it waits with:\n%s", scr)
	}
	short := filepath.Join(t.TempDir(), "data")
	tr := newTrace(t, short, "r1", `"a short one"`)
	tr.turn("count", `"output":3`)
	tr.end()
	if err := os.Rename(filepath.Join(short, "runs", "name:pi", "r1.jsonl"), filepath.Join(data, "runs", "name:pi", "r1.jsonl")); err != nil {
		t.Fatal(err)
	}
	ends(t, s, 0)
	if scr := s.Screen(); !scr.Contains("✓ a short one") || !scr.Contains("1 turn") {
		t.Errorf("it left behind:\n%s", scr)
	}
}

// TestWatchKeepsTheLastColumn: nothing is cleared behind a row that is as wide as the terminal.
func TestWatchKeepsTheLastColumn(t *testing.T) {
	var b bytes.Buffer
	v := &screenView{w: &b, size: func() (int, int) { return 40, 20 }}
	if err := v.draw(true); err != nil {
		t.Fatal(err)
	}
	at := strings.Index(b.String(), strings.Repeat("─", 40))
	if at < 0 {
		t.Fatalf("it has no rule: %q", &b)
	}
	row, _, _ := strings.Cut(b.String()[at:], "H") // to where the next row begins
	if strings.Contains(row, "\x1b[K") {
		t.Errorf("it clears behind the rule: %q", row)
	}
}

// TestWatchOutlivesTheDaemon: a daemon that is killed is said to be gone, and when it is there again the run is seen to its end,
// with every turn that was acknowledged once.
func TestWatchOutlivesTheDaemon(t *testing.T) {
	home := homed(t)
	data := filepath.Join(home, "data")
	k := startServe(t, "127.0.0.1:0", data)
	oneRun(t, k.at.URL, "outlive it")
	s := watching(t, terminal.Size{Rows: 24, Cols: 100}, []string{"XDG_RUNTIME_DIR=" + home}, "--daemon", k.at.URL)
	sees(t, s, "2 turns")
	k.kill()
	fits(t, sees(t, s, "the daemon is gone: trying again"))
	startServe(t, strings.TrimPrefix(k.at.URL, "ws://"), data)
	ends(t, s, 0)
	if scr := s.Screen(); !scr.Contains("! incomplete  outlive it") || !scr.Contains("2 turns") || scr.Contains("gone") {
		t.Errorf("it left behind:\n%s", scr)
	}
}

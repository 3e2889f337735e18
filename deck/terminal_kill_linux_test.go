package deck_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/terminal"
	"github.com/tapedeck-dev/tapedeck/cassette"
	"github.com/tapedeck-dev/tapedeck/deck"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/deck/screen"
)

func init() { programs["terminal recorder"] = playTerminalRecorder }

// keptOutput reports whether a cassette that is being written holds an output with text in it.
func keptOutput(dir, text string) bool {
	c, err := cassette.Open(dir, &cassette.OpenOptions{Partial: true})
	if err != nil {
		return false
	}
	defer c.Close()
	raw, err := c.RawOutput()
	return err == nil && strings.Contains(string(raw), text)
}

// playTerminalRecorder records "tui", to whose terminal nobody types, into args[0] with the configuration args[1], and kills itself
// once what it showed is kept.
func playTerminalRecorder(args []string) int {
	exe, err := os.Executable()
	if err != nil {
		return fail(err)
	}
	os.Setenv(programVar, "tui")
	p := &typed{more: make(chan struct{})}
	go func() {
		p.until("working")
		for i := 0; i < 200 && !keptOutput(filepath.Join(args[0], "terminal"), "working"); i++ {
			time.Sleep(50 * time.Millisecond) // what the screen may show as a secret is held back for two seconds
		}
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}()
	_, err = deck.Record(context.Background(), &deck.RecordOptions{
		Argv: []string{exe, "http://api.example.com", "spin"}, Output: args[0], ConfigDir: args[1], Terminal: terminal.On,
		Streams: deck.Streams{Stdin: p.keys("never", ""), Stdout: p},
	})
	return fail(err)
}

// TestKilledRecorderOfATerminal: what a recorder that is killed leaves of the terminal is read as far as it is whole.
func TestKilledRecorderOfATerminal(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	dir := filepath.Join(b.dir, ".tapedeck", "killed.rec")
	argv, env := b.self("terminal recorder", dir, b.config)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env, cmd.Dir = env, b.dir
	var exit *exec.ExitError
	if err := cmd.Run(); !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("the recorder ended with %v", err)
	}
	v, err := verified(dir)
	if err != nil || len(v.Problems) > 0 || v.State != recording.StateRecording {
		t.Fatalf("%+v, %v", v, err)
	}
	c, err := cassette.Open(filepath.Join(dir, "terminal"), &cassette.OpenOptions{Partial: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	raw, err := c.RawOutput()
	if err != nil || c.State() != cassette.StateUnfinished || !strings.Contains(string(raw), "working") {
		t.Errorf("%s, %v: %q", c.State(), err, raw)
	}
	rec, err := recording.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	shown := 0
	for _, err := range screen.Changes(rec, false) {
		if err != nil {
			t.Fatal(err)
		}
		shown++
	}
	if shown == 0 {
		t.Error("nothing is shown of it")
	}
}

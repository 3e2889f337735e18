//go:build unix

package endcheck

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/deck/recording"
)

func TestRun(t *testing.T) {
	for line, want := range map[string]recording.Check{
		"echo seen":          {},
		"echo seen; exit 3":  {Exit: 3, Output: "seen\n(files with secrets are not there: .env)\n"},
		"kill -9 $$":         {Exit: 137, Output: "(files with secrets are not there: .env)\n"},
		"sleep 300 & exit 0": {}, // what it left behind has ended with it
	} {
		var out bytes.Buffer
		c := &Command{Line: line, Output: &out, LeftOut: []string{".env"}}
		got, err := c.Run(context.Background(), t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		if got.TookMS = 0; got.Command != line {
			t.Errorf("%s: command %q", line, got.Command)
		}
		if got.Command = ""; *got != want || strings.Contains(line, "seen") != (out.String() == "seen\n") {
			t.Errorf("%s: got %+v, and told %q; want %+v", line, got, out.String(), want)
		}
	}
}

func TestRunNowhere(t *testing.T) {
	got, err := (&Command{Line: "true"}).Run(context.Background(), t.TempDir()+"/gone")
	if err != nil || got.Passed() || got.Why == "" || got.Exit != -1 {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestRunEnds(t *testing.T) {
	got, err := (&Command{Line: "sleep 300 & wait", Timeout: time.Millisecond}).Run(context.Background(), t.TempDir())
	if err != nil || !got.TimedOut || got.Passed() {
		t.Errorf("got %+v, %v", got, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := (&Command{Line: "sleep 300"}).Run(ctx, t.TempDir()); !errors.Is(err, context.Canceled) {
		t.Errorf("of a context that has ended: %v", err)
	}
}

func TestTail(t *testing.T) {
	var kept Tail
	for range 3 {
		kept.Write(bytes.Repeat([]byte("x"), maxOutput-1))
	}
	if kept.Write([]byte("end")); len(kept.b) != maxOutput || !strings.HasSuffix(kept.String(), "xend") {
		t.Errorf("kept %d bytes", len(kept.b))
	}
}

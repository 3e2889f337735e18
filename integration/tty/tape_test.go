//go:build tty && linux

package tty

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/integration/run"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// spawn returns the last record of the recording, which is the program's own, and what it read and wrote.
func spawn(t *testing.T, b *run.Box) (sp *tape.ProcessSpawn, stdin, stdout string) {
	t.Helper()
	f, err := tape.Open(filepath.Join(b.Recording(), "run.tape"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for rec, err := range f.Records() {
		if err != nil {
			t.Fatal(err)
		}
		if k, ok := rec.Kind.(*tape.ProcessSpawn); ok {
			sp = k
		}
	}
	if sp == nil {
		t.Fatal("no process_spawn on the tape")
	}
	in, err1 := sp.Stdin.Bytes(f.Store)
	out, err2 := sp.Stdout.Bytes(f.Store)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	return sp, string(in), string(out)
}

// wantOnTape wants what the terminal showed on the tape, byte for byte, and a recording that is finished and sound.
func wantOnTape(t *testing.T, b *run.Box, o *outer) {
	t.Helper()
	_, _, stdout := spawn(t, b)
	shown := o.all()
	before, _, found := strings.Cut(shown, "tapedeck: recorded ")
	if !found || strings.TrimSuffix(before, "\r\n") != strings.TrimSuffix(stdout, "\r\n") {
		t.Errorf("shown: %q\non the tape: %q", shown, stdout)
	}
	if m := manifest(t, b); m.State != recording.StateFinished {
		t.Errorf("the recording is %s", m.State)
	}
	if res := b.Verify(); res.Status != 0 {
		t.Errorf("verify: %v", res)
	}
}

func manifest(t *testing.T, b *run.Box) *recording.Manifest {
	t.Helper()
	rec, err := recording.Open(b.Recording())
	if err != nil {
		t.Fatal(err)
	}
	return rec.Manifest
}

// wantLastLine wants the recorder's own line on a line of its own, with none left empty before it, once the program's
// screen is gone.
func wantLastLine(t *testing.T, o *outer) {
	t.Helper()
	shown := o.all()
	at := strings.LastIndex(shown, "tapedeck: recorded ")
	if at < 0 || !strings.HasSuffix(shown, "\r\n") || strings.Count(shown[at:], "\n") != 1 {
		t.Fatalf("the last line: %q", tail(shown))
	}
	if left := strings.LastIndex(shown[:at], "\x1b[?1049l"); left >= 0 && strings.ContainsAny(shown[left:at], "\n") {
		t.Errorf("a stray line after the program's screen: %q", shown[left:])
	}
}

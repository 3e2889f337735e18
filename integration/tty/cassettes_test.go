//go:build tty && linux

package tty

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/cassette"
	"github.com/tapedeck-dev/tapedeck/integration/run"
)

// wantCassette opens what `tapedeck cassette record` left and wants these to have been done to the program, in that order.
func wantCassette(t *testing.T, dir string, wants ...string) *cassette.Reader {
	t.Helper()
	r, err := cassette.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	var did strings.Builder
	for e, err := range r.Events(&cassette.EventsOptions{Streams: []cassette.Stream{cassette.StreamInput}}) {
		if err != nil {
			t.Fatal(err)
		}
		switch e.Input.Kind {
		case cassette.KindInput:
			did.Write(e.Input.Bytes)
		case cassette.KindResize:
			did.WriteString("(resized)")
		case cassette.KindSignal:
			did.WriteString("(" + e.Input.Signal + ")")
		}
	}
	rest := did.String()
	for _, want := range wants {
		at := strings.Index(rest, want)
		if at < 0 {
			t.Errorf("%q is not in %q, of %q", want, rest, did.String())
			continue
		}
		rest = rest[at+len(want):]
	}
	return r
}

// TestCassetteOfVim edits a file under `tapedeck cassette record` in an interactive shell, with a change of size, and has its
// terminal back then.
func TestCassetteOfVim(t *testing.T) {
	vim := firstOf(t, "vim.tiny", "vim")
	run.Once(t, func(t *testing.T, b *run.Box) {
		b.WriteFile(filepath.Join(b.Work, "a.txt"), "text\n")
		o, say := inShell(t, b)
		dir := filepath.Join(b.Work, "c")
		o.answers = true
		say(b.Binary()+" cassette record -o "+dir+" -- "+vim+" -u NONE -N a.txt\r", "text")
		o.resize(30, 90)
		o.rest()
		o.types("Ax\x1b")
		o.rest()
		say(":wq\r", "tapedeck: recorded ")
		o.expect("outer> ")
		say("stty -a | grep -o ' echo '\r", " echo ")
		o.types("exit\r")
		o.ends(0)
		if got := file(filepath.Join(b.Work, "a.txt")); got != "textx\n" {
			t.Errorf("saved %q", got)
		}
		r := wantCassette(t, dir, "(resized)", "Ax\x1b", ":wq\r")
		if r.Final().Exit.Code != 0 {
			t.Errorf("%+v", r.Final().Exit)
		}
	})
}

// TestCassetteOfJobs has a shell inside stop its job, and its own status at the end.
func TestCassetteOfJobs(t *testing.T) {
	bash := firstOf(t, "bash")
	run.Once(t, func(t *testing.T, b *run.Box) {
		b.Setenv("PS1", "inner> ")
		dir := filepath.Join(b.Work, "c")
		o := newOuter(t)
		o.start(b.Command("cassette", "record", "-o", dir, "--", bash, "--norc", "--noprofile", "-i"))
		say := func(keys, shown string) {
			t.Helper()
			o.types(keys)
			o.expect(shown)
			o.rest()
		}
		o.expect("inner> ")
		o.rest()
		say("sh -c 'echo be''gun; read x; echo got $x'\r", "begun")
		say("\x1a", "Stopped")
		say("fg\r", "echo got $x'")
		say("it\r", "got it")
		o.types("exit 7\r")
		o.ends(7)
		wantCassette(t, dir, "\x1a", "fg\r", "it\r", "exit 7\r")
	})
}

// TestCassetteInBackground begins in the background of a shell, where it shows what is written, and types once it is in front. A
// SIGTSTP from outside stops it, with the terminal given back.
func TestCassetteInBackground(t *testing.T) {
	run.Once(t, func(t *testing.T, b *run.Box) {
		o, say := inShell(t, b)
		dir := filepath.Join(b.Work, "c")
		say(b.Binary()+" cassette record -o "+dir+" -- sh -c 'echo w''ritten; read x; echo g''ot $x; read y' &\r", "written\r\n")
		say("echo sh''ell\r", "shell\r\n")
		say("fg\r", "read y'")
		o.rest()
		say("it\r", "got it\r\n")
		signalChild(t, o)
		o.expect("Stopped")
		say("echo sh''ell; stty -a | grep -o ' echo '\r", " echo ")
		say("fg\r", "read y'")
		say("\r", "tapedeck: recorded ")
		o.types("exit\r")
		o.ends(0)
		r := wantCassette(t, dir, "it\r", "\r")
		if raw, err := r.RawOutput(); err != nil || slices.Contains(strings.Split(string(raw), "\r\n"), "shell") {
			t.Errorf("%q, %v", raw, err)
		}
	})
}

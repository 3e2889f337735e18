//go:build tty && linux

package tty

import (
	"path/filepath"
	"testing"

	"github.com/tapedeck-dev/tapedeck/integration/run"
)

// inShell starts an interactive shell on a terminal and returns what types a command line and waits for what is shown then.
func inShell(t *testing.T, b *run.Box) (o *outer, say func(keys, shown string)) {
	t.Helper()
	bash := firstOf(t, "bash")
	o = newOuter(t)
	b.Setenv("PS1", "outer> ")
	b.Setenv("tapedeck", b.Binary()+" record -o "+b.Recording()+" --")
	o.start(b.Program(bash, "--norc", "--noprofile", "-i"))
	say = func(keys, shown string) {
		t.Helper()
		o.types(keys)
		o.expect(shown)
		o.rest()
	}
	o.expect("outer> ")
	o.rest()
	return o, say
}

// TestSuspend stops an editor under tapedeck from its keyboard: the shell has its terminal back, and fg continues both.
func TestSuspend(t *testing.T) {
	vim := firstOf(t, "vim", "vim.tiny")
	run.Each(t, func(t *testing.T, b *run.Box) {
		b.WriteFile(filepath.Join(b.Work, "a.txt"), "text\n")
		o, say := inShell(t, b)
		say("$tapedeck "+vim+" -n -u NONE -N a.txt\r", "text")
		say("\x1a", "Stopped")
		say("echo sh''ell; stty size\r", "24 80")
		say("fg\r", "text")
		o.resize(30, 90)
		o.rest()
		o.types("Ax\x1b")
		o.rest()
		say(":wq\r", "tapedeck: recorded ")
		o.expect("outer> ")
		say("stty -a | grep -o ' echo '\r", " echo ") // cooked again
		o.types("exit\r")
		o.ends(0)
		if got := file(filepath.Join(b.Work, "a.txt")); got != "textx\n" {
			t.Errorf("saved %q", got)
		}
		if m := manifest(t, b); m.TTY == nil || !resizedTo(m.TTY.Typed, 30, 90) {
			t.Errorf("no new size on the tape: %+v", m.TTY)
		}
		b.WriteFile(filepath.Join(b.Work, "a.txt"), "text\n")
		wantGreen(t, b)
	})
}

// TestBackground runs tapedeck in the background: what writes goes on, what reads is stopped until fg, and Ctrl-Z and bg
// have it go on there.
func TestBackground(t *testing.T) {
	run.Each(t, func(t *testing.T, b *run.Box) {
		o, say := inShell(t, b)
		say("$tapedeck sh -c 'echo w''ritten; read x; echo g''ot $x; sleep 1; echo m''ore' &\r", "written\r\n")
		say("\r", "Stopped")
		say("echo sh''ell\r", "shell")
		say("fg\r", "read x")
		say("it\r", "got it\r\n")
		o.types("\x1a")
		o.expect("Stopped")
		o.expect("outer> ")
		say("bg\r", "more\r\n")
		o.expect("tapedeck: recorded ")
		o.types("exit\r")
		o.ends(0)
		wantGreen(t, b)
	})
}

// TestAskedToStop is stopped by the shell's terminal where the program has none, and by somebody's kill.
func TestAskedToStop(t *testing.T) {
	run.Each(t, func(t *testing.T, b *run.Box) {
		o, say := inShell(t, b)
		say("$tapedeck sh -c 'echo b''egun >&2; sleep 2; echo e''nded >&2' </dev/null 2>&1 | cat\r", "begun\r\n")
		say("\x1a", "Stopped")
		say("fg\r", "ended\r\n")
		o.expect("outer> ")
		say("rm -r "+b.Recording()+"; $tapedeck sh -c 'echo s''econd; read x'\r", "second\r\n")
		signalChild(t, o)
		o.expect("Stopped")
		say("echo sh''ell\r", "shell")
		say("fg\r", "read x")
		say("\r", "tapedeck: recorded ")
		o.types("exit\r")
		o.ends(0)
	})
}

//go:build tty && linux

package tty

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/integration/run"
)

// TestVim edits a file, with the terminal resized in between, saves it, and has a replay do it again. It has no swap file (-n), for that
// holds the inode of the other. It reads the kernel's time: where a millisecond passes between two reads of it, as it may while a
// recorder answers them on a busy machine, vim's look for keys (inchar_loop, a wait of 0 ms less what has passed) waits for the next key
// instead, with what it has not drawn yet.
func TestVim(t *testing.T) {
	vim := firstOf(t, "vim", "vim.tiny")
	run.Each(t, func(t *testing.T, b *run.Box) {
		path := filepath.Join(b.Work, "notes.txt")
		b.WriteFile(path, "one\ntwo\nthree\n")
		o := newOuter(t)
		o.start(b.Command("record", "--time", "real", "-o", b.Recording(), "--", vim, "-n", "-u", "NONE", "-N", "-c", "set showmode ruler", "notes.txt"))
		o.expect("three")
		o.rest()
		o.types("o")
		o.expect("INSERT")
		o.rest() // who types while a program prints gets another order of the two each time
		o.types("between")
		o.expect("between")
		o.types("\x1b")
		o.rest()
		o.resize(30, 100)
		o.rest()
		o.types("Gdd")
		o.rest()
		o.types(":wq\r")
		o.ends(0)
		if got := file(path); got != "one\nbetween\ntwo\n" {
			t.Errorf("saved %q", got)
		}
		wantLastLine(t, o)
		wantOnTape(t, b, o)
		b.WriteFile(path, "changed since\n")
		wantGreen(t, b)
		if got := file(path); got != "changed since\n" {
			t.Errorf("a replay wrote %q", got)
		}
		wantRed(t, b, vim, "-n", "-u", "NONE", "-N", "-c", "set showmode ruler number", "notes.txt")
	})
}

// TestLess pages through a file and searches it.
func TestLess(t *testing.T) {
	less := firstOf(t, "less")
	var text strings.Builder
	for i := range 500 {
		fmt.Fprintf(&text, "line %d of many\n", i)
	}
	run.Each(t, func(t *testing.T, b *run.Box) {
		b.WriteFile(filepath.Join(b.Work, "long.txt"), text.String())
		o := record(t, b, less, "long.txt")
		o.expect("line 22 of")
		o.rest()
		o.types(" ")
		o.expect("line 45 of")
		o.rest()
		o.types("/line 321\r")
		o.expect("line 322 of")
		o.rest()
		o.resize(10, 60)
		o.rest()
		o.types("G")
		o.expect("line 499 of")
		o.rest()
		o.types("q")
		o.ends(0)
		wantLastLine(t, o)
		wantOnTape(t, b, o)
		wantGreen(t, b)
		wantRed(t, b, less, "-N", "long.txt")
	})
}

// TestBash works with jobs in a shell: one is ended by Ctrl-C, one stopped by Ctrl-Z and taken up again.
func TestBash(t *testing.T) {
	bash := firstOf(t, "bash")
	run.Each(t, func(t *testing.T, b *run.Box) {
		b.Setenv("PS1", "> ")
		o := record(t, b, bash, "--norc", "--noprofile", "-i")
		say := func(keys, shown string) {
			t.Helper()
			o.types(keys)
			o.expect(shown)
			o.rest()
		}
		o.expect("> ")
		o.rest()
		say("sh -c 'echo be''gun; sleep 3600'\r", "begun")
		say("\x03", "> ")
		say("echo status $?\r", "status 130")
		say("sh -c 'echo sec''ond; read x; echo got $x'\r", "second")
		say("\x1a", "Stopped")
		say("jobs\r", "Stopped")
		say("fg\r", "echo got $x'\r\n")
		say("it\r", "got it")
		say("stty size\r", "24 80")
		o.resize(31, 97)
		o.rest()
		say("stty size\r", "31 97")
		say("cat\r", "\r\n")
		say("line\r", "line\r\nline")
		say("\x04", "> ")
		say("sh -c 'kill -QUIT $$'\r", "Quit")
		o.types("exit 7\r")
		o.ends(7)
		wantOnTape(t, b, o)
		report, res := b.Replay()
		if res.Status != 0 || report == nil {
			t.Errorf("replay: %v", res)
		}
	})
}

//go:build tty && linux

package tty

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/integration/run"
)

// screensReplay replays the recording by its screens, with another program where argv names one.
func screensReplay(b *run.Box, argv ...string) run.Result {
	args := []string{"replay", b.Recording(), "--tty"}
	if len(argv) > 0 {
		args = append(append(args, "--"), argv...)
	}
	return b.Tapedeck(args...)
}

// TestScreensOfVim compares vim's screens, whose bytes are not always the same, and finds line numbers.
func TestScreensOfVim(t *testing.T) {
	vim := firstOf(t, "vim", "vim.tiny")
	run.Each(t, func(t *testing.T, b *run.Box) {
		b.WriteFile(filepath.Join(b.Work, "notes.txt"), "one\ntwo\nthree\n")
		o := record(t, b, vim, "-n", "-u", "NONE", "-N", "-c", "set showmode ruler", "notes.txt")
		o.expect("three")
		o.rest()
		o.types("obetween\x1b")
		o.expect("between")
		o.rest()
		o.resize(30, 100)
		o.rest()
		o.types(":wq\r")
		o.ends(0)
		if res := screensReplay(b); res.Status != 0 {
			t.Errorf("%v", res)
		}
		res := screensReplay(b, vim, "-n", "-u", "NONE", "-N", "-c", "set showmode ruler number", "notes.txt")
		if res.Status != 2 || !strings.Contains(res.Stderr, "terminal, screen_rows") || !strings.Contains(res.Stderr, "1 one") {
			t.Errorf("%v", res)
		}
	})
}

// TestScreensThatMove has a spinner in the corner of the screen: what is typed beside it comes when it has turned as often.
func TestScreensThatMove(t *testing.T) {
	bash := firstOf(t, "bash")
	const script = `printf '\033[2J\033[5;1Hname? '
( n=$RANDOM; while sleep 0.05; do n=$((n+1)); printf '\0337\033[1;1H\033[Kturn %d\0338' $n; done ) & turning=$!
read name; kill $turning; wait 2>/dev/null
printf '\033[1;1H\033[K\033[7;1Hhello %s\n' "$name"`
	run.Each(t, func(t *testing.T, b *run.Box) {
		o := record(t, b, bash, "-c", script)
		o.expect("name? ")
		for range 20 { // what it prints in its first 300 ms may answer its start
			o.expect("turn ")
		}
		o.types("ada\r")
		o.ends(0)
		if res := screensReplay(b); res.Status != 0 {
			t.Errorf("%v", res)
		}
		if res := screensReplay(b, bash, "-c", strings.Replace(script, "hello", "hullo", 1)); res.Status != 2 {
			t.Errorf("%v", res)
		}
	})
}

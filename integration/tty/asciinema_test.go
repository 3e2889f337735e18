//go:build tty && linux

package tty

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/tapedeck-dev/tapedeck/cassette"
	"github.com/tapedeck-dev/tapedeck/integration/run"
)

// TestAsciinema has asciinema show what was exported for it, and imports what it recorded itself: both give the program's bytes.
func TestAsciinema(t *testing.T) {
	asciinema, script := run.Tool(t, "asciinema"), run.Tool(t, "script")
	run.Once(t, func(t *testing.T, b *run.Box) {
		const program = `printf 'w\303\266rld \033[31mred\033[0m\r\n'; sleep 0.1; printf '\033[2J\033[3;4Hdone'`
		dir, cast := filepath.Join(b.Work, "c"), filepath.Join(b.Work, "c.cast")
		ok(t, b.Tapedeck("cassette", "record", "-o", dir, "--", "sh", "-c", program))
		ok(t, b.Tapedeck("cassette", "export", dir, "-o", cast))
		want, err := os.ReadFile(filepath.Join(dir, "output.raw"))
		if err != nil {
			t.Fatal(err)
		}
		played := b.Run(script, "-qec", "stty -opost; "+asciinema+" cat "+cast, "/dev/null") // it wants a terminal, which must add nothing
		ok(t, played)
		if !bytes.Equal([]byte(played.Stdout), want) {
			t.Errorf("asciinema shows %q, the program wrote %q", played.Stdout, want)
		}

		theirs, back := filepath.Join(b.Work, "theirs.cast"), filepath.Join(b.Work, "back")
		ok(t, b.Run(asciinema, "rec", "-q", "-c", program, theirs))
		ok(t, b.Tapedeck("cassette", "import", theirs, "-o", back))
		r, err := cassette.Open(back, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		got, err := r.RawOutput()
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("asciinema recorded %q, %v, the program wrote %q", got, err, want)
		}
	})
}

func ok(t *testing.T, r run.Result) {
	t.Helper()
	if r.Status != 0 {
		t.Fatal(r)
	}
}

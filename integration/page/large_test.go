//go:build browser

package page

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/deck/derive/derivetest"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// TestLarge measures the program itself with what is large: notes say how long each thing took, for other programs share the machine.
func TestLarge(t *testing.T) {
	if os.Getenv("TAPEDECK_LONG") == "" {
		t.Skip("TAPEDECK_LONG is not set")
	}
	chromium := browser(t)
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	tapedeck := filepath.Join(t.TempDir(), "tapedeck")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", tapedeck, "github.com/tapedeck-dev/tapedeck/cmd/tapedeck").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Run("100,000 records", func(t *testing.T) {
		dir := heavy(t)
		visit(t, tapedeck, dir, func(url string) {
			timed(t, "the first look, which indexes", func() {
				answer, err := http.Get(url + "run/heavy/index.json")
				must(t, err)
				must(t, answer.Body.Close())
			})
		})
		visit(t, tapedeck, dir, func(url string) { drive(t, chromium, url, "large") })
		index := filepath.Join(filepath.Dir(dir), "heavy.index")
		st, err := os.Stat(index)
		must(t, err)
		if t.Logf("index: %d bytes", st.Size()); st.Size() > 500_000 {
			t.Errorf("the index has %d bytes, expected 500,000 at most", st.Size())
		}
	})
	t.Run("10,000 recordings", func(t *testing.T) {
		dir := many(t, 10_000)
		timed(t, "list", func() { run(t, dir, tapedeck, "list") })
		visit(t, tapedeck, dir, func(url string) { drive(t, chromium, url, "library") })
	})
	t.Run("60 turns", func(t *testing.T) {
		rec, to := agent(t, filepath.Join(t.TempDir(), ".tapedeck", "turns.rec"), strings.Repeat("some words ", 20), 60), filepath.Join(t.TempDir(), "x.html")
		timed(t, "export", func() { run(t, rec.Dir, tapedeck, "export", rec.Dir, "-o", to) })
		timed(t, "export without payloads", func() { run(t, rec.Dir, tapedeck, "export", rec.Dir, "-o", to+".html", "--payloads", "0") })
		for _, name := range []string{to, to + ".html"} {
			st, err := os.Stat(name)
			must(t, err)
			if t.Logf("%d bytes", st.Size()); st.Size() > 400_000 {
				t.Errorf("the page has %d bytes, expected 400,000 at most", st.Size())
			}
		}
	})
}

// timed says how long something took.
func timed(t *testing.T, what string, f func()) {
	t.Helper()
	began := time.Now()
	f()
	t.Logf("%s: %v", what, time.Since(began).Round(time.Millisecond))
}

// heavy is a recording of 100,000 records and 174 MB in a library.
func heavy(t *testing.T) (dir string) {
	dir = filepath.Join(t.TempDir(), ".tapedeck", "heavy.rec")
	must(t, os.MkdirAll(dir, 0o700))
	tt := derivetest.NewTape(t)
	derivetest.Long(tt)
	tt.Close()
	must(t, os.Rename(tt.Path, filepath.Join(dir, recording.TapeName)))
	must(t, os.Rename(tt.Path+tape.StoreSuffix, filepath.Join(dir, recording.TapeName+tape.StoreSuffix)))
	manifest(t, dir, "heavy")
	return dir
}

// many is a work tree with a library of so many recordings, of which only recording.json is looked at.
func many(t *testing.T, n int) (dir string) {
	dir = t.TempDir()
	for i := range n {
		id := fmt.Sprintf("run%05d", i)
		rec := filepath.Join(dir, ".tapedeck", id+".rec")
		must(t, os.MkdirAll(rec, 0o700))
		manifest(t, rec, id)
	}
	return dir
}

func manifest(t *testing.T, dir, id string) {
	m := recording.NewManifest(time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC))
	m.ID, m.State, m.Argv, m.Cwd, m.Exit = id, recording.StateFinished, []string{"agent", id}, "/home/dev/parser", &recording.Exit{}
	m.Program.Path, m.Axes, m.Totals = "/usr/bin/agent", map[string]recording.Axis{}, &recording.Totals{Models: []string{"m"}, Turns: 3, Unpriced: []string{}}
	must(t, m.Write(dir, false))
}

// run has the program do something.
func run(t *testing.T, dir string, argv ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%q: %v\n%s", argv, err, out)
	}
}

// visit shows what is in a directory as long as f looks at it.
func visit(t *testing.T, tapedeck, dir string, f func(url string)) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	cmd := exec.CommandContext(ctx, tapedeck, "ui", dir)
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	must(t, err)
	began := time.Now()
	must(t, cmd.Start())
	defer cmd.Wait()
	defer stop()
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		if _, url, ok := strings.Cut(lines.Text(), "http:"); ok {
			t.Logf("ui says where it is: %v", time.Since(began).Round(time.Millisecond))
			f("http:" + strings.Fields(url)[0])
			return
		}
	}
	t.Fatal("ui does not say where it is")
}

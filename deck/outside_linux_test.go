package deck_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/deck"
)

// recordOutside records one of programs without a jail.
func (b *bench) recordOutside(name string, args ...string) (*deck.Result, string) {
	b.t.Helper()
	argv, env := b.self(name, args...)
	var out bytes.Buffer
	res, err := deck.Record(context.Background(), &deck.RecordOptions{
		Argv: argv, Env: env, Dir: b.dir, Tree: b.dir, ConfigDir: b.config, Upstreams: b.hosts, Proxy: true, NoSeal: b.unsealed,
		Streams: deck.Streams{Stdout: &out, Stderr: &out},
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return res, out.String()
}

// TestOutsideTheJail records through a proxy, changes the disk, takes the upstream away and replays: outside again, and in
// the jail where there is one.
func TestOutsideTheJail(t *testing.T) {
	t.Parallel()
	b := newBenchAnywhere(t)
	up := b.upstream("api.example.com", func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "answer to %s", r.URL.Path) })
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(b.dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("in.txt", "as recorded")
	write(".gitignore", "cache\n")
	write("cache", "never captured")
	res, first := b.recordOutside("errand", "https://api.example.com/a", "http://api.example.com/b")
	write("cache", "never captured") // the program wrote to it
	if want := "answer to /a\nanswer to /b\nas recorded never captured\n"; first != want || res.Exit.Code != 0 {
		t.Fatalf("exit %d, %q, want %q", res.Exit.Code, first, want)
	}
	up.Close()
	write("in.txt", "changed since")
	write("out.txt", "changed since")

	v, second := b.replay(res.Recording, &deck.ReplayOptions{Proxy: true})
	b.green(v)
	if second != first {
		t.Errorf("printed %q, then %q", first, second)
	}
	for name, want := range map[string]string{"in.txt": "changed since", "out.txt": "changed since", "cache": "never captured"} {
		if got, err := os.ReadFile(filepath.Join(b.dir, name)); err != nil || string(got) != want {
			t.Errorf("the replay left %s as %q, %v", name, got, err)
		}
	}
	if !strings.Contains(strings.Join(v.Notes, "\n"), "outside the jail") || !res.Recording.Manifest.Proxy {
		t.Errorf("nothing says that it ran outside the jail: %q", v.Notes)
	}
	if deck.Diagnose().Works {
		v, second = b.replay(res.Recording, nil)
		b.green(v)
		if second != first {
			t.Errorf("printed %q, in the jail %q", first, second)
		}
	}
}

// TestOutsideDiverges asks for something else.
func TestOutsideDiverges(t *testing.T) {
	t.Parallel()
	b := newBenchAnywhere(t)
	b.upstream("api.example.com", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.URL.Path) })
	res, _ := b.recordOutside("get", "https://api.example.com/a")
	argv, _ := b.self("get", "https://api.example.com/other")
	v, _ := b.replay(res.Recording, &deck.ReplayOptions{Proxy: true, Argv: argv})
	if v.Faithful() || len(v.Refused) != 1 || v.Refused[0].URL != "https://api.example.com/other" {
		t.Errorf("refused %+v", v.Refused)
	}
}

// TestOutsideEndsWhatItStarted leaves a process behind, which ends with the run; its own exit status stands.
func TestOutsideEndsWhatItStarted(t *testing.T) {
	t.Parallel()
	b := newBenchAnywhere(t)
	begun := time.Now()
	res, err := deck.Record(context.Background(), &deck.RecordOptions{
		Argv: []string{"sh", "-c", "sleep 600 & exit 3"}, Env: b.env, Dir: b.dir, Tree: b.dir, ConfigDir: b.config, Proxy: true,
	})
	if err != nil || res.Exit.Code != 3 {
		t.Fatalf("%+v, %v", res, err)
	}
	if d := time.Since(begun); d > time.Minute {
		t.Errorf("the recorder waited %v for what the program left behind", d)
	}
}

func TestOutsideWithoutWhatNeedsTheJail(t *testing.T) {
	t.Parallel()
	b := newBenchAnywhere(t)
	o := &deck.RecordOptions{Argv: []string{"true"}, Env: b.env, Dir: b.dir, ConfigDir: b.config, Proxy: true, Isolated: true}
	if _, err := deck.Record(context.Background(), o); err == nil || errors.Is(err, deck.ErrUnavailable) {
		t.Errorf("isolated outside the jail: %v", err)
	}
	if _, err := os.Stat(filepath.Join(b.dir, ".tapedeck")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a refused recording left a library: %v", err)
	}
}

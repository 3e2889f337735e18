package check_test

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tapedeck-dev/tapedeck/cassette"
	"github.com/tapedeck-dev/tapedeck/cassette/check"
)

func TestDraftPasses(t *testing.T) {
	dir := session(t)
	folder := filepath.Join(filepath.Dir(dir), "scenarios")
	b, err := check.Draft(context.Background(), dir, folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`path: "../session"`, `id: "fixture"`, "exit_code: 0", "size: {rows: 8, cols: 40}", "normalise: true",
		`frame: {row: 2, equals: "run <uuid>`, `title: "greeter"`, `frame: {row: 0, equals: "Hello, Ada!", eventually: true}`} {
		if !strings.Contains(string(b), want) {
			t.Errorf("expected %q in\n%s", want, b)
		}
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(folder, "s.yaml")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	check.Run(t, "", file)
	if err := validates(t, schemaOf(t), string(b)); err != nil {
		t.Error(err)
	}
}

func TestDraftLeavesFillersOut(t *testing.T) {
	dir := making(t, 4, 10).out(5, "\x1b[?1049h\x1b[Htext\r\n~\r\ntext\r\n~").out(6, "\x1b[?1049l").end(20, exited)
	b, err := check.Draft(context.Background(), dir, "")
	if err != nil {
		t.Fatal(err)
	}
	if got := string(b); strings.Contains(got, `"~"`) || strings.Count(got, `"text"`) != 1 {
		t.Errorf("expected the text once and no fillers, got\n%s", got)
	}
}

func TestDraftOfASignalledProgram(t *testing.T) {
	dir := making(t, 3, 10).out(5, "\x1b[?1049hfull").end(20, &cassette.Exit{Code: -1, Signal: "terminated", Signaled: true})
	b, err := check.Draft(context.Background(), dir, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"signal: SIGTERM", "alternate_screen: true", `equals: "full", at: end`} {
		if !strings.Contains(string(b), want) {
			t.Errorf("expected %q in\n%s", want, b)
		}
	}
}

// TestDerivedFrameAsserted: what a derived frame shows, an assertion about its time finds.
func TestDerivedFrameAsserted(t *testing.T) {
	if os.Getenv("TAPEDECK_LONG") == "" {
		flag.Set("rapid.checks", "25") // each is files on the disk; it is the one property here
	}
	piece := rapid.SampledFrom([]string{"word", "a b", "日本", "é", "e\u0301", "👩‍💻", " ", "\r\n", "\x1b[2;3H", "\x1b[31m", "\x1b[K", "\b",
		"\t", "\x1b[?1049h", "\x1b[?1049l", "\x1b[2J", "\x1b]2;t\x07", "\x1b[3", "long long long line", "\"quote\" \\ # : {"})
	rapid.Check(t, func(rt *rapid.T) {
		m := making(t, 5, 17)
		n := rapid.IntRange(1, 12).Draw(rt, "chunks")
		for i := range n {
			m.out(10*(i+1), strings.Join(rapid.SliceOfN(piece, 1, 6).Draw(rt, "pieces"), ""))
			if rapid.IntRange(0, 5).Draw(rt, "resize") == 0 {
				m.resize(10*(i+1)+5, rapid.IntRange(2, 8).Draw(rt, "rows"), rapid.IntRange(5, 30).Draw(rt, "cols"))
			}
		}
		dir := m.end(10*n+20, exited)
		r, err := cassette.Open(dir, nil)
		if err != nil {
			rt.Fatal(err)
		}
		defer r.Close()
		text := head(t, dir)
		for f, err := range r.Derive(nil) {
			if err != nil {
				rt.Fatal(err)
			}
			text += frameAssertions(f)
		}
		s, err := check.Parse("s.yaml", []byte(text))
		if err != nil {
			rt.Fatalf("%v\n%s", err, text)
		}
		res, err := s.On(context.Background(), r)
		if err != nil {
			rt.Fatal(err)
		}
		for _, o := range res.Assertions {
			if o.Status != check.Passed {
				rt.Errorf("%s", o.Text("s.yaml"))
			}
		}
		if b, err := check.Draft(context.Background(), dir, ""); err != nil {
			rt.Errorf("%v\n%s", err, b)
		}
	})
}

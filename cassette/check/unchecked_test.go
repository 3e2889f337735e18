package check_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/cassette"
	"github.com/tapedeck-dev/tapedeck/cassette/check"
)

// What the session does not hold is never green.
func TestWhatCannotBeLookedAtIsNotGreen(t *testing.T) {
	dir := session(t)
	for _, a := range []string{
		`frame: {contains: "Bye", at: 4.3s}`,
		`frame: {contains: "panic", never: {from: 5s}}`,
		`frame: {contains: "panic", never: {to: 5s}}`,
		`frame: {contains: "", row: 6, at: 1.6s}`,
		`frame: {contains: "panic", row: 20, never: true}`,
		`frame: {contains: "panic", region: {row: 0, col: 0, rows: 9, cols: 9}, never: true}`,
		`frame: {contains: "Bye", row: 20, eventually: true}`,
		`frame: {contains: "Bye", eventually: {from: 5s}}`,
		`frame: {stable: 1s, at: 4s}`,
		`frame: {stable: 1s, at: 5s}`,
		`frame: {stable: 10s, never: {to: 20s}}`,
		`frame: {stable: 1ms, row: 20, eventually: true}`,
		`state: {alternate_screen: false, always: {from: 4s, to: 5s}}`,
		`state: {style: {row: 20, col: 0, bold: true}, at: end}`,
		`state: {modes: {"12345": true}, at: end}`,
		`timing: {max_gap: 1s, between: {from: 4s, to: 4.1s}}`,
		`timing: {max_gap: 10s, between: {to: 5s}}`,
		`input: {equals: "", between: {from: 5s}}`,
		`input: {resizes: [], between: {from: 3s, to: 5s}}`,
		`input: {signals: [], between: {from: 5s}}`,
		`input: {paste: ["x"], between: {from: 5s}}`,
		`service: {where: {$.type: other}, path: $.x, exists: false}`,
		`service: {where: {$.type: other}, count: 0, between: {to: 5s}}`,
	} {
		a = strings.Replace(a, `contains: "", `, `contains: "x", `, 1)
		if o := asserting(t, dir, a).Assertions[0]; o.Status != check.Unchecked || o.Came == "" {
			t.Errorf("%s: expected it to be unchecked with a reason, got %s: %s", a, o.Status, o.Came)
		}
	}
}

// TestUnfinishedIsNotGreen looks at a recording that was killed: what is about its end is not known.
func TestUnfinishedIsNotGreen(t *testing.T) {
	dir := session(t)
	text := strings.Replace(head(t, dir), "id: fixture", `id: ""`, 1)
	for _, name := range []string{"manifest.json", "final.json", "scrub-report.json"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "unfinished.json"), []byte(`{"version":1,"id":"cut","terminal":{"initial_rows":6,"initial_cols":30}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	text = strings.Replace(text, `id: ""`, "id: cut", 1)
	for a, want := range map[string]check.Status{
		`frame: {contains: "Hello, Ada!", at: 1.5s}`:                   check.Passed,
		`frame: {contains: "Bye", at: end}`:                            check.Unchecked,
		`frame: {contains: "panic", never: true}`:                      check.Unchecked,
		`frame: {contains: "busy 2", never: true}`:                     check.Failed,
		`frame: {contains: "panic", never: {to: 2s}}`:                  check.Passed,
		`frame: {stable: 20s, never: true}`:                            check.Unchecked,
		`frame: {stable: 0, at: end}`:                                  check.Unchecked,
		`timing: {total: {min: 1s}}`:                                   check.Unchecked,
		`timing: {delay: {from: {text: Bye}, to: {at: end}, max: 9s}}`: check.Unchecked,
		`input: {signals: [SIGINT]}`:                                   check.Unchecked,
		`input: {signals: [SIGINT], between: {to: 3s}}`:                check.Passed,
		`input: {contains: "Ada"}`:                                     check.Passed,
		`service: {where: {$.type: turn}, count: 2}`:                   check.Unchecked,
		`process: {exit_code: 0}`:                                      check.Unchecked,
	} {
		s, err := check.Parse("s.yaml", []byte(text+"  - "+a+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		r, err := s.Check(context.Background(), &check.Options{Cassette: dir, Partial: true})
		if err != nil {
			t.Fatal(err)
		}
		if o := r.Assertions[0]; o.Status != want {
			t.Errorf("%s: expected %s, got %s: %s", a, want, o.Status, o.Came)
		}
		if _, err := s.Check(context.Background(), &check.Options{Cassette: dir}); !errors.Is(err, cassette.ErrNoManifest) {
			t.Errorf("expected ErrNoManifest without Partial, got %v", err)
		}
	}
}

func TestAnotherCassetteIsRefused(t *testing.T) {
	dir := session(t)
	text := strings.Replace(head(t, dir), "id: fixture", "id: somebody", 1) + "  - process: {exit_code: 0}\n"
	s, err := check.Parse("s.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Check(context.Background(), &check.Options{Cassette: dir})
	if !errors.Is(err, cassette.ErrNotBound) {
		t.Fatalf("expected ErrNotBound, got %v", err)
	}
	for _, want := range []string{"somebody", "fixture", s.Cassette.SHA256} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("expected both sides to be named, %s is not in %v", want, err)
		}
	}
	s.Cassette.ID, s.Cassette.SHA256 = "fixture", strings.Repeat("0", 64)
	if _, err = s.Check(context.Background(), &check.Options{Cassette: dir}); !errors.Is(err, cassette.ErrNotBound) {
		t.Errorf("expected another digest to be refused, got %v", err)
	}
}

func TestAnotherEmulatorIsRefused(t *testing.T) {
	dir := session(t)
	ours := cassette.CurrentEmulator()
	for version, want := range map[string]error{ours.Version: nil, "0.1": cassette.ErrEmulator} {
		e := `emulator: {name: "` + ours.Name + `", version: "` + version + `"}, id`
		s, err := check.Parse("s.yaml", []byte(strings.Replace(head(t, dir), "{id", "{"+e, 1)+"  - process: {exit_code: 0}\n"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Check(context.Background(), &check.Options{Cassette: dir}); !errors.Is(err, want) {
			t.Errorf("version %s: expected %v, got %v", version, want, err)
		}
	}
}

func TestNoCassetteNamed(t *testing.T) {
	s, err := check.Parse("s.yaml", []byte(top+"assertions:\n  - process: {exit_code: 0}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Check(context.Background(), nil); err == nil || !strings.Contains(err.Error(), "cassette.path") {
		t.Errorf("expected it to say how to name one, got %v", err)
	}
}

func TestPathIsFromTheScenariosFolder(t *testing.T) {
	dir := session(t)
	text := strings.Replace(head(t, dir), "{id", "{path: ../session, id", 1) + "  - process: {exit_code: 0}\n"
	sub := filepath.Join(filepath.Dir(dir), "scenarios")
	if err := os.MkdirAll(sub, 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(sub, "s.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if r, err := check.File(context.Background(), file, nil); err != nil || !r.Passed {
		t.Errorf("expected it to pass, got %v, %v", r, err)
	}
	check.Run(t, "", file)
	var told told
	check.Run(&told, "", file+"x")
	if len(told.errs) != 1 {
		t.Errorf("expected a missing scenario to fail, got %v", told.errs)
	}
}

func TestRunTellsEachFailure(t *testing.T) {
	dir := session(t)
	file := filepath.Join(t.TempDir(), "s.yaml")
	text := head(t, dir) + "  - process: {exit_code: 0}\n  - process: {exit_code: 1}\n  - process: {signal: SIGKILL}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var told told
	check.Run(&told, dir, file)
	if len(told.errs) != 2 || !strings.Contains(told.errs[0], "exits with 0") {
		t.Errorf("expected two failures, got %v", told.errs)
	}
}

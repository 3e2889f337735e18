package cassette_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/tapedeck-dev/tapedeck/cassette"
)

// write makes a cassette of files.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestLazyChecks opens what is damaged without looking, and meets it when it reads.
func TestLazyChecks(t *testing.T) {
	for _, c := range []struct {
		change func(map[string]string)
		want   error
	}{
		{replace("output.raw", "world", "w0rld"), cassette.ErrChunkDigest},
		{replace("output.jsonl", `"length":13`, `"length":14`), cassette.ErrChunkRange},
		{replace("service-events.jsonl", `"seq":5`, `"seq":7`), cassette.ErrSequence},
		{replace("input.jsonl", `aGkN`, `a`), cassette.ErrBadJSON},
	} {
		files := base()
		c.change(files)
		r, err := cassette.Open(write(t, files), &cassette.OpenOptions{Lazy: true})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		for _, err = range r.Events(nil) {
		}
		if !errors.Is(err, c.want) {
			t.Errorf("%v, expected %v", err, c.want)
		}
	}
	if _, err := cassette.Open(write(t, map[string]string{"manifest.json": base()["manifest.json"]}), &cassette.OpenOptions{Lazy: true}); !errors.Is(err, cassette.ErrMissingFile) {
		t.Error(err)
	}
}

// TestTooLong has lines and files that no reader keeps.
func TestTooLong(t *testing.T) {
	t.Parallel()
	long := string(bytes.Repeat([]byte(" "), cassette.MaxLine)) + "{}"
	for _, name := range []string{cassette.InputFile, cassette.FramesFile, cassette.ManifestFile, cassette.FinalFile} {
		files := base()
		files[name] += long
		_, err := cassette.Open(write(t, files), nil)
		var at *cassette.FileError
		if !errors.Is(err, cassette.ErrTooLong) || !errors.As(err, &at) || at.File != name {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestNoFile has names that are no regular files: nothing waits.
func TestNoFile(t *testing.T) {
	for _, name := range []string{cassette.ManifestFile, cassette.OutputFile, cassette.ChunksFile, cassette.FinalFile} {
		files := base()
		delete(files, name)
		dir := write(t, files)
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		for _, o := range []cassette.OpenOptions{{}, {Lazy: true}} {
			if _, err := cassette.Open(dir, &o); !errors.Is(err, cassette.ErrMissingFile) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	file := filepath.Join(write(t, base()), cassette.ManifestFile)
	if _, err := cassette.Open(file, nil); !errors.Is(err, cassette.ErrNotDirectory) {
		t.Error(err)
	}
	if _, err := cassette.Open(file+"x", nil); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// TestUntyped keeps what the format gives no type to as it stood.
func TestUntyped(t *testing.T) {
	for _, v := range []string{`{"m":"x"}`, `["a",1]`, `"direct"`} {
		files := base()
		replace(cassette.FinalFile, `"final_text":"done"`, `"final_text":"done","routing_actual":`+v)(files)
		files[cassette.QuotaFile] = `{"source":"s","status":"ok","models":[{"id":"m"},"n"],"reasoning_levels":[1]}`
		r, err := cassette.Open(write(t, files), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if got := string(r.Final().RoutingActual); got != v || len(r.Quota().Models) != 2 || string(r.Quota().ReasoningLevels[0]) != "1" {
			t.Errorf("%s: %s, %+v", v, got, r.Quota())
		}
	}
}

// TestCapabilities writes quota and discovery, and reads them.
func TestCapabilities(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "c")
	w, err := cassette.Create(dir, &cassette.CreateOptions{Sync: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Quota(&cassette.Capability{Source: "pty", Status: "ok", AccountClass: "pro"}),
		w.Discovery(&cassette.Capability{Source: "help", Status: "ok", Models: []json.RawMessage{json.RawMessage(`"a"`), json.RawMessage(`{"id":"b"}`)}, FreshnessWindow: json.RawMessage("900")})); err != nil {
		t.Fatal(err)
	}
	m, err := w.Finish(&cassette.Final{DurationMS: 7})
	if err != nil {
		t.Fatal(err)
	}
	r, err := cassette.Open(dir, &cassette.OpenOptions{Expect: &cassette.Binding{ID: m.ID, SHA256: m.ContentDigest.SHA256}, Emulator: &m.Terminal.Emulator})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if q, d := r.Quota(), r.Discovery(); q.AccountClass != "pro" || len(d.Models) != 2 || string(d.FreshnessWindow) != "900" || r.Final().DurationMS != 7 || r.Dir() != dir {
		t.Errorf("%+v, %+v", q, d)
	}
	if m.Terminal.InitialRows != 24 || m.Terminal.InitialCols != 80 || m.Timing.ResolutionMS != 100 || m.Timing.ReplayDefault != cassette.ReplayCollapsed ||
		m.Command.WorkdirPolicy != "unspecified" || m.RequiredFeatures == nil || m.Optional == nil || len(m.ID) != 36 {
		t.Errorf("defaults: %+v", m)
	}
}

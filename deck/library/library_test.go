package library

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/deck/recording"
)

func TestCassetteNames(t *testing.T) {
	lib := Of(t.TempDir())
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	for _, dir := range []string{
		filepath.Join(lib.Dir, "20260101-000000-aaaa.cassette"),
		filepath.Join(lib.Dir, "20260102-000000-bbbb.rec", "terminal"),
		filepath.Join(lib.Dir, "20260103-000000-cccc.rec"), // no terminal
		filepath.Join(elsewhere, "terminal"),
	} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{filepath.Join(lib.Dir, "20260103-000000-cccc.rec"), elsewhere} {
		if err := os.WriteFile(filepath.Join(dir, recording.ManifestName), []byte(`{"format":"tapedeck","version":1}`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := lib.Point("20260104-000000-dddd", elsewhere, false); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"last": filepath.Join(elsewhere, "terminal"), elsewhere: filepath.Join(elsewhere, "terminal"),
		"20260101":             filepath.Join(lib.Dir, "20260101-000000-aaaa.cassette"),
		"20260102-000000-bbbb": filepath.Join(lib.Dir, "20260102-000000-bbbb.rec", "terminal"),
		lib.Dir:                lib.Dir,
	} {
		if got, err := lib.Cassette(name); got != want || err != nil {
			t.Errorf("%s: %s, %v; want %s", name, got, err, want)
		}
	}
	var amb *AmbiguousError
	if _, err := lib.Cassette("2026010"); !errors.As(err, &amb) || len(amb.Found) != 3 {
		t.Errorf("an ambiguous prefix: %v", err)
	}
	for _, name := range []string{"nothing", filepath.Join(lib.Dir, "20260103-000000-cccc.rec")} {
		if _, err := lib.Cassette(name); !errors.Is(err, ErrNoCassette) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Of(t.TempDir()).Cassette("last"); !errors.Is(err, ErrNoCassette) {
		t.Errorf("last of none: %v", err)
	}
	names, err := lib.CassetteNames()
	if err != nil || strings.Join(names, " ") != "20260101-000000-aaaa 20260102-000000-bbbb 20260104-000000-dddd" {
		t.Errorf("names %q, %v", names, err)
	}
}

func TestNewCassette(t *testing.T) {
	lib := Of(t.TempDir())
	id, dir, err := lib.NewCassette("")
	if err != nil || dir != filepath.Join(lib.Dir, id+".cassette") {
		t.Errorf("%s in %s, %v", id, dir, err)
	}
	if b, err := os.ReadFile(filepath.Join(lib.Dir, ".gitignore")); string(b) != "*\n" || err != nil {
		t.Errorf("git would take it: %q, %v", b, err)
	}
	if _, dir, err = lib.NewCassette("x"); err != nil || !filepath.IsAbs(dir) || filepath.Base(dir) != "x" {
		t.Errorf("%s, %v", dir, err)
	}
}

// A recording or cassette that is named into a library by -o gets one that Git leaves alone, as it would without.
func TestNamedIntoALibrary(t *testing.T) {
	for what, place := range map[string]func(lib *Library, output string) error{
		"recording": func(lib *Library, output string) error { _, _, err := lib.Place("id", output, false); return err },
		"cassette":  func(lib *Library, output string) error { _, _, err := lib.NewCassette(output); return err },
	} {
		lib := Of(t.TempDir())
		if err := place(lib, filepath.Join(lib.Dir, "a.rec")); err != nil {
			t.Fatal(what, err)
		}
		if b, err := os.ReadFile(filepath.Join(lib.Dir, ".gitignore")); string(b) != "*\n" || err != nil {
			t.Errorf("%s: git would take it: %q, %v", what, b, err)
		}
	}
}

func TestParseTime(t *testing.T) {
	now := time.Date(2026, 11, 27, 15, 30, 0, 0, time.UTC) // a Friday
	day := func(d int) time.Time { return time.Date(2026, 11, d, 0, 0, 0, 0, time.UTC) }
	for _, tt := range []struct {
		text string
		end  bool
		want time.Time
	}{
		{"2026-11-20", false, day(20)}, {"2026-11-20", true, day(21)}, {"2026-11-20 12:00", true, day(20).Add(12 * time.Hour)},
		{"2d", false, now.Add(-48 * time.Hour)}, {"90m", true, now.Add(-90 * time.Minute)},
		{"today", false, day(27)}, {"yesterday", true, day(27)}, {"friday", false, day(27)}, {"Sat", false, day(21)},
		{"2026-11-20T12:00:00+02:00", false, day(20).Add(10 * time.Hour)},
	} {
		if got, err := ParseTime(tt.text, now, tt.end); err != nil || !got.Equal(tt.want) {
			t.Errorf("%s: %v, %v, want %v", tt.text, got, err, tt.want)
		}
	}
	if _, err := ParseTime("soon", now, false); err == nil {
		t.Error("soon is a time")
	}
}

// TestLater: what was recorded elsewhere later, in the same second too where the recordings say when.
func TestLater(t *testing.T) {
	l := Of(t.TempDir())
	for _, id := range []string{"20260101-100000-aa", "20260101-100001-aa", "20260101-100001-cc", "20260101-100002-aa"} {
		if err := l.Point(id, "/elsewhere/"+id, false); err != nil {
			t.Fatal(err)
		}
	}
	if got := l.Later("20260101-100001-bb"); !slices.Equal(got, []string{"/elsewhere/20260101-100002-aa"}) {
		t.Errorf("got %q", got)
	}
	second := time.Date(2026, 1, 1, 10, 0, 2, 0, time.UTC)
	made := map[string]string{"20260101-100002-bb": t.TempDir(), "20260101-100002-cc": t.TempDir(), "20260101-100002-dd": t.TempDir()}
	for i, id := range slices.Sorted(maps.Keys(made)) {
		m := recording.NewManifest(second.Add(time.Duration(i) * time.Millisecond))
		m.ID, m.Argv, m.Cwd, m.Program.Path = id, []string{"true"}, "/", "/bin/true"
		if err := errors.Join(m.Write(made[id], false), l.Point(id, made[id], false)); err != nil {
			t.Fatal(err)
		}
	}
	if got := l.Later("20260101-100002-cc"); !slices.Equal(got, []string{made["20260101-100002-dd"]}) {
		t.Errorf("in the same second: got %q", got)
	}
}

// TestRecordedAgainElsewhere: of recordings that were made at one place one after the other, the last alone is remembered.
func TestRecordedAgainElsewhere(t *testing.T) {
	l := Of(t.TempDir())
	for _, id := range []string{"20260101-100000-aa", "20260101-100000-bb", "20260101-100000-cc"} {
		if err := l.Point(id, "/elsewhere/r.rec", false); err != nil {
			t.Fatal(err)
		}
	}
	if got := l.Hidden("/x"); !slices.Equal(got, []string{l.Dir, "/x", "/elsewhere/r.rec"}) {
		t.Errorf("hidden: %q", got)
	}
}

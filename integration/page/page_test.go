//go:build browser

package page

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/internal/page"
	"github.com/tapedeck-dev/tapedeck/tape"
	"github.com/tapedeck-dev/tapedeck/ui"
)

// browser is Chromium; a test is skipped without it, or without what is taken from npm.
func browser(t *testing.T) string {
	t.Helper()
	if os.Getenv("TAPEDECK_PAGE") == "" {
		t.Skip("TAPEDECK_PAGE does not say where playwright-core and axe-core are installed")
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("no Chromium on this machine")
	return ""
}

// export writes recordings as one page.
func export(t *testing.T, to string, recs ...*recording.Recording) {
	t.Helper()
	write(t, to, 0, recs...)
}

// write is export with a bound on payloads.
func write(t *testing.T, to string, payloads int64, recs ...*recording.Recording) {
	t.Helper()
	shelf, err := page.NewShelf(t.Context(), recs, nil)
	must(t, err)
	f, err := os.Create(to)
	must(t, err)
	_, err = shelf.WriteFile(t.Context(), f, &page.FileOptions{Payloads: payloads, Bundle: page.Bundle{Script: ui.Script, Style: ui.Style}})
	must(t, err)
	must(t, f.Close())
}

// pages makes the pages that drive.mjs works, by their names.
func pages(t *testing.T) string {
	t.Helper()
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	dir, recs := t.TempDir(), filepath.Join(t.TempDir(), ".tapedeck") // a library keeps verdicts
	if keep := os.Getenv("TAPEDECK_PAGE_KEEP"); keep != "" {
		dir = keep
	}
	calm := agent(t, filepath.Join(recs, "calm.rec"), "the quick brown fox", 5)
	judge(calm, "the quick brown fox")
	bad := agent(t, filepath.Join(recs, "hostile.rec"), hostile, 3)
	judge(bad, hostile)
	torn := agent(t, filepath.Join(recs, "torn.rec"), "torn", 3)
	damage(t, torn)
	export(t, filepath.Join(dir, "calm.html"), calm)
	export(t, filepath.Join(dir, "hostile.html"), bad)
	export(t, filepath.Join(dir, "torn.html"), torn)
	gone := agent(t, filepath.Join(recs, "gone.rec"), strings.Repeat("some words ", 1000), 3)
	page.Prepare(gone)
	must(t, os.RemoveAll(gone.TapePath()+tape.StoreSuffix))
	export(t, filepath.Join(dir, "gone.html"), gone)
	export(t, filepath.Join(dir, "two.html"), calm, agent(t, filepath.Join(recs, "other.rec"), "the lazy dog", 6))
	turns := agent(t, filepath.Join(recs, "turns.rec"), strings.Repeat("some words ", 20), 60)
	export(t, filepath.Join(dir, "turns.html"), turns)
	write(t, filepath.Join(dir, "left.html"), 1, turns)
	export(t, filepath.Join(dir, "long.html"), long(t, filepath.Join(recs, "long.rec"), 100_000))
	return dir
}

func TestPageInABrowser(t *testing.T) {
	chromium := browser(t)
	if n := drive(t, chromium, pages(t), "check"); n < 12 {
		t.Fatalf("the browser did %d checks, expected 12 at least", n)
	}
}

// Every page opens in Firefox as well, from disk, each of its tabs.
func TestPageInFirefox(t *testing.T) {
	browser(t) // what is taken from npm
	firefox, err := exec.LookPath("firefox-esr")
	if err != nil {
		t.Skip("no firefox-esr on this machine")
	}
	if n := works(t, "firefox.mjs", firefox, pages(t)); n < 7 {
		t.Fatalf("Firefox opened %d pages, expected 7 at least", n)
	}
}

func TestScreenshots(t *testing.T) {
	to := os.Getenv("TAPEDECK_PAGE_SHOTS")
	if to == "" {
		t.Skip("TAPEDECK_PAGE_SHOTS names no directory")
	}
	must(t, os.MkdirAll(to, 0o755))
	drive(t, browser(t), pages(t), "shots", to)
}

// drive has Chromium do the checks.
func drive(t *testing.T, args ...string) int {
	t.Helper()
	return works(t, "drive.mjs", args...)
}

// works runs a script's checks, each a test of its own, and returns how many there were.
func works(t *testing.T, script string, args ...string) int {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "node", append([]string{script}, args...)...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	n := 0
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); n++ {
		var c struct{ Name, Error, Note string }
		must(t, json.Unmarshal(lines.Bytes(), &c))
		t.Run(c.Name, func(t *testing.T) {
			t.Log(c.Note)
			if c.Error != "" {
				t.Error(c.Error)
			}
		})
	}
	if err != nil {
		t.Fatalf("the browser: %v\n%s", err, errs.String())
	}
	return n
}

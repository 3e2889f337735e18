//go:build browser

package player

import (
	"bufio"
	"bytes"
	"encoding/json"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/cassette"
	"github.com/tapedeck-dev/tapedeck/cassette/picture"
)

// An act is something that happens in the recorded session.
type act struct {
	at      time.Duration
	output  string
	input   string
	size    cassette.Size
	signal  string
	service string
}

const bracket = "</script><!--<script>&lt;"

// acts are the session. The picture of a change is shown from its time on.
var acts = []act{
	{output: "\x1b]0;a title\a$ \x1b[1;32mmake\x1b[0m test\r\n"},
	{at: 1 * time.Second, input: "ls"},
	{at: 2 * time.Second, output: "ls\r\n" + bracket + "\r\n"},
	{at: 4 * time.Second, output: "\x1b[38;2;255;120;0;48;5;236mneedle\x1b[0m in orange\r\n"},
	{at: 6 * time.Second, service: `{"type":"turn-started"}`},
	{at: 7 * time.Second, input: "hunter2"}, // a password: the screen does not show it
	{at: 8 * time.Second, output: "\x1b[2J\x1b[H日本語漢字 #\x1b[12G#\r\n┌────────┐ #\r\nééé ñ ✓   \x1b[12G#\r\n\x1b[1mbold\x1b[0m 👍   \x1b[12G#\r\n"},
	{at: 10 * time.Second, signal: "SIGINT"},
	{at: 12 * time.Second, size: cassette.Size{Rows: 12, Cols: 30}, output: "\x1b[2J\x1b[H\x1b[4:3mwaves\x1b[0m\r\n"},
	{at: 14 * time.Second, output: "this line wraps within a needle, here\r\n"},
	{at: 16 * time.Second, output: "\x1b[2J\x1b[Hthe end"},
}

func record(t *testing.T, dir string) *cassette.Reader {
	t.Helper()
	var now time.Duration
	rec, err := cassette.Create(dir, &cassette.CreateOptions{
		Command: cassette.Command{Argv: []string{"make", "test"}}, ResolutionMS: 1, Clock: func() time.Duration { return now },
	})
	must(t, err)
	for _, a := range acts {
		now = a.at
		if a.input != "" {
			must(t, rec.Input([]byte(a.input), ""))
		}
		if a.signal != "" {
			must(t, rec.Signal(a.signal))
		}
		if a.service != "" {
			must(t, rec.ServiceEvent(json.RawMessage(a.service)))
		}
		if a.size.Rows > 0 {
			must(t, rec.Resize(a.size))
		}
		if a.output != "" {
			must(t, rec.Output([]byte(a.output)))
		}
	}
	now = 18 * time.Second
	_, err = rec.Finish(&cassette.Final{Exit: &cassette.Exit{Exited: true}, DurationMS: 18000})
	must(t, err)
	r, err := cassette.Open(dir, nil)
	must(t, err)
	t.Cleanup(func() { r.Close() })
	return r
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// expected is what drive.mjs goes by; the screens are what the same package says in plain text.
func expected(t *testing.T, r *cassette.Reader) []byte {
	t.Helper()
	type screen struct {
		T    float64 `json:"t"`
		Text string  `json:"text"`
		Size string  `json:"size"`
	}
	var screens []screen
	for _, at := range []float64{3, 5, 9, 14.5, 17} {
		var b bytes.Buffer
		must(t, picture.Text(&b, r, &picture.Options{Still: true, At: time.Duration(at * float64(time.Second))}))
		size := "80×24"
		if at > 12 {
			size = "30×12"
		}
		screens = append(screens, screen{at, strings.TrimRight(b.String(), "\n"), size})
	}
	type mark struct {
		Kind  string  `json:"kind"`
		Label string  `json:"label"`
		T     float64 `json:"t"`
	}
	b, err := json.Marshal(map[string]any{
		"screens": screens, "end": 18, "frames": []float64{0, 2, 4}, "needles": []float64{4, 14},
		"marks":   []mark{{"input", "ls", 1}, {"service", "turn-started", 6}, {"input", "7 letters", 7}, {"signal", "SIGINT", 10}, {"resize", "30×12", 12}},
		"columns": map[string]any{"t": 9, "col": 11, "copied": "日本語漢字 #"},
	})
	must(t, err)
	return b
}

func TestPlayerInABrowser(t *testing.T) {
	modules := os.Getenv("TAPEDECK_PLAYER")
	if modules == "" {
		t.Skip("TAPEDECK_PLAYER does not say where playwright-core is installed")
	}
	browser := firstOf("chromium", "chromium-browser", "google-chrome")
	if browser == "" {
		t.Skip("no Chromium on this machine")
	}
	dir := t.TempDir()
	if keep := os.Getenv("TAPEDECK_PLAYER_KEEP"); keep != "" {
		dir = keep
	}
	r := record(t, filepath.Join(t.TempDir(), "cassette"))
	page := filepath.Join(dir, "page.html")
	out, err := os.Create(page)
	must(t, err)
	must(t, picture.HTML(out, r, &picture.Options{MaxIdle: -1}))
	must(t, out.Close())
	must(t, os.WriteFile(filepath.Join(dir, "expected.json"), expected(t, r), 0o644))
	drive(t, browser, page, dir)
	colours(t, filepath.Join(dir, "shot-9.png"))
}

// drive runs the checks; each is a test of its own.
func drive(t *testing.T, browser, page, dir string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "node", "drive.mjs", browser, page, dir)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	n := 0
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); n++ {
		var c struct{ Name, Error string }
		must(t, json.Unmarshal(lines.Bytes(), &c))
		t.Run(c.Name, func(t *testing.T) {
			if c.Error != "" {
				t.Error(c.Error)
			}
		})
	}
	if err != nil || n < 12 {
		t.Fatalf("the browser did %d checks, expected 12 at least: %v\n%s", n, err, errs.String())
	}
}

// colours looks whether a screenshot shows anything.
func colours(t *testing.T, name string) {
	t.Helper()
	f, err := os.Open(name)
	must(t, err)
	defer f.Close()
	m, err := png.Decode(f)
	must(t, err)
	seen := map[[3]uint32]bool{}
	for y := range m.Bounds().Dy() {
		for x := range m.Bounds().Dx() {
			r, g, b, _ := m.At(x, y).RGBA()
			seen[[3]uint32{r, g, b}] = true
		}
	}
	if len(seen) < 50 {
		t.Errorf("the screenshot has %d colours, expected letters with soft edges", len(seen))
	}
}

func firstOf(names ...string) string {
	for _, n := range names {
		if path, err := exec.LookPath(n); err == nil {
			return path
		}
	}
	return ""
}

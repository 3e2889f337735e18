package foreign

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
)

// TestDetectNothing: what is no transcript is said.
func TestDetectNothing(t *testing.T) {
	for name, content := range map[string]string{"empty.jsonl": "", "blank.jsonl": "\n \r\n"} {
		if _, err := Detect(fixture(t, name, []byte(content))); !errors.Is(err, ErrEmpty) {
			t.Errorf("%s: %v, want ErrEmpty", name, err)
		}
	}
	for name, content := range map[string]string{
		"words.txt": "hello", "other.jsonl": `{"a":1}` + "\n", "list.json": `[1,2]`, "log.jsonl": `{"seq":0,"event":{"kind":"run_started"}}` + "\n",
		"history.jsonl": `{"session_id":"x","ts":1,"text":"hello"}` + "\n",
	} {
		if i, err := Detect(fixture(t, name, []byte(content))); !errors.Is(err, ErrUnknown) {
			t.Errorf("%s: %v, %v, want ErrUnknown", name, i, err)
		}
	}
	if _, err := Detect(t.TempDir()); !errors.Is(err, ErrUnknown) {
		t.Errorf("an empty folder: %v, want ErrUnknown", err)
	}
	if _, err := Detect(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// TestFolders: of a folder the newest session is read, and which one is said.
func TestFolders(t *testing.T) {
	const id = "11111111-2222-4333-8444-555555555555"
	for _, c := range []struct{ fixture, folder, older, newer string }{
		{"claude-code/made.jsonl", ".claude/projects/-home-me", "22222222-2222-4333-8444-555555555555.jsonl", id + ".jsonl"},
		{"codex/made.jsonl", ".codex/sessions/2026/11/22", "rollout-2026-11-22T00-00-00-" + id + ".jsonl", "rollout-2026-11-22T01-00-00-" + id + ".jsonl"},
		{"gemini-cli/made-rewound.jsonl", ".gemini/tmp/me/chats", "session-2026-11-22T00-00-1.jsonl", "session-2026-11-22T01-00-1.jsonl"},
	} {
		top := t.TempDir()
		content, err := os.ReadFile(filepath.Join("testdata", c.fixture))
		if err != nil {
			t.Fatal(err)
		}
		folder := filepath.Join(top, filepath.FromSlash(c.folder))
		if err := os.MkdirAll(filepath.Join(folder, id, "subagents"), 0o755); err != nil {
			t.Fatal(err)
		}
		for i, name := range []string{c.older, c.newer, id + "/subagents/agent-1.jsonl"} {
			path := filepath.Join(folder, filepath.FromSlash(name))
			if err := os.WriteFile(path, content, 0o644); err != nil {
				t.Fatal(err)
			}
			at := time.Unix(1_700_000_000+int64(i), 0)
			if err := os.Chtimes(path, at, at); err != nil {
				t.Fatal(err)
			}
		}
		above := folder // the folder by which the agent is known
		switch filepath.Dir(c.fixture) {
		case "claude-code":
			above = filepath.Dir(folder)
		case "codex":
			above = filepath.Join(top, ".codex", "sessions")
		}
		for _, dir := range []string{folder, above} {
			i, ok := ByName(filepath.Dir(c.fixture))
			if !ok {
				t.Fatal(c.fixture)
			}
			_, r, err := readAs(t, i, dir)
			if err != nil || filepath.Base(r.File) != c.newer || !strings.Contains(strings.Join(r.Notes, "\n"), "is the newest of 2 sessions") {
				t.Errorf("%s: %v, %+v", dir, err, r)
			}
		}
	}
	for _, i := range []*Importer{&claude, &codex, &gemini} {
		if _, _, err := readAs(t, i, t.TempDir()); !errors.Is(err, ErrEmpty) {
			t.Errorf("%s: an empty folder: %v", i.Name(), err)
		}
	}
}

// TestMeant: the session of a sub-agent, and one in which nothing was said, is not the newest that a person means.
func TestMeant(t *testing.T) {
	const start = `{"sessionId":"x","projectHash":"y","kind":"main"}` + "\n" +
		`{"$set":{"messages":[{"id":"1","type":"user","content":[{"text":"<session_context>"}]}]}}` + "\n"
	for _, c := range []struct{ importer, fixture, meant, newer string }{
		{"codex", "codex/parent.jsonl", "rollout-1.jsonl", "rollout-2.jsonl"},
		{"gemini-cli", "gemini-cli/session.jsonl", "session-1.jsonl", "session-2.jsonl"},
	} {
		dir := t.TempDir()
		meant, err := os.ReadFile(filepath.Join("testdata", c.fixture))
		if err != nil {
			t.Fatal(err)
		}
		newer, err := os.ReadFile("testdata/codex/agent.jsonl")
		if err != nil {
			t.Fatal(err)
		}
		if c.importer == "gemini-cli" {
			newer = []byte(start)
		}
		for i, b := range [][]byte{meant, newer} {
			path := filepath.Join(dir, []string{c.meant, c.newer}[i])
			if err := os.WriteFile(path, b, 0o644); err != nil {
				t.Fatal(err)
			}
			at := time.Unix(1_700_000_000+int64(i), 0)
			if err := os.Chtimes(path, at, at); err != nil {
				t.Fatal(err)
			}
		}
		im, _ := ByName(c.importer)
		if _, r, err := readAs(t, im, dir); err != nil || filepath.Base(r.File) != c.meant || r.Turns == 0 {
			t.Errorf("%s: %v, %+v", c.importer, err, r)
		}
	}
}

// TestPacked reads a rollout that Codex packed.
func TestPacked(t *testing.T) {
	content, err := os.ReadFile("testdata/codex/made.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	want, _, err := read(t, "testdata/codex/made.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	z, err := zstd.NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := z.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	path := fixture(t, "rollout-2026-11-22T00-00-00-x.jsonl.zst", b.Bytes())
	if got, _, err := read(t, path); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%v\n%s", err, got)
	}
	cut := fixture(t, "rollout-cut.jsonl.zst", b.Bytes()[:b.Len()-9])
	var e *Error
	if _, _, err := readAs(t, &codex, cut); !errors.As(err, &e) {
		t.Errorf("a packed file that is cut: %v", err)
	}
}

// TestCrashed: NUL bytes that a crash left before a line are stepped over and said.
func TestCrashed(t *testing.T) {
	want, _, err := read(t, "testdata/codex/made.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	content, _ := os.ReadFile("testdata/codex/made.jsonl")
	lines := bytes.SplitAfter(content, []byte("\n"))
	hole := slices.Concat(bytes.Join(lines[:3], nil), make([]byte, 5000), bytes.Join(lines[3:], nil), make([]byte, 100))
	got, r, err := read(t, fixture(t, "hole.jsonl", hole))
	if err != nil || !bytes.Equal(got, want) || !slices.ContainsFunc(r.Skipped, func(s Skip) bool { return s.Count == 2 && strings.HasPrefix(s.What, "NUL") }) {
		t.Errorf("%v, %+v", err, r)
	}
}

// TestHostile: what nobody writes is an error with its line, or kept.
func TestHostile(t *testing.T) {
	head := `{"timestamp":"t","type":"session_meta","payload":{"id":"x","cli_version":"1"}}` + "\n"
	item := func(text string) string {
		return `{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"` + text + `"}]}}` + "\n"
	}
	for name, bad := range map[string]string{
		"not UTF-8":    item("a\xffb"),
		"brackets":     `{"type":"x","payload":` + strings.Repeat("[", 1_000_000) + "}\n",
		"not JSON":     "hello\n",
		"a number":     "12\n",
		"a cut escape": item(`\u12`),
	} {
		_, _, err := readAs(t, &codex, fixture(t, "bad.jsonl", []byte(head+bad+item("next"))))
		var e *Error
		if !errors.As(err, &e) || e.Line != 2 {
			t.Errorf("%s: %v", name, err)
		}
	}
	kept := `a\u0000b\ud800c 12345678901234567890`
	log, _, err := readAs(t, &codex, fixture(t, "kept.jsonl", []byte(head+item(kept))))
	if err != nil || !strings.Contains(string(log), `"goal":"a\u0000b`) {
		t.Errorf("%v\n%s", err, log)
	}
	big := strings.Repeat("x", 20<<20)
	if log, _, err := readAs(t, &codex, fixture(t, "big.jsonl", []byte(head+item(big)))); err != nil || !strings.Contains(string(log), big) {
		t.Errorf("a line of 20 MiB: %v", err)
	}
}

// TestLongLine: a line beyond the limit is an error that names the limit.
func TestLongLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "long.jsonl")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"timestamp":"t","type":"session_meta","payload":{"id":"x","cli_version":"1"}}` + "\n" + `{"type":"x","payload":"`); err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(MaxLine + 1000); err != nil { // a hole: it takes no room
		t.Fatal(err)
	}
	f.Close()
	_, _, err = readAs(t, &codex, path)
	var e *Error
	var long *jsonscan.LongLineError
	if !errors.As(err, &e) || !errors.As(err, &long) || long.Limit != MaxLine || e.Line != 2 {
		t.Errorf("%v", err)
	}
}

// TestStopped: an error of emit and an ended context stop the reading, and are returned as they are.
func TestStopped(t *testing.T) {
	stop := errors.New("stop")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	realLines(t, func(t *testing.T, path string, _ []byte) {
		i, err := Detect(path)
		if err != nil {
			t.Skip(err)
		}
		n := 0
		reading, end := context.WithCancel(context.Background())
		r, err := i.Import(reading, path, func(sessionlog.Event) error {
			n++
			end() // who reads on returns that
			return stop
		})
		if err != stop || n != 1 || r == nil { //nolint:errorlint // as it is
			t.Errorf("%v after %d events, %v", err, n, r)
		}
		if _, err := i.Import(ctx, path, func(sessionlog.Event) error { return nil }); !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want canceled", err)
		}
	})
}

// TestManySkips: a file that invents a type a line does not make a report of its own length.
func TestManySkips(t *testing.T) {
	r := newReport("x", "y")
	for i := range 10_000 {
		r.skip("a", string(rune(i)), i)
	}
	n := 0
	for _, s := range r.Skipped {
		n += s.Count
	}
	if len(r.Skipped) > maxSkips+1 || n != 10_000 {
		t.Errorf("%d skips count %d things", len(r.Skipped), n)
	}
}

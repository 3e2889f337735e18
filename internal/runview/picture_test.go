package runview

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tapedeck-dev/tapedeck/internal/vt"
	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "write the golden pictures")

var start = time.Date(2026, 11, 22, 14, 2, 11, 0, time.UTC)

// sample is a run of the first n turns, with wide characters, controls and everything that a turn can come to.
func sample(n int) *Run {
	r := &Run{ID: "20261122-140211-5f0c3a9d71e2", Agent: "name:pi", AgentName: "pi", Intent: "fix the flaky test in axis/terminal",
		Started: start, Status: InProgress}
	params := func(s string) []Field { return fieldsOf(json.RawMessage(s), keptText) }
	all := []Turn{
		{Tool: "read_file", Params: params(`{"path":"axis/terminal/follow_unix.go"}`), Output: params(`"package terminal\n\nimport (\n\t\"os\"\n)\n"`)},
		{Tool: "drive_cli", Prompt: "run the tests", Params: params(`{"prompt":"run the tests","timeout":30}`),
			Output: params(`{"stdout":"--- FAIL: TestFollow\n\u001b[31mwant 2\u001b[0m\n","exit_code":1}`), Mark: Failed, Label: "exit 1"},
		{Tool: "bash", Params: params(`{"command":"rm -rf / # 日本語のコメント"}`), Mark: Rejected, Label: "rejected", Rule: "no_rm", Param: "command",
			Reason: "param 'command' matches denied pattern 'rm -rf'"},
		{Prompt: "I shall write the file now", Mark: Said},
		{Tool: "write_file", Params: params(`{"path":"axis/terminal/follow_unix.go","content":"line one\nline two\nline three\nline four\nline five\nline six"}`),
			Output: params(`{"written":120}`)},
		{Tool: "drive_cli", Prompt: "テストを実行する", Output: params(`{"timed_out":true}`), Mark: TimedOut, Label: "timeout"},
		{Tool: "drive_cli", Prompt: "run the tests again", Output: params(`{"stdout":"ok\r\n","exit_code":0}`), Mark: Passed, Label: "exit 0"},
		{Tool: "check_outcome", Output: params(`{"passed":true}`), Mark: Passed, Label: "pass"},
	}
	for i := range n {
		t := all[i%len(all)]
		t.Index = i
		r.add(t)
	}
	return r
}

func ended(r *Run, outcome *Outcome) *Run {
	r.Status, r.Outcome, r.Ended = Completed, outcome, start.Add(102*time.Second)
	return r
}

// TestPictures holds the drawn pictures against testdata; go test -update writes them.
func TestPictures(t *testing.T) {
	const keys = "↑ ↓ another turn · end newest · q quit"
	done := &Outcome{Status: "success", Summary: "The test waits for the signal now."}
	for name, c := range map[string]struct {
		run   *Run
		frame Frame
	}{
		"waiting-80":    {&Run{}, Frame{Cols: 80, Rows: 12, News: "no run of agent pi is open: waiting for one", Keys: keys}},
		"waiting-40":    {&Run{}, Frame{Cols: 40, Rows: 12, News: "no run goes on: waiting for one", Keys: keys}},
		"first-80":      {sample(1), Frame{Cols: 80, Rows: 20, Keys: keys}},
		"rejected-120":  {sample(3), Frame{Cols: 120, Rows: 24, Keys: keys, Selected: -1}},
		"many-120":      {sample(300), Frame{Cols: 120, Rows: 24, Keys: keys, Selected: -1, Beat: 3}},
		"chosen-80":     {sample(40), Frame{Cols: 80, Rows: 24, Keys: keys, Selected: 12}},
		"narrow-40":     {sample(7), Frame{Cols: 40, Rows: 20, Keys: keys, Selected: -1}},
		"narrow-first":  {sample(40), Frame{Cols: 40, Rows: 16, Keys: keys, Selected: 0}},
		"small-40x5":    {sample(40), Frame{Cols: 40, Rows: 5, Keys: keys, Selected: -1}},
		"gone-80":       {sample(6), Frame{Cols: 80, Rows: 16, News: "the daemon is gone: trying again", Selected: -1}},
		"settled-80":    {ended(sample(8), done), Frame{Cols: 80, Rows: 24, Keys: keys, Settled: true}},
		"settled-40":    {ended(sample(40), done), Frame{Cols: 40, Rows: 12, Keys: keys, Settled: true}},
		"failed-80":     {ended(sample(2), &Outcome{Status: "failure"}), Frame{Cols: 80, Rows: 20, Settled: true}},
		"colour-80":     {sample(8), Frame{Cols: 80, Rows: 20, Keys: keys, Selected: 2, Colour: true}},
		"left-open-120": {sample(2), Frame{Cols: 120, Rows: 10, Settled: true}},
	} {
		t.Run(name, func(t *testing.T) {
			c.frame.Now = start.Add(75 * time.Second)
			got := strings.Join(c.frame.Draw(c.run), "\n") + "\n"
			golden(t, name, strings.ReplaceAll(got, "\x1b", "^"))
		})
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s (-want +got):\n%s", path, d)
	}
}

// TestPictureFits: whatever a run holds, a picture has no more rows and columns than the terminal, and no control character.
func TestPictureFits(t *testing.T) {
	text := rapid.OneOf(rapid.String(), rapid.StringN(0, 400, -1), rapid.SampledFrom([]string{"\x1b[31m", "日本語", "e\u0301", "👨‍👩‍👧‍👦", "\t\r\n", "\u202e"}))
	fields := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Field {
		f := Field{Name: text.Draw(t, "name"), Text: text.Draw(t, "text")}
		f.Len = len(f.Text) + rapid.IntRange(0, 2).Draw(t, "more")
		return f
	}), 0, 5)
	rapid.Check(t, func(t *rapid.T) {
		r := &Run{ID: text.Draw(t, "id"), Agent: text.Draw(t, "agent"), Intent: text.Draw(t, "intent"), Started: start,
			Status: rapid.SampledFrom([]string{"", InProgress, Completed, Incomplete, "?"}).Draw(t, "status")}
		for range rapid.IntRange(0, 30).Draw(t, "turns") {
			r.add(Turn{Index: len(r.Turns), Tool: text.Draw(t, "tool"), Prompt: text.Draw(t, "prompt"), Params: fields.Draw(t, "params"),
				Output: fields.Draw(t, "output"), Mark: rapid.SampledFrom([]Mark{Ran, Said, Passed, Failed, TimedOut, Rejected}).Draw(t, "mark"),
				Label: text.Draw(t, "label"), Rule: text.Draw(t, "rule"), Reason: text.Draw(t, "reason")})
		}
		if rapid.Bool().Draw(t, "outcome") {
			r.Outcome = &Outcome{Status: text.Draw(t, "outcome"), Summary: text.Draw(t, "summary")}
		}
		f := &Frame{Cols: rapid.IntRange(0, 130).Draw(t, "cols"), Rows: rapid.IntRange(0, 40).Draw(t, "rows"), Now: start,
			Selected: rapid.IntRange(-1, 40).Draw(t, "selected"), News: text.Draw(t, "news"), Settled: rapid.Bool().Draw(t, "settled")}
		lines := f.Draw(r)
		if len(lines) > f.Rows {
			t.Fatalf("%d lines on %d rows", len(lines), f.Rows)
		}
		for _, l := range lines {
			if w := vt.StringWidth(l); w > f.Cols {
				t.Fatalf("%d columns of %d: %q", w, f.Cols, l)
			}
			for _, c := range l {
				if c < 0x20 || c >= 0x7f && c < 0xa0 || c == 0x202e {
					t.Fatalf("%q holds a control character", l)
				}
			}
		}
	})
}

package compare_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/files"
	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/deck/compare"
	. "github.com/tapedeck-dev/tapedeck/deck/derive/derivetest"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A run is a recording that a test makes.
type run struct {
	*Tape
	manifest *recording.Manifest
	before   *files.Tree
	lane     string
	ms       int64 // until the end of each answer
}

func newRun(t testing.TB) *run {
	m := recording.NewManifest(time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC))
	m.State, m.Argv, m.Cwd, m.Program.Path, m.Roots.Tree = recording.StateFinished, []string{"agent"}, "/work", "/bin/agent", "/work"
	return &run{Tape: NewTape(t), manifest: m, before: &files.Tree{Root: "/work"}, lane: "llm:main"}
}

// call records a call as the classifier of a run would name it: what is asked and said makes the difference.
func (r *run) call(model, request, response string) {
	r.At++
	k := &tape.LLMCall{Provider: "anthropic", Endpoint: "messages", Model: model, Usage: json.RawMessage(`{"input_tokens":1000,"output_tokens":100}`)}
	k.Lane, k.Arrival, k.Status, k.Method, k.URL = r.lane, r.At, 200, "POST", "https://api.anthropic.com/v1/messages"
	k.RequestDigest = cas.Sum([]byte(request))
	k.RequestPayload, k.Response = r.Payload(request), r.Payload(response)
	k.Stream = []tape.Chunk{{TMS: r.ms, Length: int64(len(response))}}
	r.Record(k)
}

func (r *run) write(path, content string) {
	w := &tape.FileWrite{}
	w.Path, w.Mode, w.ContentHash, w.LenBytes, w.Content = path, "100644", cas.Sum([]byte(content)), int64(len(content)), r.Payload(content)
	r.Record(w)
}

// found puts a file into the work tree as the run finds it.
func (r *run) found(path, content string) {
	d, err := r.Store.Put([]byte(content))
	if err != nil {
		r.T.Fatal(err)
	}
	r.before.Entries = append(r.before.Entries, files.Entry{Path: path, Mode: 0o100644, Size: int64(len(content)), Digest: d})
}

// end ends the run and opens its recording.
func (r *run) end(exit int, ms int64) *recording.Recording {
	r.T.Helper()
	r.Record(&tape.ProcessSpawn{Program: "/bin/agent", SpawnID: 1, ExitCode: exit, DurationMS: ms})
	r.Close()
	dir := filepath.Dir(r.Path)
	var tree bytes.Buffer
	r.manifest.Exit = &recording.Exit{Code: exit}
	for _, err := range []error{
		os.MkdirAll(r.Path+tape.StoreSuffix, 0o700), os.Rename(r.Path, filepath.Join(dir, recording.TapeName)), os.Rename(r.Path+tape.StoreSuffix, filepath.Join(dir, recording.TapeName+tape.StoreSuffix)),
		r.before.Encode(&tree), os.WriteFile(filepath.Join(dir, recording.TreeName), tree.Bytes(), 0o600), r.manifest.Write(dir, false),
	} {
		if err != nil {
			r.T.Fatal(err)
		}
	}
	rec, err := recording.Open(dir)
	if err != nil {
		r.T.Fatal(err)
	}
	return rec
}

func edits(id, path, text string) string {
	return fmt.Sprintf(`{"type":"message","content":[{"type":"tool_use","id":%q,"name":"write","input":{"path":%q,"text":%q}}],"stop_reason":"tool_use"}`, id, path, text)
}

// agent is a run that reads and then writes a file.
func agent(t testing.TB, model, text string) *run { return newRun(t).agent(model, text) }

func (r *run) agent(model, text string) *run {
	r.found("a.txt", "old")
	ask := User("write a.txt")
	r.call("m", Asks("be kind", ReadTool, ask), Calls("toolu_1"))
	read := []string{ask, Uses("toolu_1"), Gives("toolu_1", "old")}
	r.call(model, Asks("be kind", ReadTool, read...), edits("toolu_2", "a.txt", text))
	r.write("a.txt", text)
	r.call(model, Asks("be kind", ReadTool, append(read, Model(text), Gives("toolu_2", "ok"))...), Says("done"))
	return r
}

func compared(t *testing.T, o *compare.Options, recs ...*recording.Recording) *compare.Comparison {
	t.Helper()
	c, err := compare.Run(context.Background(), recs, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestFirstDifference(t *testing.T) {
	first := agent(t, "m", "new").end(0, 1000)
	same, other, dearer := agent(t, "m", "new").end(0, 1000), agent(t, "m", "newer").end(0, 1000), agent(t, "n", "new").end(0, 1000)
	c := compared(t, nil, first, same, other, dearer)
	if c.Same != 1 || !c.Differ || len(c.Groups) != 0 {
		t.Errorf("same %d, differ %t, groups %d", c.Same, c.Differ, len(c.Groups))
	}
	if r := c.Rows[1]; r.Leaves != nil || r.Same != 3 || len(r.Files) > 0 || len(r.Tools[0].Other) > 0 {
		t.Errorf("an equal one: %+v", r)
	}
	r := c.Rows[2]
	if r.Leaves == nil || r.Leaves.Turn != 2 || r.Leaves.What != compare.ByTools || r.Same != 1 || r.After.Turns != 2 {
		t.Errorf("other arguments: %+v, %+v", r.Leaves, r.After)
	}
	if len(r.Files) != 1 || r.Files[0].Path != "a.txt" || len(r.Tools) != 2 || len(r.Tools[1].Other) != 1 || !strings.Contains(r.Tools[1].Other[0].Arguments, "newer") {
		t.Errorf("other arguments: files %+v, tools %+v", r.Files, r.Tools)
	}
	if r := c.Rows[3]; r.Leaves == nil || r.Leaves.What != compare.ByModel || r.Leaves.First != "m" || r.Leaves.Other != "n" || len(r.Files) > 0 {
		t.Errorf("another model: %+v, files %+v", r.Leaves, r.Files)
	}
}

// TestAnotherLane: a conversation goes on in another lane where its system text is another, and helpers beside it are held against helpers.
func TestAnotherLane(t *testing.T) {
	make := func(system, title string) *recording.Recording {
		r := newRun(t)
		r.call("m", Asks("be kind", ReadTool, User("go")), Calls("toolu_1"))
		r.lane = "llm:title"
		r.call("m", Asks("a title", "", User("go")), Says(title))
		r.lane = "llm:" + system
		r.call("m", Asks(system, ReadTool, User("go"), Uses("toolu_1"), Gives("toolu_1", "ok")), Says("done"))
		return r.end(0, 1)
	}
	first := newRun(t)
	first.call("m", Asks("be kind", ReadTool, User("go")), Calls("toolu_1"))
	first.call("m", Asks("be kind", ReadTool, User("go"), Uses("toolu_1"), Gives("toolu_1", "ok")), Says("done"))
	first.lane = "llm:title"
	first.call("m", Asks("a title", "", User("go")), Says("Going"))
	c := compared(t, nil, first.end(0, 1), make("be rude", "Going"), make("be rude", "Gone"))
	for i, r := range c.Rows[1:] {
		if d := r.Leaves; d == nil || d.Turn != 2 || d.What != compare.ByPrompt || d.Conversation != "llm:main" {
			t.Errorf("%d: %+v", i+2, d)
		}
	}
	if c.Rows[1].Same != 2 || c.Rows[2].Same != 1 || c.Same != 1 {
		t.Errorf("same %d, %d, %d", c.Rows[1].Same, c.Rows[2].Same, c.Same)
	}
}

// TestOnlyOneChanged: a file that one run changed is held against what the other found there.
func TestOnlyOneChanged(t *testing.T) {
	first := agent(t, "m", "new").end(0, 1000)
	idle, back := newRun(t), newRun(t)
	idle.found("a.txt", "old")
	back.found("a.txt", "new")
	c := compared(t, nil, first, idle.end(0, 1), back.end(0, 1))
	if files := c.Rows[1].Files; len(files) != 1 || files[0].Path != "a.txt" {
		t.Errorf("left as it was: %+v", files)
	}
	if files := c.Rows[2].Files; len(files) != 0 || len(c.Notes) != 1 || !strings.HasPrefix(c.Notes[0], "3 found another work tree") {
		t.Errorf("found as the other left it: %+v, %q", files, c.Notes)
	}
	if d := c.Rows[1].Leaves; d == nil || d.What != compare.ByEnd || d.Turn != 1 {
		t.Errorf("no model: %+v", d)
	}
}

func TestCheck(t *testing.T) {
	unfinished := agent(t, "m", "new")
	unfinished.manifest.State = recording.StateRecording
	recs := []*recording.Recording{agent(t, "m", "new").end(0, 1), agent(t, "m", "newer").end(0, 1), unfinished.end(0, 1)}
	c := compared(t, &compare.Options{Verify: `echo seen >&2; test "$(cat a.txt)" = new`, Jobs: 2}, recs...)
	if k := c.Rows[0].Check; !k.Passed() || k.Output != "" {
		t.Errorf("%+v", k)
	}
	if k := c.Rows[1].Check; k.Passed() || k.Exit != 1 || k.Output != "seen\n" {
		t.Errorf("%+v", k)
	}
	if k := c.Rows[2].Check; k.Passed() || !strings.Contains(k.Why, "unfinished") {
		t.Errorf("%+v", k)
	}
	if failed := c.Failed(); len(failed) != 2 || failed[0] != c.Rows[1] {
		t.Errorf("%d failed", len(failed))
	}
}

// TestCheckHangs: a command that does not end is ended with all that it started, and nothing of it stays.
func TestCheckHangs(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	recs := []*recording.Recording{agent(t, "m", "new").end(0, 1), agent(t, "m", "new").end(0, 1)}
	c := compared(t, &compare.Options{Verify: "sleep 300 & wait", Timeout: 300 * time.Millisecond}, recs...)
	for _, r := range c.Rows {
		if !r.Check.TimedOut || r.Check.Passed() {
			t.Errorf("%+v", r.Check)
		}
	}
	left, err := filepath.Glob(filepath.Join(temp, "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	recs := []*recording.Recording{agent(t, "m", "new").end(0, 1), agent(t, "m", "new").end(0, 1)}
	if _, err := compare.Run(ctx, recs, nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// forkOf makes a fork of a parent at its second turn, each of whose answers takes so many ms.
func forkOf(t *testing.T, parent *recording.Recording, model string, exit int, ms int64, change func(m *recording.Manifest)) *recording.Recording {
	r, seq := newRun(t), uint64(2)
	r.ms = ms
	r.manifest.Parent, r.manifest.ForkSeq = &parent.Manifest.ID, &seq
	r.manifest.Fork = &recording.Fork{Live: true, Lane: "llm:main", Turn: 2, Changes: json.RawMessage(fmt.Sprintf(`{"model":%q}`, model))}
	if change != nil {
		change(r.manifest)
	}
	return r.agent(model, "newer").end(exit, 60_000)
}

func numbersOf(g *compare.Group) map[string]compare.Number {
	numbers := make(map[string]compare.Number)
	for _, n := range g.Numbers {
		numbers[n.Name] = n
	}
	return numbers
}

// TestGroups: runs of one fork are samples, and what differs by more than chance is told from what does not. They count from the point on,
// and so does their parent; its time is not theirs.
func TestGroups(t *testing.T) {
	prices, err := llm.DefaultPrices().With(map[string]llm.Rates{"m": rates(1, 5), "n": rates(1, 5)})
	if err != nil {
		t.Fatal(err)
	}
	parent := agent(t, "m", "new").end(0, 1000)
	recs, slower := []*recording.Recording{parent}, []*recording.Recording{}
	for i := range 4 {
		recs = append(recs, forkOf(t, parent, "m", i%2, 1000+int64(i)*10, nil))
		slower = append(slower, forkOf(t, parent, "n", 0, 9000+int64(i)*10, nil))
	}
	c := compared(t, &compare.Options{Prices: prices}, append(recs, slower...)...)
	if len(c.Groups) != 3 || len(c.Groups[1].Members) != 4 || len(c.Groups[2].Members) != 4 {
		t.Fatalf("groups %+v", c.Groups)
	}
	own, was := numbersOf(c.Groups[1]), numbersOf(c.Groups[0])
	if own["time"].Verdict != "" || own["passed"].Verdict != compare.Noise || own["cost"].Verdict != compare.Noise {
		t.Errorf("against the parent: %+v", own)
	}
	if was["turns"].Sample.Mean != 2 || own["turns"].Sample.Mean != 2 || own["tokens in"].Sample.Mean != 2000 || own["time"].Sample.Mean != 2.03 {
		t.Errorf("from the point on: %+v, the parent %+v", own, was)
	}
	if c.Groups[0].Counted != compare.FromPoint {
		t.Errorf("the parent counts %s", c.Groups[0].Counted)
	}
	var text bytes.Buffer
	if err := c.Write(&text, compare.Form{}); err != nil || !strings.Contains(text.String(), "noise") || !strings.Contains(text.String(), "2 to 5") {
		t.Errorf("%v:\n%s", err, text.String())
	}
	c = compared(t, &compare.Options{Prices: prices}, append(recs[1:], slower...)...)
	if n := numbersOf(c.Groups[1])["time"]; n.Verdict != compare.Regression {
		t.Errorf("forks against forks: %+v", n)
	}
}

// TestToolServersOfGroups: a fork in which a tool server answered itself is another kind of run.
func TestToolServersOfGroups(t *testing.T) {
	parent := agent(t, "m", "new").end(0, 1000)
	var recs []*recording.Recording
	for _, servers := range [][]string{nil, nil, {"a", "b"}, {"b", "a"}} {
		recs = append(recs, forkOf(t, parent, "m", 0, 10, func(m *recording.Manifest) { m.Fork.MCP = servers }))
	}
	if c := compared(t, nil, recs...); len(c.Groups) != 2 || len(c.Groups[1].Members) != 2 {
		t.Errorf("groups %+v", c.Groups)
	}
}

// TestWithoutSpread: runs of which one is as the other say nothing of chance.
func TestWithoutSpread(t *testing.T) {
	parent := agent(t, "m", "new").end(0, 1000)
	fork := func(model string, ms int64) *recording.Recording { return forkOf(t, parent, model, 0, ms, nil) }
	c := compared(t, nil, fork("m", 1000), fork("m", 1000), fork("n", 9000), fork("n", 9000))
	if n := numbersOf(c.Groups[1])["time"]; n.Apart != nil || n.Verdict != "" {
		t.Errorf("%+v", n)
	}
}

// TestParentIsAFork: it is held against its own forks as any parent is.
func TestParentIsAFork(t *testing.T) {
	parent := forkOf(t, agent(t, "m", "new").end(0, 1000), "m", 0, 10, nil)
	c := compared(t, nil, parent, forkOf(t, parent, "n", 0, 10, nil), forkOf(t, parent, "n", 0, 20, nil))
	n := numbersOf(c.Groups[1])
	if n["turns"].Verdict != compare.Noise || n["time"].Verdict != "" {
		t.Errorf("%+v", n)
	}
}

// TestOtherRun: of forks and a run that is not their parent nothing compares but what passed.
func TestOtherRun(t *testing.T) {
	parent, stranger := agent(t, "m", "new").end(0, 1000), agent(t, "m", "new")
	stranger.manifest.ID = "20261122-000000-0000"
	c := compared(t, nil, stranger.end(0, 1000), forkOf(t, parent, "m", 0, 10, nil), forkOf(t, parent, "m", 0, 20, nil))
	if c.Groups[0].Counted != compare.Whole || numbersOf(c.Groups[0])["turns"].Sample.Mean != 3 {
		t.Errorf("%+v", c.Groups[0])
	}
	for _, n := range c.Groups[1].Numbers {
		if (n.Verdict != "") != (n.Name == "passed") {
			t.Errorf("%+v", n)
		}
	}
}

// TestOtherServers: forks that asked other servers are another group.
func TestOtherServers(t *testing.T) {
	parent := agent(t, "m", "new").end(0, 1000)
	at := func(url string) func(m *recording.Manifest) {
		return func(m *recording.Manifest) {
			m.Again = &recording.Again{Upstreams: map[string]string{"api.anthropic.com": url}}
		}
	}
	var recs []*recording.Recording
	for _, url := range []string{"http://127.0.0.1:1", "http://127.0.0.1:1", "http://127.0.0.1:2", "http://127.0.0.1:2"} {
		recs = append(recs, forkOf(t, parent, "m", 0, 1000, at(url)))
	}
	if c := compared(t, nil, recs...); len(c.Groups) != 2 || len(c.Groups[0].Members) != 2 {
		t.Errorf("%d groups", len(c.Groups))
	}
}

// TestFailedForks: a fork that did not come to its end did not pass, whatever its program said, and counts in nothing else.
func TestFailedForks(t *testing.T) {
	parent := agent(t, "m", "new").end(0, 1000)
	failed := forkOf(t, parent, "m", 0, 90_000, func(m *recording.Manifest) { m.Fork.Failed = "turn 2: status 529" })
	c := compared(t, &compare.Options{Verify: "true"}, forkOf(t, parent, "m", 0, 1000, nil), forkOf(t, parent, "m", 0, 1000, nil), failed)
	n := numbersOf(c.Groups[0])
	if s := n["passed"].Sample; s.N != 3 || s.Mean < 0.66 || s.Mean > 0.67 {
		t.Errorf("passed: %+v", s)
	}
	if s := n["time"].Sample; s == nil || s.N != 2 || s.Mean != 2 {
		t.Errorf("time: %+v", s)
	}
}

func rates(in, out float64) llm.Rates { return llm.Rates{Input: &in, Output: &out} }

// TestUnknown: what has no price is unknown in every form, and never 0.
func TestUnknown(t *testing.T) {
	c := compared(t, nil, agent(t, "m", "a").end(0, 1), agent(t, "m", "b").end(0, 1))
	b, err := json.Marshal(c)
	if err != nil || !strings.Contains(string(b), `"cost_usd":null`) || strings.Contains(string(b), `"cost_usd":0`) || !strings.Contains(string(b), `"n":2`) {
		t.Errorf("%s, %v", b, err)
	}
	for _, f := range []compare.Form{{}, {Markdown: true}, {Colour: true}} {
		var text bytes.Buffer
		if err := c.Write(&text, f); err != nil || strings.Count(text.String(), "unknown") < 2 || !strings.Contains(text.String(), "no price is known for m") {
			t.Errorf("%+v, %v:\n%s", f, err, text.String())
		}
	}
}

// TestMarkdownIsData: nothing in a recording steers a page or a terminal.
func TestMarkdownIsData(t *testing.T) {
	o := &compare.Options{Verify: `printf '# heading\n- item\n1. item\n~~gone~~ @team &lt;\n'; false`}
	c := compared(t, o, agent(t, "m", "a").end(0, 1), agent(t, "m", "<b>|x|\x1b[31m").end(0, 1))
	for _, f := range []compare.Form{{}, {Markdown: true}} {
		var text bytes.Buffer
		if err := c.Write(&text, f); err != nil || strings.Contains(text.String(), "\x1b") || f.Markdown && strings.Contains(text.String(), "<b>") {
			t.Errorf("%+v, %v:\n%s", f, err, text.String())
		}
		for _, steers := range []string{"- # heading", "- - item", "- 1. item", "~~", "@team", "&lt;"} {
			if f.Markdown && strings.Contains(text.String(), steers) {
				t.Errorf("%q is there:\n%s", steers, text.String())
			}
		}
	}
}

// TestKeys: which keys the JSON of a comparison has does not depend on what was found.
func TestKeys(t *testing.T) {
	b, err := json.Marshal(compared(t, nil, agent(t, "m", "a").end(0, 1), agent(t, "m", "a").end(0, 1)))
	for _, key := range []string{`"check":null`, `"more":0`, `"leaves":null`, `"groups":[]`, `"notes":[`} {
		if err != nil || !strings.Contains(string(b), key) {
			t.Errorf("%s is not there, %v: %s", key, err, b)
		}
	}
}

// BenchmarkRun compares 100 recordings of 50 turns whose histories grow to 120 kB.
func BenchmarkRun(b *testing.B) {
	var recs []*recording.Recording
	result := strings.Repeat("a line of a file that a tool gave\n", 60)
	for i := range compare.Most {
		r := newRun(b)
		history := []string{User("work")}
		for turn := range 50 {
			id := fmt.Sprint("toolu_", turn)
			r.call("m", Asks(strings.Repeat("be kind ", 500), ReadTool, history...), edits(id, "a.txt", fmt.Sprint(turn, turn > 25 && i%2 == 1)))
			history = append(history, Uses(id), Gives(id, result))
			r.write("a.txt", fmt.Sprint(turn, i))
		}
		recs = append(recs, r.end(0, 1000))
	}
	b.ResetTimer()
	for range b.N {
		if c, err := compare.Run(context.Background(), recs, nil); err != nil || c.Same < 20 || c.Rows[1].Total.Turns != 50 {
			b.Fatal(err, c.Same)
		}
	}
}

package fidelity

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tapedeck-dev/tapedeck/fidelity/internal/bodies"
	"github.com/tapedeck-dev/tapedeck/fidelity/internal/columns"
	"github.com/tapedeck-dev/tapedeck/tape"
)

func TestDiffNamesWhatChanged(t *testing.T) {
	part := func(name, content string) string {
		return "--b\r\nContent-Disposition: form-data; name=\"" + name + "\"; filename=\"x\"\r\n\r\n" + content + "\r\n--b--\r\n"
	}
	tests := []struct{ name, a, b, want string }{
		{
			"a word of a message", `{"messages":[{"role":"user","content":[{"type":"text","text":"write hello.txt"}]}]}`,
			`{"messages":[{"role":"user","content":[{"type":"text","text":"write bye.txt"}]}]}`,
			"messages[0].content[0].text (user)\n  - \"write hello.txt\"\n  + \"write bye.txt\"",
		},
		{
			"a tool that was added", `{"tools":[{"name":"read"},{"name":"write"}]}`, `{"tools":[{"name":"read"},{"name":"bash"},{"name":"write"}]}`,
			"tools[1] \"bash\" added\n  + {\"name\":\"bash\"}",
		},
		{
			"a tool of another provider that was removed", `{"tools":[{"type":"function","function":{"name":"read"}}]}`, `{"tools":[]}`,
			"tools[0] \"read\" removed\n  - {\"type\":\"function\",\"function\":{\"name\":\"read\"}}",
		},
		{
			"tools in another order", `{"tools":[{"name":"read"},{"name":"write"}]}`, `{"tools":[{"name":"write"},{"name":"read"}]}`,
			"tools[0] \"read\" moved to tools[1]",
		},
		{
			"the model before the messages", `{"messages":["a"],"model":"m-1","temperature":0}`, `{"messages":["b"],"model":"m-2","temperature":0.5}`,
			"model\n  - \"m-1\"\n  + \"m-2\"\ntemperature\n  - 0\n  + 0.5\nmessages[0]\n  - \"a\"\n  + \"b\"",
		},
		{
			"a line of a long text", `{"system":"one\ntwo\nthree"}`, `{"system":"one\ntwo\nTHREE"}`,
			"system, line 3\n  - \"one\\ntwo\\nthree\"\n  + \"one\\ntwo\\nTHREE\"",
		},
		{"a form", "drink=tea&note=no+sugar", "drink=tea&note=two+sugars", "form.note\n  - \"no sugar\"\n  + \"two sugars\""},
		{"multipart", part("file", "old"), part("file", "new"), "parts.file.content\n  - \"old\"\n  + \"new\""},
		{
			"a part that is no text", part("file", strings.Repeat("\x89PNG\x00", 100)+"\x01"), part("file", strings.Repeat("\x89PNG\x00", 100)+"\x02"),
			"parts.file.content\n  - \"…4e 47 00 89 50 4e 47 00 01\"\n  + \"…4e 47 00 89 50 4e 47 00 02\"",
		},
		{"JSON of bytes that are no text", "{\"e\":\"a\xff\"}", "{\"e\":\"a\xfe\"}", "e\n  - \"a\\xff\"\n  + \"a\\xfe\""},
		{
			"an event stream", "event: e\ndata: {\"delta\":{\"text\":\"tea\"}}\n\n", "event: e\ndata: {\"delta\":{\"text\":\"water\"}}\n\n",
			"events[0].data.delta.text\n  - \"tea\"\n  + \"water\"",
		},
		{"an inserted line", "a\nb\nc\n", "a\nx\nb\nC\n", "line 2 added\n  + \"x\"\nline 4 (was line 3)\n  - \"c\"\n  + \"C\""},
		{"bytes", "\x89PNG\x00\x01", "\x89PNG\x00\x02\x03", "byte 5\n  - 6 bytes, here 01\n  + 7 bytes, here 02 03"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if d := cmp.Diff(tt.want, Summary(DiffJSON([]byte(tt.a), []byte(tt.b)), 0)); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
		})
	}
}

// run is what a small agent does: it asks, runs a tool, tells the model, and writes a file.
func agentRun(prompt, tool, content string, code int) []tape.Kind {
	ask := func(more string) string {
		return `{"model":"m","messages":[{"role":"user","content":` + bodies.Quote(prompt) + `}` + more + `]}`
	}
	test := &tape.ProcessSpawn{
		Program: "/usr/bin/make", Args: []string{"test"}, Stdout: inline(tool), StdoutDigest: sum(tool), SpawnID: 2, ParentSpawnID: 1,
	}
	told := ask(`,{"role":"assistant","content":"running"},{"role":"user","content":` + bodies.Quote("make says: "+tool) + `}`)
	return []tape.Kind{
		call("llm:a", 1, ask(""), "running"), test, call("llm:a", 2, told, "done"), wrote("notes.txt", content), program("done\n", code, prompt),
	}
}

// stories are pairs of runs in which one thing changed; their verdicts stand in testdata/stories.
func stories() map[string][2][]tape.Kind {
	base := func() []tape.Kind { return agentRun("fix the tests", "3 passed\n", "all good\n", 0) }
	more := func(kinds ...tape.Kind) []tape.Kind { return append(base(), kinds...) }
	post := func(arrival uint64, body string) tape.Kind {
		x := get("http://h.test/things", arrival, 200)
		x.Method, x.RequestPayload, x.RequestDigest = "POST", inline(body), sum(body)
		return x
	}
	model := base()
	model[0].(*tape.LLMCall).Model = "m-2"
	return map[string][2][]tape.Kind{
		"prompt":      {base(), agentRun("fix the types", "3 passed\n", "all good\n", 0)},
		"tool-output": {base(), agentRun("fix the tests", "2 passed, 1 failed: test_login\n", "all good\n", 0)},
		"file":        {base(), agentRun("fix the tests", "3 passed\n", "all good\nbut slow\n", 0)},
		"exit":        {base(), agentRun("fix the tests", "3 passed\n", "all good\n", 3)},
		"model":       {base(), model},
		"extra-call":  {base(), more(post(3, "drink=tea"))},
		"missing":     {more(post(3, "drink=tea"), post(4, "drink=milk")), more(post(3, "drink=milk"))},
		"reordered":   {more(post(3, "drink=tea"), post(4, "drink=milk")), more(post(3, "drink=milk"), post(4, "drink=tea"))},
		"refused": {base(), []tape.Kind{
			refused(1, `{"model":"m","messages":[{"role":"user","content":"fix the types"}]}`, "nearest is record 0"),
			program("error\n", 1, "fix the types"),
		}},
	}
}

// TestStories compares runs in which one thing changed, and holds what a person is told against testdata/stories.
func TestStories(t *testing.T) {
	for name, s := range stories() {
		for _, beside := range []bool{false, true} {
			file := name + ".txt"
			if beside {
				file = name + ".beside.txt"
			}
			t.Run(file, func(t *testing.T) {
				var got bytes.Buffer
				r := compareLanes(t, Semantic, s[0], s[1], &LaneOptions{Masks: digitMasks})
				if err := r.WriteText(&got, &TextOptions{SideBySide: beside}); err != nil {
					t.Fatal(err)
				}
				golden(t, filepath.Join("testdata", "stories", file), got.String())
			})
		}
	}
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

// A divergence follows from an earlier one only where its new text stands there, and did not as recorded.
func TestFollows(t *testing.T) {
	got := compareLanes(t, Semantic, stories()["tool-output"][0], stories()["tool-output"][1], nil)
	if d := cmp.Diff([]code{{"process:make test", ProcessStdoutHash}, {"llm:a", LLMRequestDigest}}, codes(got)); d != "" {
		t.Fatal(d)
	}
	if first := got.Divergences[0].Follows; first != "" {
		t.Errorf("the first divergence follows from %q", first)
	}
	if second := got.Divergences[1].Follows; !strings.Contains(second, "seq 1") || !strings.Contains(second, "test_login") {
		t.Errorf("the request follows from %q", second)
	}
	unrelated := compareLanes(t, Semantic, agentRun("fix it", "a\n", "x\n", 0), agentRun("fix it", "a\n", "unheard of\n", 7), nil)
	for _, d := range unrelated.Divergences {
		if d.Follows != "" {
			t.Errorf("%s follows from %q", d.Category, d.Follows)
		}
	}
}

func TestFollowsFromAnInput(t *testing.T) {
	notes := map[Side]string{Recorded: "buy milk", Replay: "buy oranges"}
	o := &LaneOptions{Masks: digitMasks, Inputs: []Input{{
		Name: "the file notes.md", Bytes: func(s Side) ([]byte, error) { return []byte(notes[s]), nil },
	}}}
	ask := func(what string) tape.Kind {
		return call("llm:a", 1, `{"messages":[{"role":"user","content":"notes: `+what+`"}]}`, "x")
	}
	got := compareLanes(t, Semantic, []tape.Kind{ask("buy milk")}, []tape.Kind{ask("buy oranges")}, o)
	if len(got.Divergences) != 1 || !strings.Contains(got.Divergences[0].Follows, "notes.md") {
		t.Errorf("%+v", got.Divergences)
	}
}

func TestOneMovedRecordIsOneDivergenceAligned(t *testing.T) {
	kinds := []tape.Kind{}
	for _, name := range strings.Fields("A B C D E F") {
		kinds = append(kinds, &tape.EnvRead{VarName: name})
	}
	moved := []tape.Kind{kinds[1], kinds[2], kinds[3], kinds[4], kinds[0], kinds[5]}
	got, err := CompareTapes(Semantic, tapeOf(kinds...), tapeOf(moved...), &TapeOptions{Aligned: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Divergences) != 1 || got.Divergences[0].Category != RecordMoved || *got.Divergences[0].Seq != 0 || *got.Divergences[0].ReplaySeq != 4 {
		t.Errorf("%+v", got.Divergences)
	}
}

func TestManyInsertedRecordsAreCounted(t *testing.T) {
	a := []tape.Kind{&tape.ClockSleep{DurationMS: 1}, &tape.ClockSleep{DurationMS: 2}}
	b := []tape.Kind{a[0], &tape.EnvRead{VarName: "FIRST"}}
	for range 300 {
		b = append(b, &tape.EnvRead{VarName: "X"})
	}
	got, err := CompareTapes(Semantic, tapeOf(a...), tapeOf(append(b, a[1])...), &TapeOptions{Aligned: true})
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := got.WriteText(&text, nil); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(text.String(), "\n"); len(got.Divergences) != 301 || n > 10 {
		t.Errorf("%d divergences in %d lines:\n%s", len(got.Divergences), n, &text)
	}
}

// In columns the bar stands in one place, whatever is on its sides.
func TestColumnsStandBelowEachOther(t *testing.T) {
	long := strings.Repeat("many words 漢字かな e\u0301 ", 30)
	d := Divergence{Category: LLMRequestDigest, Message: "m", Recorded: "a", Replay: "b"}
	d.show([]Change{ch("x", Changed, long+"left", long+"right"), ch("y", Added, "", strings.Repeat("z", 300))})
	r := newReport(Semantic)
	r.add(d)
	for _, width := range []int{1, 40, 61, 100, 200} {
		var got bytes.Buffer
		if err := r.WriteText(&got, &TextOptions{SideBySide: true, Width: width}); err != nil {
			t.Fatal(err)
		}
		at, bars := -1, 0
		for line := range strings.Lines(got.String()) {
			before, _, ok := strings.Cut(line, "│")
			if !ok {
				continue
			}
			bars++
			if n := columns.Width(before); at >= 0 && n != at {
				t.Errorf("width %d: the bar in columns %d and %d:\n%s", width, at, n, &got)
			} else {
				at = n
			}
			if n := columns.Width(strings.TrimSuffix(line, "\n")); n > max(width, 40) {
				t.Errorf("width %d: a line of %d columns: %s", width, n, line)
			}
		}
		if bars < 4 {
			t.Errorf("width %d: %d rows", width, bars)
		}
	}
}

func TestColoursMarkTheWordsThatDiffer(t *testing.T) {
	d := Divergence{Category: LLMRequestDigest, Message: "m", Recorded: "a", Replay: "a"}
	d.show([]Change{ch("x", Changed, `"write hello.txt"`, `"write bye.txt"`)})
	r := newReport(Semantic)
	r.add(d)
	for _, beside := range []bool{false, true} {
		var got bytes.Buffer
		if err := r.WriteText(&got, &TextOptions{SideBySide: beside, Color: true, Width: 120}); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"hello" + reset, "bye" + reset} {
			if !strings.Contains(got.String(), want) {
				t.Errorf("beside %v: %q has no %q", beside, got.String(), want)
			}
		}
	}
}

// TestExplainParts: what a part that is a file holds is told, though a request compares by its digest.
func TestExplainParts(t *testing.T) {
	upload := func(content string, arrival uint64) *tape.HTTPExchange {
		k := get("http://h/upload", arrival, 200)
		k.RequestPayload = inline("--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"x\"\r\n\r\n" + content + "\r\n--b--\r\n")
		k.RequestDigest = sum(content)
		return k
	}
	fresh := upload("hello Part", 1)
	fresh.Status, fresh.Lane, fresh.Error = 400, laneUnmatched, "not on the tape"
	o := &LaneOptions{Request: func(_ *tape.Exchange, body []byte) (surface, params []byte) {
		return []byte(`{"digest":"` + sum(string(body)).String() + `"}`), nil
	}}
	r, err := CompareLanes(Semantic, tapeOf(upload("hello part", 1)), tapeOf(fresh), o)
	if err != nil {
		t.Fatal(err)
	}
	want := []Change{ch("parts.f.content", Changed, `"hello part"`, `"hello Part"`)}
	if diff := cmp.Diff(want, bare(r.Divergences[0].Changes)); diff != "" {
		t.Error(diff)
	}
}

// TestFirstIsWhatWasLeftOut: a request that was never asked for is the first divergence where the replay asked for what its thread had
// asked for next, and only then for what nothing answered.
func TestFirstIsWhatWasLeftOut(t *testing.T) {
	asked := func(host string, by, n uint64) *tape.HTTPExchange {
		k := get(fmt.Sprintf("http://%s/%d", host, n), n, 200)
		k.Extra = append(tape.NumberField(tape.PlaceKey, n), tape.NumberField(tape.OpenerKey, by)...)
		return k
	}
	undated := get("http://h/0", 0, 200)
	undated.Extra = tape.NumberField(tape.OpenerKey, 1)
	fresh := get("http://g/new", 3, 400)
	fresh.Lane, fresh.Error = laneUnmatched, "not on the tape"
	for by, first := range map[uint64]Category{1: MissingInReplay, 2: MissingInRecorded} {
		for _, other := range []string{"h", "i"} { // of another host
			r, err := CompareLanes(Semantic, tapeOf(undated, asked("h", 1, 1), asked(other, by, 2), asked("h", 1, 9)), tapeOf(undated, asked("h", 1, 1), asked("h", 1, 9), fresh), nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := r.Divergences[0]; len(r.Divergences) != 2 || got.Category != first || got.Follows != "" {
				t.Errorf("of %s by %d: %v", other, by, r.Divergences)
			}
		}
	}
}

// TestFirstIsWhatNothingAnswered: what a process never asked for, since nothing answered what it asked for before, is not the first divergence where
// its timers had it ask for what came behind both by then.
func TestFirstIsWhatNothingAnswered(t *testing.T) {
	asked := func(url string, at uint64) *tape.HTTPExchange {
		k := get(url, at, 200)
		k.Extra = append(tape.NumberField(tape.PlaceKey, at), tape.NumberField(tape.OpenerKey, 1)...)
		return k
	}
	first, then, behind := asked("http://h/old", 1), asked("http://h/then", 10), asked("http://i/behind", 20)
	fresh := get("http://h/new", 3, 400)
	fresh.Lane, fresh.Error = laneUnmatched, "not on the tape"
	r, err := CompareLanes(Semantic, tapeOf(get("http://h/0", 0, 200), first, then, behind), tapeOf(get("http://h/0", 0, 200), behind, fresh), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Divergences[0]; len(r.Divergences) != 3 || got.Category != MissingInRecorded {
		t.Error(r.Divergences)
	}
}

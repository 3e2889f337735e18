package deck

import (
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A talkTape is a tape that a test makes record by record.
type talkTape struct {
	t     testing.TB
	path  string
	f     *os.File
	store *cas.Dir
	rec   *tape.Recorder
	at    uint64 // arrival
}

func newTalkTape(t testing.TB) *talkTape {
	t.Helper()
	tt := &talkTape{t: t, path: filepath.Join(t.TempDir(), "x.tape")}
	var err error
	if tt.f, err = os.Create(tt.path); err != nil {
		t.Fatal(err)
	}
	w, err := tape.NewWriter(tt.f, &tape.Header{Producer: Producer, Argv: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	if tt.store, err = cas.OpenDir(tt.path+tape.StoreSuffix, nil); err != nil {
		t.Fatal(err)
	}
	tt.rec = tape.NewRecorder(w, nil)
	return tt
}

func (tt *talkTape) record(k tape.Kind) {
	tt.t.Helper()
	if err := tt.rec.Record(k); err != nil {
		tt.t.Fatal(err)
	}
}

// call records a call of Anthropic's messages in a lane, whose answer is said or, where that is no JSON, cut.
func (tt *talkTape) call(lane, request, response string) *tape.LLMCall {
	tt.t.Helper()
	tt.at++
	k := &tape.LLMCall{Provider: "anthropic", Endpoint: "messages", Model: "m", Usage: json.RawMessage(`{"input_tokens":10,"output_tokens":1}`)}
	k.Lane, k.Arrival, k.Status, k.URL = lane, tt.at, 200, "https://api.anthropic.com/v1/messages"
	k.RequestPayload, k.Response = tt.payload(request), tt.payload(response)
	tt.record(k)
	return k
}

func (tt *talkTape) payload(s string) *tape.Payload {
	tt.t.Helper()
	p, err := tape.MakePayload(tt.store, []byte(s))
	if err != nil {
		tt.t.Fatal(err)
	}
	return p
}

// close ends the tape.
func (tt *talkTape) close() {
	tt.t.Helper()
	if err := tt.rec.Flush(); err != nil {
		tt.t.Fatal(err)
	}
	if err := tt.f.Close(); err != nil {
		tt.t.Fatal(err)
	}
}

// events derives the log and returns a line of each event, and the notes.
func (tt *talkTape) events(src *talkSource) (out, notes []string) {
	tt.t.Helper()
	tt.close()
	src.path = tt.path
	if src.id == "" {
		src.id = "run"
	}
	n := 0
	all, err := src.derive(func(line []byte) error {
		entry, err := sessionlog.ParseEntry(line[:len(line)-1])
		if err != nil {
			return fmt.Errorf("%s: %w", line, err)
		}
		e, err := entry.Event()
		if err != nil {
			return err
		}
		if entry.Seq != uint64(n) || e.Base().TapeSeq == nil || entry.TMS == nil {
			tt.t.Errorf("line %d: %s", n, line)
		}
		n++
		out = append(out, eventText(e))
		return nil
	})
	if err != nil {
		tt.t.Fatal(err)
	}
	return out, all.list()
}

// eventText is an event in one line: its turn, its record, what it says.
func eventText(e sessionlog.Event) string {
	head := fmt.Sprintf("%d@%d ", e.Base().Turn, *e.Base().TapeSeq)
	switch e := e.(type) {
	case *sessionlog.RunStarted:
		return fmt.Sprintf("%srun %s %q %q %s", head, e.RunID, e.Goal, e.SystemPrompt, e.Attachments)
	case *sessionlog.LLMCompleted:
		return strings.TrimSpace(fmt.Sprintf("%ssaid %s %s", head, e.Message.Content, e.ProviderReplay))
	case *sessionlog.ToolRequested:
		for _, c := range e.Calls {
			head += fmt.Sprintf("call %s %s %s ", c.ID, c.Name, c.Arguments)
		}
	case *sessionlog.ToolCompleted:
		for _, r := range e.Results {
			head += fmt.Sprintf("gave %s %s %v ", r.CallID, r.Output, r.IsError)
		}
	case *sessionlog.RunTerminal:
		return fmt.Sprintf("%send %s %d %d", head, e.Reason, e.TurnsUsed, e.TotalTokens)
	case *sessionlog.AgentProcessChanged:
		return fmt.Sprintf("%sagent %s %s of %s", head, e.AgentID, e.State, e.ParentSessionID)
	case *sessionlog.Compressed:
		return fmt.Sprintf("%scompressed %v %q", head, e.ArchivedSeqRange, e.Summary)
	case *sessionlog.ToolDenied:
		return fmt.Sprintf("%sdenied %s %s %s", head, e.CallID, e.ToolName, e.Reason)
	case *sessionlog.ToolGated:
		return strings.TrimSpace(fmt.Sprintf("%sgated %s %s %s", head, e.CallID, e.Tool, e.Reason))
	case *sessionlog.PermissionRequested:
		return strings.TrimSpace(fmt.Sprintf("%sasks %s %s %s", head, e.Tool, e.Arguments, e.Reason))
	case *sessionlog.PermissionResolved:
		return fmt.Sprintf("%sanswers %v %s", head, e.Approved, e.Responder)
	}
	return strings.TrimSpace(head)
}

// asks is a request with a history; tools may be "".
func asks(system, tools string, messages ...string) string {
	return fmt.Sprintf(`{"model":"m","system":%q,"tools":[%s],"messages":[%s]}`, system, tools, strings.Join(messages, ","))
}

const readTool = `{"name":"read"}`

func user(text string) string { return fmt.Sprintf(`{"role":"user","content":%q}`, text) }
func model(text string) string {
	return fmt.Sprintf(`{"role":"assistant","content":[{"type":"text","text":%q}]}`, text)
}
func uses(id string) string {
	return fmt.Sprintf(`{"role":"assistant","content":[{"type":"tool_use","id":%q,"name":"read","input":{}}]}`, id)
}
func gives(id, text string) string {
	return fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":%q,"content":%q}]}`, id, text)
}

func says(text string) string {
	return fmt.Sprintf(`{"type":"message","content":[{"type":"text","text":%q}],"stop_reason":"end_turn"}`, text)
}
func calls(id string) string {
	return fmt.Sprintf(`{"type":"message","content":[{"type":"tool_use","id":%q,"name":"read","input":{"p":1}}],"stop_reason":"tool_use"}`, id)
}

// cut is an answer that says text and does not end.
func cut(text string) string {
	return fmt.Sprintf("data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":%q}}\n\n", text)
}

const summary = "The user wanted a file. It was written, and named hello.txt."

// TestTalk derives session logs from tapes that show one thing each.
func TestTalk(t *testing.T) {
	for _, c := range []struct {
		name  string
		src   talkSource
		make  func(tt *talkTape)
		want  []string
		notes int
	}{
		{"turns, with a title beside them", talkSource{exit: &Exit{}}, func(tt *talkTape) {
			tt.call("llm:t", asks("Name it.", "", user("do it")), says("A title"))
			tt.call("llm:a", asks("Be brief.", readTool, user("do it")), calls("t1"))
			tt.record(&tape.ClockRead{Source: "wall"})
			tt.call("llm:a", asks("Be brief.", readTool, user("do it"), uses("t1"), gives("t1", "one")), calls("t2"))
			tt.call("llm:a", asks("Be brief.", readTool, user("do it"), uses("t1"), gives("t1", "one"), uses("t2"), gives("t2", "two")), says("Done."))
		}, []string{
			`0@1 run run "do it" "Be brief." []`, `1@1 said ""`, `1@1 call t1 read {"p":1}`, `1@3 gave t1 "one" false`, `2@3 said ""`,
			`2@3 call t2 read {"p":1}`, `2@4 gave t2 "two" false`, `3@4 said "Done."`, `0@4 end completed 3 33`,
		}, 0},
		{"two prompts", talkSource{exit: &Exit{Code: 2}}, func(tt *talkTape) {
			tt.call("llm:a", asks("", readTool, user("one")), says("First."))
			tt.call("llm:a", asks("", readTool, user("one"), model("First."), user("two")), says("Second."))
		}, []string{
			`0@0 run run "one" "" []`, `1@0 said "First."`, `0@1 end completed 1 11`, `0@1 run run#2 "two" "" []`, `2@1 said "Second."`, `0@1 end error 1 11`,
		}, 0},
		{"steered while a tool ran", talkSource{}, func(tt *talkTape) {
			tt.call("llm:a", asks("", readTool, user("one")), calls("t1"))
			tt.call("llm:a", asks("", readTool, user("one"), uses("t1"), gives("t1", "x"), user("faster")), says("Done."))
		}, []string{
			`0@0 run run "one" "" []`, `1@0 said ""`, `1@0 call t1 read {"p":1}`, `1@1 gave t1 "x" false`, `2@1 said "Done."`, `0@1 end completed 2 22`,
		}, 0},
		{"interrupted, and asked anew", talkSource{exit: &Exit{Signal: "SIGINT", Code: 130}}, func(tt *talkTape) {
			tt.call("llm:a", asks("", readTool, user("one")), calls("t1"))
			tt.call("llm:a", asks("", readTool, user("one"), uses("t1"), user("two")), says("Done."))
		}, []string{
			`0@0 run run "one" "" []`, `1@0 said ""`, `1@0 call t1 read {"p":1}`, `0@1 end interrupted 1 11`, `0@1 run run#2 "two" "" []`,
			`2@1 said "Done."`, `0@1 end interrupted 1 11`,
		}, 0},
		{"failed and asked again", talkSource{}, func(tt *talkTape) {
			request := asks("", readTool, user("one"))
			tt.at++
			k := &tape.LLMCall{Provider: "anthropic", Endpoint: "messages"}
			k.Lane, k.Arrival, k.Status, k.RequestPayload, k.Response = "llm:a", 1, 529, tt.payload(request), tt.payload(`{"type":"error"}`)
			tt.record(k)
			tt.call("llm:a", request, cut(""))
			tt.call("llm:a", request, cut("I begin"))
			tt.call("llm:a", request, says("Done."))
		}, []string{`0@0 run run "one" "" []`, `1@3 said "Done."`, `0@3 end completed 1 11`}, 2},
		{"cut, and gone on from", talkSource{}, func(tt *talkTape) {
			tt.call("llm:a", asks("", readTool, user("one")), cut("I begin"))
			tt.call("llm:a", asks("", readTool, user("one"), model("I begin"), user("go on")), says("Done."))
		}, []string{
			`0@0 run run "one" "" []`, `1@0 said "I begin"`, `0@1 end completed 1 11`, `0@1 run run#2 "go on" "" []`, `2@1 said "Done."`, `0@1 end completed 1 11`,
		}, 0},
		{"cut at the end", talkSource{open: true}, func(tt *talkTape) {
			tt.call("llm:a", asks("", readTool, user("one")), cut("I begin"))
		}, []string{`0@0 run run "one" "" []`, `1@0 said "I begin"`}, 0},
		{"compacted within the lane", talkSource{}, func(tt *talkTape) {
			tt.call("llm:a", asks("s", readTool, user("one")), calls("t1"))
			tt.call("llm:a", asks("s", "", user("one"), uses("t1"), gives("t1", "x"), user("summarize")), says(summary))
			tt.call("llm:a", asks("s", readTool, user("one"), user("So far: "+summary)), says("Done."))
		}, []string{
			`0@0 run run "one" "s" []`, `1@0 said ""`, `1@0 call t1 read {"p":1}`, `1@1 gave t1 "x" false`,
			fmt.Sprintf("1@2 compressed [0 3] %q", summary), `2@2 said "Done."`, `0@2 end completed 2 22`,
		}, 1},
		{"compacted into another lane", talkSource{}, func(tt *talkTape) {
			tt.call("llm:a", asks("s", readTool, user("one")), says("First."))
			tt.call("llm:sum", asks("Summarize.", "", user("one"), model("First.")), says(summary))
			tt.call("llm:b", asks("s", readTool, user(summary), user("two")), calls("t1"))
			tt.call("llm:b", asks("s", readTool, user(summary), user("two"), uses("t1"), gives("t1", "x")), says("Done."))
		}, []string{
			`0@0 run run "one" "s" []`, `1@0 said "First."`, fmt.Sprintf("1@2 compressed [0 1] %q", summary), `0@2 end completed 1 11`,
			`0@2 run run#2 "two" "" []`, `2@2 said ""`, `2@2 call t1 read {"p":1}`, `2@3 gave t1 "x" false`, `3@3 said "Done."`, `0@3 end completed 2 22`,
		}, 0},
		{"a call without tools that is gone on from", talkSource{}, func(tt *talkTape) {
			tt.call("llm:a", asks("s", readTool, user("one")), says("First."))
			tt.call("llm:a", asks("s", "", user("one"), model("First."), user("two")), says("Second."))
			tt.call("llm:a", asks("s", readTool, user("one"), model("First."), user("two"), model("Second."), user("three")), says("Third."))
		}, []string{
			`0@0 run run "one" "s" []`, `1@0 said "First."`, `2@1 said "Second."`, `0@2 end completed 2 22`, `0@2 run run#2 "three" "" []`,
			`3@2 said "Third."`, `0@2 end completed 1 11`,
		}, 0},
		{"sub-agents", talkSource{}, func(tt *talkTape) {
			tt.call("llm:a", asks("s", readTool, user("one")), calls("t1"))
			tt.call("llm:sub", asks("sub", readTool, user("count")), calls("u1"))
			tt.call("llm:slow", asks("sub", readTool, user("wait")), calls("v1"))
			tt.call("llm:search", asks("find", `{"type":"web_search_20250305","name":"web_search"}`, user("find")), says("Found."))
			tt.call("llm:sub", asks("sub", readTool, user("count"), uses("u1"), gives("u1", "3")), says("Three."))
			tt.call("llm:a", asks("s", readTool, user("one"), uses("t1"), gives("t1", "three")), says("Done."))
		}, []string{
			`0@0 run run "one" "s" []`, `1@0 said ""`, `1@0 call t1 read {"p":1}`, `1@1 agent llm:sub running of run`, `1@2 agent llm:slow running of run`,
			`1@4 agent llm:sub joined of run`, `1@5 gave t1 "three" false`, `2@5 said "Done."`, `0@5 end completed 2 22`,
		}, 0},
		{"another conversation side by side is none of ours", talkSource{}, func(tt *talkTape) {
			tt.call("llm:a", asks("s", readTool, user("one")), says("First."))
			tt.call("llm:b", asks("s", readTool, user("other")), says("Other."))
			tt.call("llm:a", asks("s", readTool, user("one"), model("First."), user("two")), says("Second."))
		}, []string{
			`0@0 run run "one" "s" []`, `1@0 said "First."`, `0@2 end completed 1 11`, `0@2 run run#2 "two" "" []`, `2@2 said "Second."`, `0@2 end completed 1 11`,
		}, 0},
		{"no tools at all", talkSource{}, func(tt *talkTape) {
			tt.call("llm:a", asks("s", "", user("one")), says("First."))
			tt.call("llm:b", asks("s", "", user("other")), says("Other."))
		}, []string{`0@0 run run "one" "s" []`, `1@0 said "First."`, `0@1 end completed 1 11`}, 0},
		{"a session that goes on from before", talkSource{}, func(tt *talkTape) {
			tt.call("llm:a", asks("s", readTool, user("one"), uses("t0"), gives("t0", "old"), model("First."), user("two")), says("Second."))
		}, []string{`0@0 run run "two" "s" []`, `1@0 said "Second."`, `0@0 end completed 1 11`}, 1},
		{"a body that is gone", talkSource{}, func(tt *talkTape) {
			long := strings.Repeat("x", tape.InlineLimit)
			tt.call("llm:a", asks("s", readTool, user("one")), says("First."))
			k := tt.call("llm:a", asks("s", readTool, user("one"), model("First."), user(long)), says("Second."))
			if err := os.Remove(tt.store.Path(k.RequestPayload.Hash)); err != nil {
				tt.t.Fatal(err)
			}
			tt.call("llm:a", asks("s", readTool, user("one"), model("First."), user("three")), says("Third."))
		}, []string{
			`0@0 run run "one" "s" []`, `1@0 said "First."`, `0@2 end completed 1 11`, `0@2 run run#2 "three" "" []`, `2@2 said "Third."`, `0@2 end completed 1 11`,
		}, 1},
		{"verdicts", talkSource{}, func(tt *talkTape) {
			tt.call("llm:a", asks("s", readTool, user("one")), calls("t1"))
			tt.record(&tape.PolicyVerdict{ActionID: "a1", Tool: "rm", Verdict: json.RawMessage(`{"kind":"deny","reason":"never"}`)})
			tt.record(&tape.PolicyVerdict{ActionID: "a2", Tool: "mv", ParamsPayload: tt.payload(`{"to":"x"}`), Verdict: json.RawMessage(`"escalate"`)})
			tt.record(&tape.PolicyVerdict{ActionID: "a2", Tool: "mv", Verdict: json.RawMessage(`"allow"`)})
			tt.record(&tape.PolicyVerdict{ActionID: "a3", Tool: "ls", Verdict: json.RawMessage(`"allow"`)})
			tt.record(&tape.PolicyVerdict{ActionID: "a4", Tool: "ls", Verdict: json.RawMessage(`7`)})
		}, []string{
			`0@0 run run "one" "s" []`, `1@0 said ""`, `1@0 call t1 read {"p":1}`, `1@1 denied a1 rm never`, `1@2 gated a2 mv`, `1@2 asks mv {"to":"x"}`,
			`1@3 answers true policy_gate`, `0@5 end interrupted 1 11`,
		}, 1},
		{"nothing said", talkSource{}, func(tt *talkTape) { tt.record(&tape.ClockRead{Source: "wall"}) }, nil, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			tt := newTalkTape(t)
			c.make(tt)
			got, notes := tt.events(&c.src)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if len(notes) != c.notes {
				t.Errorf("notes %q, want %d", notes, c.notes)
			}
		})
	}
}

// TestTalkOfKeptHistory: a provider that keeps the history is sent what is new alone, each time in a lane of its own.
func TestTalkOfKeptHistory(t *testing.T) {
	tt := newTalkTape(t)
	call := func(lane, request, response string) {
		k := &tape.LLMCall{Provider: "openai", Endpoint: "responses"}
		tt.at++
		k.Lane, k.Arrival, k.Status, k.RequestPayload, k.Response = lane, tt.at, 200, tt.payload(request), tt.payload(response)
		tt.record(k)
	}
	const tools = `"tools":[{"type":"function","name":"read"}]`
	call("llm:1", `{"model":"m",`+tools+`,"input":"do it"}`, `{"id":"r1","status":"completed","output":[{"type":"function_call","call_id":"c1","name":"read","arguments":"{}"}]}`)
	call("llm:2", `{"model":"m",`+tools+`,"previous_response_id":"r1","input":[{"type":"function_call_output","call_id":"c1","output":"one"}]}`,
		`{"id":"r2","status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"Done."}]}]}`)
	call("llm:3", `{"model":"m",`+tools+`,"previous_response_id":"r0","input":"other"}`, `{"id":"r9","status":"completed","output":[]}`)
	call("llm:4", `{"model":"m",`+tools+`,"previous_response_id":"r2","input":"more"}`,
		`{"id":"r3","status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"More."}]}]}`)
	got, notes := tt.events(&talkSource{})
	want := []string{
		`0@0 run run "do it" "" []`, `1@0 said ""`, `1@0 call c1 read {}`, `1@1 gave c1 "one" false`, `2@1 said "Done."`, `0@3 end completed 2 0`,
		`0@3 run run#2 "more" "" []`, `3@3 said "More."`, `0@3 end completed 1 0`,
	}
	if diff := cmp.Diff(want, got); diff != "" || len(notes) > 0 {
		t.Errorf("%q (-want +got)\n%s", notes, diff)
	}
}

// TestSessionLogOfTape reads the log of a bare tape, and stops in its middle.
func TestSessionLogOfTape(t *testing.T) {
	tt := newTalkTape(t)
	for i := range 100 {
		tt.call("llm:a", asks("s", readTool, user(fmt.Sprint(i))), calls(fmt.Sprint(i)))
	}
	tt.close()
	s, err := SessionLogOfTape(tt.path)
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(s).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, `{"seq":0,"event":{"kind":"run_started","run_id":"x","goal":"0",`) || !s.Derived {
		t.Errorf("%q, %v", line, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = SessionLogOfTape(tt.path); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	whole, err := io.ReadAll(s)
	if n := strings.Count(string(whole), "\n"); err != nil || n < 200 || len(s.Notes()) > 0 {
		t.Errorf("%d lines, %v, notes %q", n, err, s.Notes())
	}
	if _, err := SessionLogOfTape(tt.path + ".none"); err == nil {
		t.Error("a tape that is not there was read")
	}
}

// TestTalkFileHidesOnceMore: a line in which a secret stands is written without it, and named.
func TestTalkFileHidesOnceMore(t *testing.T) {
	w := &talkFile{dir: t.TempDir(), hide: func(b []byte) ([]byte, bool) {
		return []byte(strings.ReplaceAll(string(b), "secret", "td_x")), strings.Contains(string(b), "secret")
	}}
	for _, line := range []string{"one\n", "a secret\n", "three\n"} {
		if err := w.line([]byte(line)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.end(nil); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(w.dir, sessionLogName))
	if want := "one\na td_x\nthree\n"; err != nil || string(got) != want || !slices.Equal(w.hidden, []int{2}) {
		t.Errorf("%q, %v, hidden %v", got, err, w.hidden)
	}
}

// TestALongTalk derives the log of 10,000 turns, whose requests hold the last 100 messages each, in bounded memory.
func TestALongTalk(t *testing.T) {
	const turns = 400 // whose requests are 80 MB
	tt := newTalkTape(t)
	text := strings.Repeat("x", 2000)
	history := []string{user("do it")}
	for i := range turns {
		id := fmt.Sprint("t", i)
		tt.call("llm:a", asks("s", readTool, history...), calls(id))
		if history = append(history, uses(id), gives(id, text)); len(history) > 100 {
			history = append(history[:1], history[3:]...)
		}
	}
	tt.close()
	src := &talkSource{path: tt.path, id: "run"}
	before, most, n := heap(), int64(0), 0
	if _, err := src.derive(func([]byte) error {
		if n++; n%100 == 0 {
			most = max(most, heap()-before)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if n != 3*turns+1 || most > 16<<20 {
		t.Errorf("%d events, %d MiB held", n, most>>20)
	}
}

// BenchmarkTalk derives the log of a conversation of 300 turns: MB/s of its tape and blobs. hash is SHA-256 over these.
func BenchmarkTalk(b *testing.B) {
	tt := newTalkTape(b)
	text := strings.Repeat("a line of what a tool gave\\n", 150)
	history := []string{user("do it")}
	for i := range 300 {
		id := fmt.Sprint("t", i)
		tt.call("llm:a", asks("s", readTool, history...), calls(id))
		history = append(history, uses(id), `{"role":"user","content":[{"type":"tool_result","tool_use_id":"`+id+`","content":"`+text+`"}]}`)
	}
	tt.close()
	files := []string{tt.path}
	for d, err := range tt.store.All() {
		if err != nil {
			b.Fatal(err)
		}
		files = append(files, tt.store.Path(d))
	}
	read := func(each func([]byte)) (size int64) {
		for _, f := range files {
			content, err := os.ReadFile(f)
			if err != nil {
				b.Fatal(err)
			}
			each(content)
			size += int64(len(content))
		}
		return size
	}
	size := read(func([]byte) {})
	b.Run("derive", func(b *testing.B) {
		b.SetBytes(size)
		for b.Loop() {
			if _, err := (&talkSource{path: tt.path, id: "run"}).derive(func([]byte) error { return nil }); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("hash", func(b *testing.B) {
		b.SetBytes(size)
		for b.Loop() {
			read(func(content []byte) { sha256.Sum256(content) })
		}
	})
}

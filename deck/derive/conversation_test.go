package derive

import (
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck-dev/tapedeck/deck/derive/derivetest"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// events derives the log and returns a line of each event, and the notes.
func events(tt *derivetest.Tape, src *Source) (out, notes []string) {
	tt.T.Helper()
	tt.Close()
	src.Path = tt.Path
	if src.ID == "" {
		src.ID = "run"
	}
	n := 0
	all, err := src.Derive(func(line []byte) error {
		entry, err := sessionlog.ParseEntry(line[:len(line)-1])
		if err != nil {
			return fmt.Errorf("%s: %w", line, err)
		}
		e, err := entry.Event()
		if err != nil {
			return err
		}
		if entry.Seq != uint64(n) || e.Base().TapeSeq == nil || entry.TMS == nil {
			tt.T.Errorf("line %d: %s", n, line)
		}
		n++
		out = append(out, eventText(e))
		return nil
	})
	if err != nil {
		tt.T.Fatal(err)
	}
	return out, all.texts(false)
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

// TestTalk derives session logs from tapes that show one thing each.
func TestTalk(t *testing.T) {
	for _, c := range []struct {
		name  string
		src   Source
		make  func(tt *derivetest.Tape)
		want  []string
		notes int
	}{
		{"turns, with a title beside them", Source{exit: &recording.Exit{}}, func(tt *derivetest.Tape) {
			tt.Call("llm:t", derivetest.Asks("Name it.", "", derivetest.User("do it")), derivetest.Says("A title"))
			tt.Call("llm:a", derivetest.Asks("Be brief.", derivetest.ReadTool, derivetest.User("do it")), derivetest.Calls("t1"))
			tt.Record(&tape.ClockRead{Source: "wall"})
			tt.Call("llm:a", derivetest.Asks("Be brief.", derivetest.ReadTool, derivetest.User("do it"), derivetest.Uses("t1"), derivetest.Gives("t1", "one")), derivetest.Calls("t2"))
			tt.Call("llm:a", derivetest.Asks("Be brief.", derivetest.ReadTool, derivetest.User("do it"), derivetest.Uses("t1"), derivetest.Gives("t1", "one"), derivetest.Uses("t2"), derivetest.Gives("t2", "two")), derivetest.Says("Done."))
		}, []string{
			`0@1 run run "do it" "Be brief." []`, `1@1 said ""`, `1@1 call t1 read {"p":1}`, `1@3 gave t1 "one" false`, `2@3 said ""`,
			`2@3 call t2 read {"p":1}`, `2@4 gave t2 "two" false`, `3@4 said "Done."`, `0@4 end completed 3 33`,
		}, 0},
		{"two prompts", Source{exit: &recording.Exit{Code: 2}}, func(tt *derivetest.Tape) {
			tt.Call("llm:a", derivetest.Asks("", derivetest.ReadTool, derivetest.User("one")), derivetest.Says("First."))
			tt.Call("llm:a", derivetest.Asks("", derivetest.ReadTool, derivetest.User("one"), derivetest.Model("First."), derivetest.User("two")), derivetest.Says("Second."))
		}, []string{
			`0@0 run run "one" "" []`, `1@0 said "First."`, `0@1 end completed 1 11`, `0@1 run run#2 "two" "" []`, `2@1 said "Second."`, `0@1 end error 1 11`,
		}, 0},
		{"steered while a tool ran", Source{}, func(tt *derivetest.Tape) {
			tt.Call("llm:a", derivetest.Asks("", derivetest.ReadTool, derivetest.User("one")), derivetest.Calls("t1"))
			tt.Call("llm:a", derivetest.Asks("", derivetest.ReadTool, derivetest.User("one"), derivetest.Uses("t1"), derivetest.Gives("t1", "x"), derivetest.User("faster")), derivetest.Says("Done."))
		}, []string{
			`0@0 run run "one" "" []`, `1@0 said ""`, `1@0 call t1 read {"p":1}`, `1@1 gave t1 "x" false`, `2@1 said "Done."`, `0@1 end completed 2 22`,
		}, 0},
		{"interrupted, and asked anew", Source{exit: &recording.Exit{Signal: "SIGINT", Code: 130}}, func(tt *derivetest.Tape) {
			tt.Call("llm:a", derivetest.Asks("", derivetest.ReadTool, derivetest.User("one")), derivetest.Calls("t1"))
			tt.Call("llm:a", derivetest.Asks("", derivetest.ReadTool, derivetest.User("one"), derivetest.Uses("t1"), derivetest.User("two")), derivetest.Says("Done."))
		}, []string{
			`0@0 run run "one" "" []`, `1@0 said ""`, `1@0 call t1 read {"p":1}`, `0@1 end interrupted 1 11`, `0@1 run run#2 "two" "" []`,
			`2@1 said "Done."`, `0@1 end interrupted 1 11`,
		}, 0},
		{"failed and asked again", Source{}, func(tt *derivetest.Tape) {
			request := derivetest.Asks("", derivetest.ReadTool, derivetest.User("one"))
			tt.At++
			k := &tape.LLMCall{Provider: "anthropic", Endpoint: "messages"}
			k.Lane, k.Arrival, k.Status, k.RequestPayload, k.Response = "llm:a", 1, 529, tt.Payload(request), tt.Payload(`{"type":"error"}`)
			tt.Record(k)
			tt.Call("llm:a", request, derivetest.Cut(""))
			tt.Call("llm:a", request, derivetest.Cut("I begin"))
			tt.Call("llm:a", request, derivetest.Says("Done."))
		}, []string{`0@0 run run "one" "" []`, `1@3 said "Done."`, `0@3 end completed 1 11`}, 2},
		{"cut, and gone on from", Source{}, func(tt *derivetest.Tape) {
			tt.Call("llm:a", derivetest.Asks("", derivetest.ReadTool, derivetest.User("one")), derivetest.Cut("I begin"))
			tt.Call("llm:a", derivetest.Asks("", derivetest.ReadTool, derivetest.User("one"), derivetest.Model("I begin"), derivetest.User("go on")), derivetest.Says("Done."))
		}, []string{
			`0@0 run run "one" "" []`, `1@0 said "I begin"`, `0@1 end completed 1 11`, `0@1 run run#2 "go on" "" []`, `2@1 said "Done."`, `0@1 end completed 1 11`,
		}, 0},
		{"cut at the end", Source{Open: true}, func(tt *derivetest.Tape) {
			tt.Call("llm:a", derivetest.Asks("", derivetest.ReadTool, derivetest.User("one")), derivetest.Cut("I begin"))
		}, []string{`0@0 run run "one" "" []`, `1@0 said "I begin"`}, 0},
		{"compacted within the lane", Source{}, func(tt *derivetest.Tape) {
			tt.Call("llm:a", derivetest.Asks("s", derivetest.ReadTool, derivetest.User("one")), derivetest.Calls("t1"))
			tt.Call("llm:a", derivetest.Asks("s", "", derivetest.User("one"), derivetest.Uses("t1"), derivetest.Gives("t1", "x"), derivetest.User("summarize")), derivetest.Says(derivetest.Summary))
			tt.Call("llm:a", derivetest.Asks("s", derivetest.ReadTool, derivetest.User("one"), derivetest.User("So far: "+derivetest.Summary)), derivetest.Says("Done."))
		}, []string{
			`0@0 run run "one" "s" []`, `1@0 said ""`, `1@0 call t1 read {"p":1}`, `1@1 gave t1 "x" false`,
			fmt.Sprintf("1@2 compressed [0 3] %q", derivetest.Summary), `2@2 said "Done."`, `0@2 end completed 2 22`,
		}, 1},
		{"compacted into another lane", Source{}, func(tt *derivetest.Tape) {
			tt.Call("llm:a", derivetest.Asks("s", derivetest.ReadTool, derivetest.User("one")), derivetest.Says("First."))
			tt.Call("llm:sum", derivetest.Asks("Summarize.", "", derivetest.User("one"), derivetest.Model("First.")), derivetest.Says(derivetest.Summary))
			tt.Call("llm:b", derivetest.Asks("s", derivetest.ReadTool, derivetest.User(derivetest.Summary), derivetest.User("two")), derivetest.Calls("t1"))
			tt.Call("llm:b", derivetest.Asks("s", derivetest.ReadTool, derivetest.User(derivetest.Summary), derivetest.User("two"), derivetest.Uses("t1"), derivetest.Gives("t1", "x")), derivetest.Says("Done."))
		}, []string{
			`0@0 run run "one" "s" []`, `1@0 said "First."`, fmt.Sprintf("1@2 compressed [0 1] %q", derivetest.Summary), `0@2 end completed 1 11`,
			`0@2 run run#2 "two" "" []`, `2@2 said ""`, `2@2 call t1 read {"p":1}`, `2@3 gave t1 "x" false`, `3@3 said "Done."`, `0@3 end completed 2 22`,
		}, 0},
		{"a call without tools that is gone on from", Source{}, func(tt *derivetest.Tape) {
			tt.Call("llm:a", derivetest.Asks("s", derivetest.ReadTool, derivetest.User("one")), derivetest.Says("First."))
			tt.Call("llm:a", derivetest.Asks("s", "", derivetest.User("one"), derivetest.Model("First."), derivetest.User("two")), derivetest.Says("Second."))
			tt.Call("llm:a", derivetest.Asks("s", derivetest.ReadTool, derivetest.User("one"), derivetest.Model("First."), derivetest.User("two"), derivetest.Model("Second."), derivetest.User("three")), derivetest.Says("Third."))
		}, []string{
			`0@0 run run "one" "s" []`, `1@0 said "First."`, `2@1 said "Second."`, `0@2 end completed 2 22`, `0@2 run run#2 "three" "" []`,
			`3@2 said "Third."`, `0@2 end completed 1 11`,
		}, 0},
		{"sub-agents", Source{}, func(tt *derivetest.Tape) {
			tt.Call("llm:a", derivetest.Asks("s", derivetest.ReadTool, derivetest.User("one")), derivetest.Calls("t1"))
			tt.Call("llm:sub", derivetest.Asks("sub", derivetest.ReadTool, derivetest.User("count")), derivetest.Calls("u1"))
			tt.Call("llm:slow", derivetest.Asks("sub", derivetest.ReadTool, derivetest.User("wait")), derivetest.Calls("v1"))
			tt.Call("llm:search", derivetest.Asks("find", `{"type":"web_search_20250305","name":"web_search"}`, derivetest.User("find")), derivetest.Says("Found."))
			tt.Call("llm:sub", derivetest.Asks("sub", derivetest.ReadTool, derivetest.User("count"), derivetest.Uses("u1"), derivetest.Gives("u1", "3")), derivetest.Says("Three."))
			tt.Call("llm:a", derivetest.Asks("s", derivetest.ReadTool, derivetest.User("one"), derivetest.Uses("t1"), derivetest.Gives("t1", "three")), derivetest.Says("Done."))
		}, []string{
			`0@0 run run "one" "s" []`, `1@0 said ""`, `1@0 call t1 read {"p":1}`, `1@1 agent llm:sub running of run`, `1@2 agent llm:slow running of run`,
			`1@4 agent llm:sub joined of run`, `1@5 gave t1 "three" false`, `2@5 said "Done."`, `0@5 end completed 2 22`,
		}, 0},
		{"another conversation side by side is none of ours", Source{}, func(tt *derivetest.Tape) {
			tt.Call("llm:a", derivetest.Asks("s", derivetest.ReadTool, derivetest.User("one")), derivetest.Says("First."))
			tt.Call("llm:b", derivetest.Asks("s", derivetest.ReadTool, derivetest.User("other")), derivetest.Says("Other."))
			tt.Call("llm:a", derivetest.Asks("s", derivetest.ReadTool, derivetest.User("one"), derivetest.Model("First."), derivetest.User("two")), derivetest.Says("Second."))
		}, []string{
			`0@0 run run "one" "s" []`, `1@0 said "First."`, `0@2 end completed 1 11`, `0@2 run run#2 "two" "" []`, `2@2 said "Second."`, `0@2 end completed 1 11`,
		}, 0},
		{"no tools at all", Source{}, func(tt *derivetest.Tape) {
			tt.Call("llm:a", derivetest.Asks("s", "", derivetest.User("one")), derivetest.Says("First."))
			tt.Call("llm:b", derivetest.Asks("s", "", derivetest.User("other")), derivetest.Says("Other."))
		}, []string{`0@0 run run "one" "s" []`, `1@0 said "First."`, `0@1 end completed 1 11`}, 0},
		{"a session that goes on from before", Source{}, func(tt *derivetest.Tape) {
			tt.Call("llm:a", derivetest.Asks("s", derivetest.ReadTool, derivetest.User("one"), derivetest.Uses("t0"), derivetest.Gives("t0", "old"), derivetest.Model("First."), derivetest.User("two")), derivetest.Says("Second."))
		}, []string{`0@0 run run "two" "s" []`, `1@0 said "Second."`, `0@0 end completed 1 11`}, 1},
		{"a body that is gone", Source{}, func(tt *derivetest.Tape) {
			long := strings.Repeat("x", tape.InlineLimit)
			tt.Call("llm:a", derivetest.Asks("s", derivetest.ReadTool, derivetest.User("one")), derivetest.Says("First."))
			k := tt.Call("llm:a", derivetest.Asks("s", derivetest.ReadTool, derivetest.User("one"), derivetest.Model("First."), derivetest.User(long)), derivetest.Says("Second."))
			if err := os.Remove(tt.Store.Path(k.RequestPayload.Hash)); err != nil {
				tt.T.Fatal(err)
			}
			tt.Call("llm:a", derivetest.Asks("s", derivetest.ReadTool, derivetest.User("one"), derivetest.Model("First."), derivetest.User("three")), derivetest.Says("Third."))
		}, []string{
			`0@0 run run "one" "s" []`, `1@0 said "First."`, `0@2 end completed 1 11`, `0@2 run run#2 "three" "" []`, `2@2 said "Third."`, `0@2 end completed 1 11`,
		}, 1},
		{"verdicts", Source{}, func(tt *derivetest.Tape) {
			tt.Call("llm:a", derivetest.Asks("s", derivetest.ReadTool, derivetest.User("one")), derivetest.Calls("t1"))
			tt.Record(&tape.PolicyVerdict{ActionID: "a1", Tool: "rm", Verdict: json.RawMessage(`{"kind":"policy","decision":"deny","reason":"never"}`)})
			tt.Record(&tape.PolicyVerdict{ActionID: "a2", Tool: "mv", ParamsPayload: tt.Payload(`{"to":"x"}`), Verdict: json.RawMessage(`"escalate"`)})
			tt.Record(&tape.PolicyVerdict{ActionID: "a2", Tool: "mv", Verdict: json.RawMessage(`"allow"`)})
			tt.Record(&tape.PolicyVerdict{ActionID: "a3", Tool: "ls", Verdict: json.RawMessage(`"allow"`)})
			tt.Record(&tape.PolicyVerdict{ActionID: "a4", Tool: "ls", Verdict: json.RawMessage(`7`)})
		}, []string{
			`0@0 run run "one" "s" []`, `1@0 said ""`, `1@0 call t1 read {"p":1}`, `1@1 denied a1 rm never`, `1@2 gated a2 mv`, `1@2 asks mv {"to":"x"}`,
			`1@3 answers true policy_gate`, `0@5 end interrupted 1 11`,
		}, 1},
		{"nothing said", Source{}, func(tt *derivetest.Tape) { tt.Record(&tape.ClockRead{Source: "wall"}) }, nil, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			tt := derivetest.NewTape(t)
			c.make(tt)
			got, notes := events(tt, &c.src)
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
	tt := derivetest.NewTape(t)
	call := func(lane, request, response string) {
		k := &tape.LLMCall{Provider: "openai", Endpoint: "responses"}
		tt.At++
		k.Lane, k.Arrival, k.Status, k.RequestPayload, k.Response = lane, tt.At, 200, tt.Payload(request), tt.Payload(response)
		tt.Record(k)
	}
	const tools = `"tools":[{"type":"function","name":"read"}]`
	call("llm:1", `{"model":"m",`+tools+`,"input":"do it"}`, `{"id":"r1","status":"completed","output":[{"type":"function_call","call_id":"c1","name":"read","arguments":"{}"}]}`)
	call("llm:2", `{"model":"m",`+tools+`,"previous_response_id":"r1","input":[{"type":"function_call_output","call_id":"c1","output":"one"}]}`,
		`{"id":"r2","status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"Done."}]}]}`)
	call("llm:3", `{"model":"m",`+tools+`,"previous_response_id":"r0","input":"other"}`, `{"id":"r9","status":"completed","output":[]}`)
	call("llm:4", `{"model":"m",`+tools+`,"previous_response_id":"r2","input":"more"}`,
		`{"id":"r3","status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"More."}]}]}`)
	got, notes := events(tt, &Source{})
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
	tt := derivetest.NewTape(t)
	for i := range 100 {
		tt.Call("llm:a", derivetest.Asks("s", derivetest.ReadTool, derivetest.User(fmt.Sprint(i))), derivetest.Calls(fmt.Sprint(i)))
	}
	tt.Close()
	s, err := SessionLogOfTape(tt.Path)
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
	if s, err = SessionLogOfTape(tt.Path); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	whole, err := io.ReadAll(s)
	if n := strings.Count(string(whole), "\n"); err != nil || n < 200 || len(s.Notes()) > 0 {
		t.Errorf("%d lines, %v, notes %q", n, err, s.Notes())
	}
	if _, err := SessionLogOfTape(tt.Path + ".none"); err == nil {
		t.Error("a tape that is not there was read")
	}
}

// TestLogHidesOnceMore: a line in which a secret stands is written without it, and named.
func TestLogHidesOnceMore(t *testing.T) {
	tt := derivetest.NewTape(t)
	tt.Call("llm:a", derivetest.Asks("s", derivetest.ReadTool, derivetest.User("a secret")), derivetest.Says("done"))
	tt.Close()
	dir := filepath.Dir(tt.Path)
	if err := os.Rename(tt.Path, filepath.Join(dir, recording.TapeName)); err != nil {
		t.Fatal(err)
	}
	m := &recording.Manifest{ID: "x"}
	if err := WriteLog(dir, m, &WriteOptions{Log: slog.New(slog.DiscardHandler), Hide: func(b []byte) ([]byte, bool) {
		return []byte(strings.ReplaceAll(string(b), "secret", "td_x")), strings.Contains(string(b), "secret")
	}}); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(dir, SessionLogName))
	if err != nil || !strings.Contains(string(got), "a td_x") || strings.Contains(string(got), "secret") || !slices.Equal(m.SessionHidden, []int{1}) {
		t.Errorf("%q, %v, hidden %v", got, err, m.SessionHidden)
	}
}

// TestALongTalk derives the log of 10,000 turns, whose requests hold the last 100 messages each, in bounded memory.
func TestALongTalk(t *testing.T) {
	const turns = 400 // whose requests are 80 MB
	tt := derivetest.NewTape(t)
	text := strings.Repeat("x", 2000)
	history := []string{derivetest.User("do it")}
	for i := range turns {
		id := fmt.Sprint("t", i)
		tt.Call("llm:a", derivetest.Asks("s", derivetest.ReadTool, history...), derivetest.Calls(id))
		if history = append(history, derivetest.Uses(id), derivetest.Gives(id, text)); len(history) > 100 {
			history = append(history[:1], history[3:]...)
		}
	}
	tt.Close()
	src := &Source{Path: tt.Path, ID: "run"}
	before, most, n := liveHeap(), int64(0), 0
	if _, err := src.Derive(func([]byte) error {
		if n++; n%100 == 0 {
			most = max(most, liveHeap()-before)
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
	tt := derivetest.NewTape(b)
	text := strings.Repeat("a line of what a tool gave\\n", 150)
	history := []string{derivetest.User("do it")}
	for i := range 300 {
		id := fmt.Sprint("t", i)
		tt.Call("llm:a", derivetest.Asks("s", derivetest.ReadTool, history...), derivetest.Calls(id))
		history = append(history, derivetest.Uses(id), `{"role":"user","content":[{"type":"tool_result","tool_use_id":"`+id+`","content":"`+text+`"}]}`)
	}
	tt.Close()
	files := []string{tt.Path}
	for d, err := range tt.Store.All() {
		if err != nil {
			b.Fatal(err)
		}
		files = append(files, tt.Store.Path(d))
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
			if _, err := (&Source{Path: tt.Path, ID: "run"}).Derive(func([]byte) error { return nil }); err != nil {
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

// liveHeap is how many bytes are in use.
func liveHeap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

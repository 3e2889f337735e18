package runtrace_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck-dev/tapedeck/runtrace"
)

var update = flag.Bool("update", false, "write the golden files again")

func text(s string) *string { return &s }

// whole is one record of each kind with everything set, and one with nothing set.
func whole() []runtrace.Record {
	return []runtrace.Record{
		{Started: &runtrace.Started{RunID: "run-1", AgentID: "name:bulldozer", AgentName: text("Bulldozer"), ClientID: text("bench-7"), Intent: "mend the \"build\"\n",
			OutcomeDescription: text("tests pass"), StartedAt: "2026-01-02T03:04:05.000006Z",
			Recording: &runtrace.Recording{ID: "0192f0c1", Path: "/home/a/.tapedeck/0192f0c1"}}},
		{Started: &runtrace.Started{RunID: "r", AgentID: "a"}},
		{Turn: &runtrace.Turn{Index: 3, Prompt: text("list the files"), Tool: text("drive_cli"), Parameters: json.RawMessage(`{"prompt":"list the files","n":1.0}`),
			Output: json.RawMessage(`{"exit_code":0}`), CLIOutcome: runtrace.Exited(0), VerifierVerdict: runtrace.VerdictNotRun}},
		{Turn: &runtrace.Turn{Tool: text("drive_cli"), CLIOutcome: runtrace.TimedOut(), VerifierVerdict: runtrace.VerdictNotRun, Parameters: json.RawMessage("null")}},
		{Turn: &runtrace.Turn{Index: 4, Tool: text("check_outcome"), Parameters: json.RawMessage("{}"), Output: json.RawMessage(`{"passed":true}`), VerifierVerdict: runtrace.VerdictPass}},
		{Turn: &runtrace.Turn{Index: 5, Tool: text("shell"), Parameters: json.RawMessage(`{"command":"rm -rf /"}`), VerifierVerdict: runtrace.VerdictNotRun,
			PolicyRejected: &runtrace.PolicyRejected{Rule: "no_rm (deny_tool_param)", Param: text("command"), Reason: "param 'command' matches 'rm -rf'"}}},
		{Turn: &runtrace.Turn{Index: 6, VerifierVerdict: "someone's own", Parameters: json.RawMessage("null"), Output: json.RawMessage("null"), PolicyRejected: &runtrace.PolicyRejected{}}},
		{Turn: &runtrace.Turn{Index: 7, Tool: text("shell"), Parameters: json.RawMessage("{}"), Error: text("no \"shell\""), VerifierVerdict: runtrace.VerdictNotRun}},
		{Ended: &runtrace.Ended{RunID: "run-1", AgentID: "name:bulldozer", Status: runtrace.Completed, EndedAt: "2026-01-02T03:05:00.000000Z",
			Outcome: json.RawMessage(`{"status":"success","summary":"done","evidence":[{"kind":"tool_result"}],"metrics":{"turns":7},"timestamp":"2026-01-02T03:05:00Z"}`)}},
		{Ended: &runtrace.Ended{RunID: "r", AgentID: "a", Status: runtrace.Incomplete, EndedAt: "2026-01-02T03:05:00.000000Z"}},
	}
}

// The lines are frozen: files that exist are read by others.
func TestLines(t *testing.T) {
	const golden = "testdata/v1.jsonl"
	var got []byte
	for _, r := range whole() {
		var err error
		if got, err = r.AppendLine(got); err != nil {
			t.Fatal(err)
		}
	}
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(string(got), "\n")); diff != "" {
		t.Errorf("the lines are not what they were (-was +is):\n%s", diff)
	}
	lines := bytes.Split(bytes.TrimSpace(want), []byte("\n"))
	for i, r := range whole() {
		if !json.Valid(lines[i]) {
			t.Errorf("no JSON: %s", lines[i])
		}
		back, err := runtrace.Parse(lines[i])
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(r, back); diff != "" {
			t.Errorf("read as another record:\n%s", diff)
		}
	}
}

func TestATurnOfAClient(t *testing.T) {
	for in, want := range map[string]string{
		`{}`:                          `{"index":0,"parameters":null,"verifier_verdict":"not_run"}`,
		`{"index":"x","prompt":null}`: `{"index":0,"parameters":null,"verifier_verdict":"not_run"}`,
		`{"index":-1,"extra":{"a":[1]},"verifier_verdict":null,"cli_outcome":null,"policy_rejected":null,"tool":null}`: `{"index":0,"parameters":null,"verifier_verdict":"not_run"}`,
		`{"index":7,"parameters":{"b":1,"a":1e400},"output":[],"verifier_verdict":"pass"}`:                             `{"index":7,"parameters":{"b":1,"a":1e400},"output":[],"verifier_verdict":"pass"}`,
		`{"cli_outcome":{"outcome":"exited","code":-1,"x":0},"policy_rejected":{"rule":"r","param":null}}`:             `{"index":0,"parameters":null,"cli_outcome":{"outcome":"exited","code":-1},"verifier_verdict":"not_run","policy_rejected":{"rule":"r","reason":""}}`,
	} {
		var turn runtrace.Turn
		if err := json.Unmarshal([]byte(in), &turn); err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		got, err := json.Marshal(turn)
		if err != nil || string(got) != want {
			t.Errorf("%s\ngot  %s, %v\nwant %s", in, got, err, want)
		}
	}
	for _, bad := range []string{`[]`, `null`, `1`, `{"prompt":1}`, `{"tool":{}}`, `{"cli_outcome":"exited"}`, `{"cli_outcome":{"code":1.5}}`, `{"verifier_verdict":true}`, `{"policy_rejected":[]}`} {
		turn := new(runtrace.Turn)
		if err := turn.UnmarshalJSON([]byte(bad)); err == nil {
			t.Errorf("%s was taken as %+v", bad, turn)
		}
	}
}

func TestLinesOfOthers(t *testing.T) {
	for _, bad := range []string{"", "{", "[]", `{"record":"model_turn"}`, `{"index":0}`, `{"record":1}`, `{"record":"turn"} {}`, "{\"record\":\"turn\",\"prompt\":\"\xff\"}"} {
		if r, err := runtrace.Parse([]byte(bad)); err == nil {
			t.Errorf("%q was taken as %+v", bad, r)
		}
	}
	r, err := runtrace.Parse([]byte(` { "x": {}, "output" : [ ] , "index":2, "record" : "turn" } ` + "\n"))
	if err != nil || r.Turn == nil || r.Turn.Index != 2 || string(r.Turn.Output) != "[ ]" || r.Turn.VerifierVerdict != runtrace.VerdictNotRun {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestTruncate(t *testing.T) {
	const max = runtrace.MaxString
	for _, s := range []string{"", "short", strings.Repeat("x", max), strings.Repeat("ü", max/2)} {
		if got := runtrace.Truncate(s); got != s {
			t.Errorf("%d bytes became %d", len(s), len(got))
		}
	}
	for lead := range 5 {
		for _, c := range []string{"x", "ü", "…", "😀"} {
			s := strings.Repeat("a", lead) + strings.Repeat(c, max+1)
			got := runtrace.Truncate(s)
			kept := strings.TrimSuffix(got, runtrace.Marker)
			if kept == got || !strings.HasPrefix(s, kept) || !utf8.ValidString(kept) || len(kept) > max || len(kept) <= max-utf8.UTFMax {
				t.Errorf("%d %q: %d bytes kept of %d", lead, c, len(kept), len(s))
			}
			if again := runtrace.Truncate(got); again != got {
				t.Error("what was cut is cut again")
			}
		}
	}
}

// Strings are cut at any depth, keys are not, and nothing else changes.
func TestCutsWithin(t *testing.T) {
	long := strings.Repeat("é", runtrace.MaxString)
	quoted := fmt.Sprintf("%q", long)
	escaped := `"` + strings.Repeat(`\u00e9`, runtrace.MaxString) + `"`
	shortEscaped := `"` + strings.Repeat(`\u0041`, runtrace.MaxString) + `"` // long as it stands, no longer than the limit as text
	cut := fmt.Sprintf("%q", runtrace.Truncate(long))
	key := fmt.Sprintf("%q", strings.Repeat("k", runtrace.MaxString+1))
	turn := runtrace.Turn{Prompt: &long, Tool: &long,
		Parameters: json.RawMessage("{\"a\":[1.50,{\"b\\\"\":" + quoted + ",\r\n\"c\":" + escaped + "}],\"d\\\\\": " + shortEscaped + "," + key + " :null}"),
		Output:     json.RawMessage(quoted)}
	line, err := turn.AppendLine(nil)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"record":"turn","index":0,"prompt":` + cut + `,"tool":` + cut +
		`,"parameters":{"a":[1.50,{"b\"":` + cut + `,"c":` + cut + `}],"d\\": ` + shortEscaped + "," + key + ` :null},"output":` + cut + `,"verifier_verdict":"not_run"}` + "\n"
	if string(line) != want {
		t.Errorf("got  %.300s…\nwant %.300s…", line, want)
	}
	if !json.Valid(line) {
		t.Error("no JSON")
	}
}

func TestALineThatIsTooLong(t *testing.T) {
	many, _ := json.Marshal(strings.Split(strings.Repeat("many short ones ", runtrace.MaxLine/16), " "))
	turn := runtrace.Turn{Parameters: json.RawMessage(many), Tool: text("shell")}
	var large *runtrace.TooLargeError
	if line, err := turn.AppendLine([]byte("before")); !errors.As(err, &large) || large.Size <= runtrace.MaxLine || string(line) != "before" {
		t.Errorf("%d bytes, %v", len(line), err)
	}
	var fits runtrace.Turn // the longest that is taken
	for n := runtrace.MaxLine - 100; ; n++ {
		fits.Parameters = json.RawMessage("[" + strings.Repeat(" ", n) + "]")
		if line, err := fits.AppendLine(nil); err != nil {
			break
		} else if len(line) > runtrace.MaxLine {
			t.Fatalf("a line of %d bytes", len(line))
		}
	}
	turn.Output = json.RawMessage(many)
	turn.Fit()
	line, err := turn.AppendLine(nil)
	if err != nil || !bytes.Contains(line, []byte(runtrace.OverLine)) || !json.Valid(line) || *turn.Tool != "shell" {
		t.Errorf("%.200s, %v", line, err)
	}
	small := runtrace.Turn{Prompt: text("x"), Output: json.RawMessage("1")}
	if small.Fit(); string(small.Output) != "1" || *small.Prompt != "x" {
		t.Errorf("what fits was changed: %+v", small)
	}
	turn = runtrace.Turn{Output: json.RawMessage("{")}
	var invalid *runtrace.InvalidError
	if _, err := turn.AppendLine(nil); !errors.As(err, &invalid) || invalid.Key != "output" {
		t.Errorf("got %v", err)
	}
}

func TestNames(t *testing.T) {
	for _, good := range []string{"a", "0", "name:bulldozer", "A.b_c-d:e", strings.Repeat("x", 128)} {
		if err := runtrace.CheckName("run_id", good); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{"", ".", "..", "_a", ":a", "a/b", "../a", `a\b`, "a%2fb", "a\x00", "a\n", "a b", "ä", "аgent", "ａ", "a\u202e", strings.Repeat("x", 129), strings.Repeat("x", 10000)} {
		err := runtrace.CheckName("run_id", bad)
		var name *runtrace.NameError
		if !errors.As(err, &name) || len(err.Error()) > 800 || strings.ContainsAny(err.Error(), "\n\x00\u202e") {
			t.Errorf("%.20q: %v", bad, err)
		}
	}
	if err := (runtrace.ID{Agent: "a", Run: ""}).Check(); err == nil || !strings.Contains(err.Error(), "run_id") {
		t.Error(err)
	}
	if err := (runtrace.ID{Run: "a"}).Check(); err == nil || !strings.Contains(err.Error(), "agent_id") {
		t.Error(err)
	}
}

func TestTime(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6789, time.FixedZone("", 3600))
	if got := runtrace.Time(at); got != "2026-01-02T02:04:05.000006Z" {
		t.Error(got)
	}
}

// FuzzParse: no line makes the reader panic, and what it reads is written as a line that reads and writes the same.
func FuzzParse(f *testing.F) {
	for _, r := range whole() {
		line, err := r.AppendLine(nil)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(line)
	}
	f.Add([]byte(`{"record":"turn","parameters":{"a":"` + strings.Repeat(`\"`, 9000) + `"}}`))
	f.Add([]byte(`{"record":"turn","record":"ended","prompt":"\ud800"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := runtrace.Parse(b)
		if err != nil {
			return
		}
		line, err := r.AppendLine(nil)
		if err != nil {
			var large *runtrace.TooLargeError
			if !errors.As(err, &large) {
				t.Fatalf("%q was read and cannot be written: %v", b, err)
			}
			return
		}
		if bytes.Count(line, []byte("\n")) != 1 || len(line) > runtrace.MaxLine || !json.Valid(line) {
			t.Fatalf("%q is written as %q", b, line)
		}
		back, err := runtrace.Parse(line)
		if err != nil {
			t.Fatalf("%q is written as %q, which does not read: %v", b, line, err)
		}
		again, err := back.AppendLine(nil)
		if err != nil || !bytes.Equal(again, line) {
			t.Fatalf("%q is written as %q, then as %q, %v", b, line, again, err)
		}
	})
}

func BenchmarkAppendLine(b *testing.B) {
	turn := whole()[2].Turn
	buf := make([]byte, 0, 1024)
	b.ReportAllocs()
	for b.Loop() {
		var err error
		if buf, err = turn.AppendLine(buf[:0]); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(int64(len(buf)))
}

// TestErrorsOfClients: a key that is ours alone may be anything in a client's turn, and what is no text is not kept.
func TestErrorsOfClients(t *testing.T) {
	for raw, want := range map[string]string{`"why"`: `,"error":"why"`, `null`: "", `{"code":1}`: "", `[1]`: "", `7`: ""} {
		var turn runtrace.Turn
		if err := turn.UnmarshalJSON([]byte(`{"error":` + raw + `,"tool":"x"}`)); err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		got, err := turn.AppendLine(nil)
		if line := `{"record":"turn","index":0,"tool":"x","parameters":null` + want + `,"verifier_verdict":"not_run"}` + "\n"; err != nil || string(got) != line {
			t.Errorf("%s: %v\ngot  %swant %s", raw, err, got, line)
		}
	}
	long := strings.Repeat("e", runtrace.MaxString+1)
	got, err := (&runtrace.Turn{Error: &long}).AppendLine(nil)
	if err != nil || !strings.Contains(string(got), runtrace.Marker) {
		t.Errorf("an error is cut as other texts are: %v, %d bytes", err, len(got))
	}
}

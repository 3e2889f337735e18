package runview

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/runtrace"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
)

// trace is a run as it stands on the disk, with every way in which a turn comes out.
var trace = []string{
	`{"record":"started","run_id":"r1","agent_id":"coder","agent_name":"Coder","intent":"fix it","outcome_description":"the tests pass","started_at":"2026-11-22T14:02:11.000000Z","recording":{"id":"rec1","path":"/x"}}`,
	`{"record":"turn","index":0,"tool":"read","parameters":{"b":"2","a":[1, 2]},"output":"one\ntwo\n","verifier_verdict":"not_run"}`,
	`{"record":"turn","index":1,"tool":"drive_cli","prompt":"go test","parameters":{"prompt":"go test"},"output":{"stdout":"FAIL \u001b[31m\n","exit_code":1},"cli_outcome":{"outcome":"exited","code":1},"verifier_verdict":"not_run"}`,
	`{"record":"turn","index":2,"tool":"drive_cli","prompt":"go test","parameters":null,"cli_outcome":{"outcome":"timeout"},"verifier_verdict":"not_run"}`,
	`{"record":"turn","index":3,"tool":"check_outcome","parameters":{},"output":{"passed":true},"verifier_verdict":"pass"}`,
	`{"record":"turn","index":4,"tool":"check_outcome","parameters":{},"output":{"passed":false},"verifier_verdict":"fail"}`,
	`{"record":"turn","index":5,"tool":"bash","parameters":{"command":"rm -rf /"},"verifier_verdict":"not_run","policy_rejected":{"rule":"no_rm","param":"command","reason":"param 'command' matches 'rm -rf'"}}`,
	`{"record":"turn","index":6,"prompt":"and now?","parameters":null,"output":"All done.","verifier_verdict":"not_run"}`,
	`{"record":"ended","run_id":"r1","agent_id":"coder","status":"completed","outcome":{"status":"give_up","summary":"no luck","evidence":[{},{}],"metrics":{"tokens":12}},"ended_at":"2026-11-22T14:04:11.000000Z"}`,
}

func traced(t *testing.T, lines ...string) *Run {
	t.Helper()
	r := new(Run)
	for _, l := range lines {
		if err := r.AddLine([]byte(l)); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// TestLines: each turn as a line, and the head and the whole turns as runs show has them.
func TestLines(t *testing.T) {
	r := traced(t, trace...)
	var out bytes.Buffer
	o := &ShowOptions{MaxLines: 40}
	if err := WriteHead(&out, r, time.Time{}, o); err != nil {
		t.Fatal(err)
	}
	out.WriteString("\n")
	for i := range r.Turns {
		out.WriteString(r.Turns[i].Line(false) + "\n")
	}
	out.WriteString("\n")
	for i := range r.Turns {
		if err := WriteTurn(&out, &r.Turns[i], o); err != nil {
			t.Fatal(err)
		}
	}
	golden(t, "lines", out.String())
	if r.Records() != len(trace) {
		t.Errorf("%d records of %d", r.Records(), len(trace))
	}
}

// TestSession: a run as a session log is one that is read without a complaint, with each call and its result or denial.
func TestSession(t *testing.T) {
	var out bytes.Buffer
	s := NewSession(&out)
	for _, l := range trace {
		rec, err := runtrace.Parse([]byte(l))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Add(rec); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	golden(t, "session", out.String())
	found, err := sessionlog.Examine(sessionlog.NewReader(strings.NewReader(out.String()), "run", nil))
	if err != nil {
		t.Fatal(err)
	}
	if len(found.List) > 0 {
		t.Errorf("it is found to be damaged: %+v", found.List)
	}
}

// TestSessionLeftOpen: of a run that goes on there is a log, too.
func TestSessionLeftOpen(t *testing.T) {
	var out bytes.Buffer
	s := NewSession(&out)
	rec, err := runtrace.Parse([]byte(trace[0]))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Add(rec); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil || !strings.Contains(out.String(), `"reason":"interrupted"`) {
		t.Errorf("%v: %s", err, &out)
	}
}

// TestBounded: of a turn as long as they come, little is kept.
func TestBounded(t *testing.T) {
	var params strings.Builder
	for i := range 1000 {
		params.WriteString(strings.Repeat(",", min(1, i)) + `"` + strings.Repeat("k", 100) + string(rune('a'+i%26)) + `":"` + strings.Repeat("é", 2000) + `"`)
	}
	r := traced(t, trace[0], `{"record":"turn","index":0,"tool":"x","parameters":{`+params.String()+`},"verifier_verdict":"not_run"}`)
	held := 0
	for _, f := range r.Turns[0].Params {
		held += len(f.Name) + len(f.Text)
	}
	if held > (keptFields+1)*(keptText+200) {
		t.Errorf("%d bytes are kept", held)
	}
}

// TestErrorOfACall: why a call gave no output stands wherever an output would.
func TestErrorOfACall(t *testing.T) {
	line := `{"record":"turn","index":0,"tool":"shell","parameters":{"c":"ls"},"error":"no shell\ntoday","verifier_verdict":"not_run"}`
	r := traced(t, trace[0], line)
	rec, err := runtrace.Parse([]byte(line))
	if err != nil {
		t.Fatal(err)
	}
	if turn := r.Turns[0]; turn.Mark != Failed || turn.Label != "failed" {
		t.Errorf("it is shown as %v %q", turn.Mark, turn.Label)
	}
	var whole, md, log bytes.Buffer
	if err := WriteTurn(&whole, &r.Turns[0], &ShowOptions{}); err != nil {
		t.Fatal(err)
	}
	m, s := NewMarkdown(&md, time.UTC), NewSession(&log)
	if err := m.Add(rec); err != nil {
		t.Fatal(err)
	}
	if err := s.Add(rec); err != nil {
		t.Fatal(err)
	}
	for what, got := range map[string][2]string{
		"line": {r.Turns[0].Line(false), "no shell today"}, "show": {whole.String(), "→ error"},
		"markdown": {md.String(), "**error**\n\n```text\nno shell\ntoday\n```"}, "session": {log.String(), `"output":"no shell\ntoday","is_error":true`},
	} {
		if !strings.Contains(got[0], got[1]) {
			t.Errorf("%s has no %q:\n%s", what, got[1], got[0])
		}
	}
}

package foreign

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck-dev/tapedeck/sessionlog"
)

// form imports what stands in a file of that name, and returns what the log says in short, one event a word.
func form(t *testing.T, kind, name, content string) (string, *Report, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return formOf(t, kind, path)
}

func formOf(t *testing.T, kind, path string) (string, *Report, error) {
	t.Helper()
	i, ok := ByName(kind)
	if !ok {
		t.Fatalf("no importer %s", kind)
	}
	log, r, err := readAs(t, i, path)
	if found, err := Detect(path); err != nil || found.Name() != kind {
		t.Errorf("detected as %v, %v, want %s", found, err, kind)
	}
	return inShort(t, log), r, err
}

// inShort says of each event what tells it apart: ask GOAL, turn N TEXT, call ID, gave ID, end REASON.
func inShort(t *testing.T, log []byte) string {
	t.Helper()
	var out []string
	for _, line := range strings.Split(strings.TrimSpace(string(log)), "\n") {
		if line != "" {
			out = append(out, short(t, line))
		}
	}
	return strings.Join(out, "; ")
}

func lines(text ...string) string { return strings.Join(text, "\n") + "\n" }

const (
	piHead  = `{"type":"session","version":3,"id":"s-1","timestamp":"2026-11-22T12:45:19.716Z","cwd":"/work"}`
	piUsage = `"usage":{"input":1,"output":2,"cacheRead":3,"cacheWrite":4}`
)

func piUser(id, parent, text string) string {
	return fmt.Sprintf(`{"type":"message","id":%q,"parentId":%s,"message":{"role":"user","content":%q}}`, id, parent, text)
}

func piSays(id, parent, text string) string {
	return fmt.Sprintf(`{"type":"message","id":%q,"parentId":%s,"message":{"role":"assistant","content":[{"type":"text","text":%q}],%s,"stopReason":"stop"}}`,
		id, parent, text, piUsage)
}

func TestPiForms(t *testing.T) {
	for _, c := range []struct {
		name, want string
		lines      []string
		note       string
	}{
		{
			name: "version 1 has no ids", want: "ask a; turn 1 b; compressed; end completed",
			lines: []string{
				`{"type":"session","id":"s-1","timestamp":"t","cwd":"/work"}`,
				`{"type":"message","message":{"role":"user","content":"a"}}`,
				`{"type":"message","message":{"role":"assistant","content":[{"type":"text","text":"b"}],"stopReason":"stop"}}`,
				`{"type":"compaction","summary":"short","firstKeptEntryIndex":1,"tokensBefore":3}`,
			}, note: "the session's form is version 1",
		},
		{
			name: "version 2 calls the messages of extensions by another name", want: "ask c with 1; turn 1 d; end completed",
			lines: []string{
				strings.Replace(piHead, `"version":3`, `"version":2`, 1),
				`{"type":"message","id":"1","parentId":null,"message":{"role":"hookMessage","content":"x","customType":"y"}}`,
				piUser("2", `"1"`, "c"), piSays("3", `"2"`, "d"),
			},
		},
		{
			name: "the last entry's branch", want: "ask a; turn 1 b; end completed; ask e; turn 2 f; end completed",
			lines: []string{
				piHead, piUser("1", "null", "a"), piSays("2", `"1"`, "b"), piUser("3", `"2"`, "c"), piSays("4", `"3"`, "d"),
				piUser("5", `"2"`, "e"), piSays("6", `"5"`, "f"),
			},
		},
		{
			name: "a parent that is not there", want: "ask c; turn 1 d; end completed",
			lines: []string{piHead, piUser("1", "null", "a"), piUser("2", `"9"`, "c"), piSays("3", `"2"`, "d")},
			note:  "an entry names a parent that is not there; the branch begins at it",
		},
		{
			name: "an entry that is its own parent", want: "ask b; end interrupted",
			lines: []string{piHead, piUser("1", "null", "a"), piUser("2", `"2"`, "b")},
			note:  "an entry names a parent that is not there; the branch begins at it",
		},
		{
			name: "a fork", want: "ask a; end interrupted",
			lines: []string{strings.Replace(piHead, `}`, `,"parentSession":"/x.jsonl"}`, 1), piUser("1", "null", "a")},
			note:  "the session was taken from another one, whose entries it repeats",
		},
		{
			name: "a cut end", want: "ask a; end interrupted",
			lines: []string{piHead, piUser("1", "null", "a"), `{"type":"message","id":"2","par`},
			note:  "the last line, 3, is cut off and was dropped: at byte 35: expected a string",
		},
		{
			name: "an answer with no prompt", want: "ask ; turn 1 b; end completed",
			lines: []string{piHead, piSays("2", `null`, "b")},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, r, err := form(t, "pi", "s.jsonl", strings.Join(c.lines, "\n"))
			if err != nil {
				t.Fatal(err)
			}
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if c.note != "" && !strings.Contains(strings.Join(r.Notes, "\n"), strings.SplitN(c.note, ": at", 2)[0]) {
				t.Errorf("notes %q, want %q", r.Notes, c.note)
			}
		})
	}
}

func TestPiBroken(t *testing.T) {
	for _, line := range []string{`{"type":"message","id":"2","parentId":"1","message":{"role":`, "{\"type\":\"\xff\"}", `[1]`, `{"type":"message","message":{"role":"user","content":[}}`} {
		_, r, err := form(t, "pi", "s.jsonl", lines(piHead, piUser("1", "null", "a"), line, piSays("3", `"1"`, "b")))
		e, ok := errors.AsType[*Error](err)
		if !ok || e.Line != 3 || filepath.Base(e.Path) != "s.jsonl" || r == nil {
			t.Errorf("%q: %v, want an error in line 3", line, err)
		}
	}
}

const qwenCommon = `"sessionId":"11111111-2222-4333-8444-555555555555","version":"0.24.4","provenance":"p",`

func qwenRecord(id, parent, kind, rest string) string {
	return fmt.Sprintf(`{"uuid":%q,"parentUuid":%s,%s"type":%q%s}`, id, parent, qwenCommon, kind, rest)
}

func qwenText(role, text string) string {
	return fmt.Sprintf(`,"message":{"role":%q,"parts":[{"text":%q}]}`, role, text)
}

func TestQwenForms(t *testing.T) {
	call := `,"message":{"role":"model","parts":[{"functionCall":{"id":"c1","name":"f","args":{}}}]}`
	for _, c := range []struct {
		name, want string
		lines      []string
	}{
		{
			name: "going back leaves a branch", want: "ask a; turn 1 b; end completed; ask e; end interrupted",
			lines: []string{
				qwenRecord("1", "null", "user", qwenText("user", "a")), qwenRecord("2", `"1"`, "assistant", qwenText("model", "b")),
				qwenRecord("3", `"2"`, "user", qwenText("user", "c")), qwenRecord("4", `"3"`, "assistant", qwenText("model", "d")),
				qwenRecord("5", `"2"`, "system", `,"subtype":"rewind","systemPayload":{}`), qwenRecord("6", `"5"`, "user", qwenText("user", "e")),
			},
		},
		{
			name: "the session ends by going back", want: "ask a; end interrupted",
			lines: []string{
				qwenRecord("1", "null", "user", qwenText("user", "a")), qwenRecord("2", `"1"`, "assistant", qwenText("model", "b")),
				qwenRecord("3", `"1"`, "system", `,"subtype":"rewind","systemPayload":{}`),
				qwenRecord("4", `null`, "system", `,"subtype":"custom_title","systemPayload":{}`),
			},
		},
		{
			name: "a call that the person refused, and words between", want: "ask a; turn 1 ; call c1 f; gave c1 failed; end completed; ask and this; turn 2 b; end completed",
			lines: []string{
				qwenRecord("1", "null", "user", qwenText("user", "a")), qwenRecord("2", `"1"`, "assistant", call),
				qwenRecord("3", `"2"`, "tool_result", `,"message":{"role":"user","parts":[{"functionResponse":{"id":"c1","name":"f","response":{"output":"no"}}}]},`+
					`"toolCallResult":{"callId":"c1","status":"cancelled"}`),
				qwenRecord("4", `"3"`, "user", `,"subtype":"mid_turn_user_message"`+qwenText("user", "and this")),
				qwenRecord("5", `"4"`, "assistant", qwenText("model", "b")),
			},
		},
		{
			name: "a request that failed and was made again", want: "ask a; turn 1 b; end completed",
			lines: []string{
				qwenRecord("1", "null", "user", qwenText("user", "a")),
				qwenRecord("2", `"1"`, "system", `,"subtype":"ui_telemetry","systemPayload":{"uiEvent":{"event.name":"qwen-code.api_error","prompt_id":"s########0"}}`),
				qwenRecord("3", `"2"`, "assistant", qwenText("model", "b")),
			},
		},
		{
			name: "a sub-agent's request that failed", want: "ask a; turn 1 b; end completed",
			lines: []string{
				qwenRecord("1", "null", "user", qwenText("user", "a")), qwenRecord("3", `"1"`, "assistant", qwenText("model", "b")),
				qwenRecord("4", `"3"`, "system", `,"subtype":"ui_telemetry","systemPayload":{"uiEvent":{"event.name":"qwen-code.api_error","prompt_id":"s#helper#0"}}`),
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, _, err := form(t, "qwen-code", "s.jsonl", lines(c.lines...))
			if err != nil || got != c.want {
				t.Errorf("%v\ngot  %s\nwant %s", err, got, c.want)
			}
		})
	}
}

func TestATIFForms(t *testing.T) {
	const head = `{"schema_version":"ATIF-v1.6","session_id":"s","agent":{"name":"a","version":"1"},"steps":[` +
		`{"step_id":1,"source":"user","message":"a"},` + "\n" + `{"step_id":2,"source":"agent","message":"b"}`
	for _, c := range []struct{ name, text, want, note, fails string }{
		{name: "whole", text: head + "]}", want: "ask a; turn 1 b; end completed"},
		{name: "cut off behind a step", text: head + `,` + "\n" + `{"step_id":3,"sour`, want: "ask a; turn 1 b; end completed", note: "the file is cut off behind step 2"},
		{name: "a step that is broken", text: head + `,` + "\n" + `{"step_id":3 "source":"user"}]}`, fails: ":3: step 3: "},
		{name: "a step that is no object", text: head + `,` + "\n" + `7]}`, fails: ":3: step 3: "},
		{name: "steps twice", text: head + `],` + "\n" + `"steps":[]}`, fails: `the key "steps" stands twice`},
		{name: "no steps", text: `{"schema_version":"ATIF-v1.6","session_id":"s"}`, fails: `expected a key "steps"`},
		{name: "something behind it", text: head + "]} x", fails: "behind the value"},
		{name: "another form", text: strings.Replace(head, "v1.6", "v2.0", 1) + "]}", want: "ask a; turn 1 b; end completed", note: "the form is another one"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, r, err := form(t, "atif", "trajectory.json", c.text)
			if c.fails != "" {
				if err == nil || !strings.Contains(err.Error(), c.fails) {
					t.Errorf("%v, want %s", err, c.fails)
				}
				return
			}
			if err != nil || got != c.want || !strings.Contains(strings.Join(r.Notes, "\n"), c.note) {
				t.Errorf("%v, notes %q\ngot  %s\nwant %s", err, r.Notes, got, c.want)
			}
		})
	}
}

// opencodeTalk is a conversation in the words of opencode's older versions: two steps in one message, a call that never ended, texts of the
// program's, a summary, and a message that the person took back.
var opencodeTalk = []struct {
	info  string
	parts []string
}{
	{`{"id":"msg_1","role":"user","time":{"created":1}}`, []string{`{"type":"text","text":"a"}`, `{"type":"text","text":"file","synthetic":true}`, `{"type":"file","mime":"text/plain","url":"file:///x"}`}},
	{`{"id":"msg_2","role":"assistant","time":{"created":2,"completed":3},"tokens":{"input":9}}`, []string{
		`{"type":"step-start"}`, `{"type":"tool","tool":"f","callID":"c1","state":{"status":"completed","input":{},"output":"o","attachments":[{"type":"file","url":"data:"}]}}`,
		`{"type":"step-finish","tokens":{"input":1,"output":2,"reasoning":0,"cache":{"read":3,"write":4}}}`,
		`{"type":"step-start"}`, `{"type":"text","text":"b"}`, `{"type":"tool","tool":"g","callID":"c2","state":{"status":"running","input":{}}}`,
	}},
	{`{"id":"msg_3","role":"user","time":{"created":4}}`, []string{`{"type":"compaction","auto":true}`}},
	{`{"id":"msg_4","role":"assistant","summary":true,"time":{"created":5,"completed":6}}`, []string{`{"type":"text","text":"short"}`}},
	{`{"id":"msg_5","role":"assistant","time":{"created":7},"error":{"name":"MessageAbortedError","data":{"message":"x"}}}`, nil},
	{`{"id":"msg_6","role":"user","time":{"created":8}}`, []string{`{"type":"text","text":"never said"}`}},
}

const opencodeTalked = "ask a with 1; turn 1 ; call c1 f; gave c1; turn 2 b; call c2 g; compressed; turn 3 ; end interrupted"

func TestOpencodeForms(t *testing.T) {
	var messages []string
	for _, m := range opencodeTalk {
		messages = append(messages, `{"info":`+m.info+`,"parts":[`+strings.Join(m.parts, ",")+`]}`)
	}
	export := `{"info":{"id":"ses_1","version":"1","revert":{"messageID":"msg_6"}},"messages":[` + strings.Join(messages, ",\n")
	got, _, err := form(t, "opencode", "x.json", export+"]}")
	if err != nil || got != opencodeTalked {
		t.Errorf("%v\ngot  %s\nwant %s", err, got, opencodeTalked)
	}
	got, r, err := form(t, "opencode", "x.json", export+`,{"info":{"id"`)
	if err != nil || got != opencodeTalked || !strings.Contains(strings.Join(r.Notes, ""), "cut off behind message 6") {
		t.Errorf("%v %q\ngot  %s\nwant %s", err, r.Notes, got, opencodeTalked)
	}
	_, _, err = form(t, "opencode", "x.json", export+`,{"info":{"id" 1}}]}`)
	if e, ok := errors.AsType[*Error](err); !ok || e.Line != 6 {
		t.Errorf("%v, want an error in line 6", err)
	}
}

// TestDatabaseIsLeftAlone: a database with a log of writes beside it, as a killed opencode leaves it, is read with what stands in the
// log, and nothing in its folder changes.
func TestDatabaseIsLeftAlone(t *testing.T) {
	own := t.TempDir()
	t.Setenv("TMPDIR", own)
	live := filepath.Join(t.TempDir(), "live.db")
	db, err := sql.Open("sqlite", "file:"+live+"?_pragma=journal_mode(WAL)&_pragma=wal_autocheckpoint(0)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(opencodeSchema + `INSERT INTO session VALUES ('ses_1', NULL, '1', '{"messageID":"msg_6"}', 2), ('ses_0', NULL, '1', NULL, 1), ('ses_9', 'ses_1', '1', NULL, 9)`); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(`CREATE TABLE session_message (session_id text); INSERT INTO session_message VALUES ('ses_9')`); err != nil {
		t.Fatal(err)
	}
	for i, m := range opencodeTalk {
		id := fmt.Sprintf("msg_%d", i+1)
		if _, err := db.Exec(`INSERT INTO message VALUES (?, 'ses_1', ?, ?)`, id, i, strings.Replace(m.info, `"id":"`+id+`",`, "", 1)); err != nil {
			t.Fatal(err)
		}
		for j, p := range m.parts {
			if _, err := db.Exec(`INSERT INTO part VALUES (?, ?, ?)`, fmt.Sprintf("prt_%d%d", i, j), id, p); err != nil {
				t.Fatal(err)
			}
		}
	}
	dir := t.TempDir()
	for _, end := range []string{"", "-wal"} {
		if err := copyFile(live+end, filepath.Join(dir, opencodeDB+end)); err != nil {
			t.Fatal(err)
		}
	}
	before := contents(t, dir)
	got, r, err := formOf(t, "opencode", dir)
	if err != nil || got != opencodeTalked {
		t.Errorf("%v, %q\ngot  %s\nwant %s", err, r.Notes, got, opencodeTalked)
	}
	if diff := cmp.Diff(before, contents(t, dir)); diff != "" {
		t.Errorf("the folder changed: %s", diff)
	}
	if left, _ := filepath.Glob(filepath.Join(own, "tapedeck-import-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if got, _, err := formOf(t, "opencode", dir+"#ses_0"); err != nil || got != "" {
		t.Errorf("an empty session: %v %q", err, got)
	}
	if got, r, err := formOf(t, "opencode", dir+"#ses_9"); err != nil || got != "" || !strings.Contains(strings.Join(r.Notes, ""), "1 messages stand in a form") {
		t.Errorf("a session of a newer form: %v %q %q", err, got, r.Notes)
	}
	_, _, err = formOf(t, "opencode", filepath.Join(dir, opencodeDB)+"#ses_7")
	if err == nil || !strings.Contains(err.Error(), "no session ses_7") || !strings.Contains(err.Error(), "ses_9") {
		t.Errorf("a session that is not there: %v", err)
	}
}

func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		out[e.Name()] = string(b)
	}
	return out
}

// TestNoDatabase: what is no database of opencode's is an error, never a panic.
func TestNoDatabase(t *testing.T) {
	whole, err := os.ReadFile("testdata/opencode/opencode.db")
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{
		"its magic alone": []byte(sqliteMagic), "cut off": whole[:len(whole)/3], "zeros behind the first page": append(append([]byte{}, whole[:1024]...), make([]byte, 40000)...),
	} {
		path := filepath.Join(t.TempDir(), "opencode.db")
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		_, _, err := formOf(t, "opencode", path)
		if _, ok := errors.AsType[*Error](err); !ok {
			t.Errorf("%s: %v, want an error", name, err)
		}
	}
}

// short says what tells one event apart.
func short(t *testing.T, line string) string {
	t.Helper()
	e, err := sessionlog.ParseEvent([]byte(line))
	if err != nil {
		t.Fatal(err)
	}
	switch e := e.(type) {
	case *sessionlog.RunStarted:
		if n := len(e.Attachments); n > 0 {
			return fmt.Sprintf("ask %s with %d", e.Goal, n)
		}
		return "ask " + e.Goal
	case *sessionlog.LLMCompleted:
		var text string
		_ = json.Unmarshal(e.Message.Content, &text)
		return fmt.Sprintf("turn %d %s", e.Base().Turn, text)
	case *sessionlog.ToolRequested:
		var out []string
		for _, c := range e.Calls {
			out = append(out, "call "+c.ID+" "+c.Name)
		}
		return strings.Join(out, ", ")
	case *sessionlog.ToolCompleted:
		var out []string
		for _, r := range e.Results {
			said := "gave " + r.CallID
			if r.IsError {
				said += " failed"
			}
			out = append(out, said)
		}
		return strings.Join(out, ", ")
	case *sessionlog.RunTerminal:
		return "end " + e.Reason
	}
	return string(sessionlog.KindOf(e))
}

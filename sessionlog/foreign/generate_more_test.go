package foreign

import (
	"database/sql"
	"fmt"
	"io"
	"path/filepath"
	"testing"
)

func init() {
	transcripts["pi"] = longPi
	transcripts["qwen-code"] = longQwen
	transcripts["atif"] = longATIF
	transcripts["opencode"] = longExport
}

func longPi(out io.Writer, size int) {
	w := &counting{w: out}
	fmt.Fprintf(w, `{"type":"session","version":3,"id":"%s","timestamp":"2026-11-22T12:45:19.716Z","cwd":"/work"}`+"\n", uuidOf(1))
	n, parent := 0, "null"
	line := func(format string, args ...any) {
		n++
		fmt.Fprintf(w, `{"type":"message","id":"%08x","parentId":%s,"timestamp":"2026-11-22T12:45:19.809Z","message":{`, n, parent)
		fmt.Fprintf(w, format, args...)
		io.WriteString(w, "}}\n")
		parent = fmt.Sprintf(`"%08x"`, n)
	}
	for i := 0; w.n < size; i++ {
		if i%10 == 0 {
			line(`"role":"user","content":[{"type":"text","text":"now step %d of the plan, please"}],"timestamp":1795351519808`, i)
		}
		line(`"role":"assistant","content":[{"type":"thinking","thinking":"The test fails because of the order.","thinkingSignature":"c2lnbmVk"},`+
			`{"type":"text","text":"I look at the file and then run the tests."},{"type":"toolCall","id":"toolu_%d","name":"bash","arguments":{"command":"sed -n '%d,+40p' file.go"}}],`+
			`"api":"anthropic-messages","provider":"anthropic","model":"claude-sonnet-4-5","usage":{"input":100,"output":20,"cacheRead":7,"cacheWrite":0,"totalTokens":127,`+
			`"cost":{"input":0.0003,"output":0.0003,"cacheRead":0.0000021,"cacheWrite":0,"total":0.0006021}},"stopReason":"toolUse","timestamp":1795351519841`, i, i)
		line(`"role":"toolResult","toolCallId":"toolu_%d","toolName":"bash","content":[{"type":"text","text":%s}],"isError":false,"timestamp":1795351519917`, i, jsonOf(toolOutput(i)))
	}
}

func longQwen(out io.Writer, size int) {
	w := &counting{w: out}
	n, parent := 0, "null"
	line := func(kind, format string, args ...any) {
		n++
		fmt.Fprintf(w, `{"uuid":"%s","parentUuid":%s,"sessionId":"11111111-2222-4333-8444-555555555555","timestamp":"2026-11-22T12:51:27.050Z","type":"%s",`+
			`"provenance":"p","cwd":"/work","version":"0.24.4",`, uuidOf(n), parent, kind)
		fmt.Fprintf(w, format, args...)
		io.WriteString(w, "}\n")
		parent = `"` + uuidOf(n) + `"`
	}
	for i := 0; w.n < size; i++ {
		if i%10 == 0 {
			line("user", `"message":{"role":"user","parts":[{"text":"now step %d of the plan, please"}]}`, i)
		}
		line("system", `"subtype":"ui_telemetry","systemPayload":{"uiEvent":{"event.name":"qwen-code.api_response","response_id":"chatcmpl-%d","model":"gpt-4o","status_code":200,`+
			`"total_token_count":120,"response_text":"I look at the file and then run the tests.","prompt_id":"p########0"}}`, i)
		line("assistant", `"model":"gpt-4o","message":{"role":"model","parts":[{"text":"The test fails because of the order.","thought":true},`+
			`{"text":"I look at the file and then run the tests."},{"functionCall":{"id":"call_%d","name":"run_shell_command","args":{"command":"sed -n '%d,+40p' file.go"}}}]},`+
			`"usageMetadata":{"promptTokenCount":100,"candidatesTokenCount":20,"totalTokenCount":120},"contextWindowSize":131072`, i, i)
		o := jsonOf(toolOutput(i))
		line("tool_result", `"message":{"role":"user","parts":[{"functionResponse":{"id":"call_%d","name":"run_shell_command","response":{"output":%s}}}]},`+
			`"toolCallResult":{"callId":"call_%d","status":"success","resultDisplay":%s}`, i, o, i, o)
	}
}

func longATIF(out io.Writer, size int) {
	w := &counting{w: out}
	fmt.Fprintf(w, `{"schema_version":"ATIF-v1.7","session_id":"%s","agent":{"name":"gardener","version":"2.1.0"},"steps":[`, uuidOf(1))
	for i, n := 0, 0; w.n < size; i++ {
		if i%10 == 0 {
			if n > 0 {
				io.WriteString(w, ",")
			}
			n++
			fmt.Fprintf(w, `{"step_id":%d,"timestamp":"2026-11-22T10:00:01Z","source":"user","message":"now step %d of the plan, please"}`, n, i)
		}
		n++
		fmt.Fprintf(w, `,{"step_id":%d,"timestamp":"2026-11-22T10:00:02Z","source":"agent","model_name":"gpt-5","message":"I look at the file and then run the tests.",`+
			`"reasoning_content":"The test fails because of the order.","tool_calls":[{"tool_call_id":"call_%d","function_name":"bash","arguments":{"command":"sed -n '%d,+40p' file.go"}}],`+
			`"observation":{"results":[{"source_call_id":"call_%d","content":%s}]},"metrics":{"prompt_tokens":100,"completion_tokens":20,"completion_token_ids":[1722,310,5533,1722,13,1640],`+
			`"logprobs":[-0.1,-0.05,-0.02,-0.01,-0.2,-0.15]}}`, n, i, i, i, jsonOf(toolOutput(i)))
	}
	io.WriteString(w, `],"final_metrics":{"total_steps":1}}`)
}

// What opencode keeps of one turn.
const (
	opencodeUser      = `{"role":"user","time":{"created":1795351939584},"agent":"build","model":{"providerID":"openai","modelID":"gpt-5"},"summary":{"diffs":[]}`
	opencodeAssistant = `{"role":"assistant","mode":"build","agent":"build","path":{"cwd":"/work","root":"/"},"cost":0.0003,"tokens":{"total":120,"input":93,"output":15,"reasoning":5,` +
		`"cache":{"write":0,"read":7}},"modelID":"gpt-5","providerID":"openai","time":{"created":1795351940761,"completed":1795351942137},"finish":"tool-calls"`
)

func opencodeTurn(i int) []string {
	return []string{
		`{"type":"step-start"}`,
		`{"type":"reasoning","text":"The test fails because of the order.","time":{"start":1795351941401,"end":1795351941414},"metadata":{"openai":{"itemId":"rs_1","reasoningEncryptedContent":"c2VhbGVk"}}}`,
		`{"type":"text","text":"I look at the file and then run the tests.","time":{"start":1795351941421,"end":1795351941431}}`,
		fmt.Sprintf(`{"type":"tool","tool":"bash","callID":"call_%d","state":{"status":"completed","input":{"command":"sed -n '%d,+40p' file.go","description":"look"},"output":%s,`+
			`"metadata":{"exit":0,"truncated":false},"title":"look","time":{"start":1795351941466,"end":1795351942114}}}`, i, i, jsonOf(toolOutput(i))),
		`{"reason":"tool-calls","type":"step-finish","tokens":{"total":120,"input":93,"output":15,"reasoning":5,"cache":{"write":0,"read":7}},"cost":0.0003}`,
	}
}

func longExport(out io.Writer, size int) {
	w := &counting{w: out}
	io.WriteString(w, `{"info":{"id":"ses_1","version":"1.18.33","time":{"created":1,"updated":2}},"messages":[`)
	for i := 0; w.n < size; i++ {
		if i%10 == 0 {
			if i > 0 {
				io.WriteString(w, ",")
			}
			fmt.Fprintf(w, `{"info":%s,"id":"msg_%da"},"parts":[{"type":"text","text":"now step %d of the plan, please"}]}`, opencodeUser, i, i)
		}
		fmt.Fprintf(w, `,{"info":%s,"id":"msg_%db"},"parts":[`, opencodeAssistant, i)
		for j, part := range opencodeTurn(i) {
			if j > 0 {
				io.WriteString(w, ",")
			}
			io.WriteString(w, part)
		}
		io.WriteString(w, "]}")
	}
	io.WriteString(w, "]}")
}

// opencodeSchema is what an import needs of opencode's tables, with their indexes.
const opencodeSchema = `
	CREATE TABLE session (id text PRIMARY KEY, parent_id text, version text NOT NULL, revert text, time_updated integer NOT NULL);
	CREATE TABLE message (id text PRIMARY KEY, session_id text NOT NULL, time_created integer NOT NULL, data text NOT NULL);
	CREATE TABLE part (id text PRIMARY KEY, message_id text NOT NULL, data text NOT NULL);
	CREATE INDEX message_session_time_created_id_idx ON message (session_id, time_created, id);
	CREATE INDEX part_message_id_id_idx ON part (message_id, id);
`

// database makes a database of opencode's, with what fill puts into it.
func database(t testing.TB, path string, fill func(tx *sql.Tx)) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(opencodeSchema); err != nil {
		t.Fatal(err)
	}
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	fill(tx)
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
}

func insert(t testing.TB, tx *sql.Tx, query string, args ...any) {
	t.Helper()
	if _, err := tx.Exec(query, args...); err != nil {
		t.Fatal(err)
	}
}

// longDatabase holds a session of at least size bytes.
func longDatabase(t testing.TB, path string, size int) {
	t.Helper()
	database(t, path, func(tx *sql.Tx) {
		insert(t, tx, `INSERT INTO session VALUES ('ses_1', NULL, '1.18.33', NULL, 2)`)
		for i, n := 0, 0; n < size; i++ {
			if i%10 == 0 {
				insert(t, tx, `INSERT INTO message VALUES (?, 'ses_1', ?, ?)`, fmt.Sprintf("msg_%09da", i), i, opencodeUser+"}")
				insert(t, tx, `INSERT INTO part VALUES (?, ?, ?)`, fmt.Sprintf("prt_%09d", i), fmt.Sprintf("msg_%09da", i), `{"type":"text","text":"now, please"}`)
			}
			id := fmt.Sprintf("msg_%09db", i)
			insert(t, tx, `INSERT INTO message VALUES (?, 'ses_1', ?, ?)`, id, i, opencodeAssistant+"}")
			for j, part := range opencodeTurn(i) {
				insert(t, tx, `INSERT INTO part VALUES (?, ?, ?)`, fmt.Sprintf("prt_%09db%d", i, j), id, part)
				n += len(part)
			}
			n += len(opencodeAssistant)
		}
	})
}

// TestLongDatabase reads a long database of opencode's in bounded memory. SQLite itself reads some hundred MB a second here.
func TestLongDatabase(t *testing.T) {
	path := filepath.Join(t.TempDir(), opencodeDB)
	longDatabase(t, path, longSize())
	importLong(t, "opencode", path)
}

func BenchmarkImportDatabase(b *testing.B) {
	path := filepath.Join(b.TempDir(), opencodeDB)
	longDatabase(b, path, 64<<20)
	b.SetBytes(sizeOf(b, path))
	b.ReportAllocs()
	for b.Loop() {
		importAll(b, "opencode", path)
	}
}

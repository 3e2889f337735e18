package foreign

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A writer of transcripts writes one that looks like those of a long working day, at least size bytes long.
type transcriptWriter func(w io.Writer, size int)

var transcripts = map[string]transcriptWriter{"claude-code": longClaude, "codex": longCodex, "gemini-cli": longGemini}

// longTranscript writes a transcript of a kind to a file and returns its path.
func longTranscript(t testing.TB, kind string, size int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "session-long.jsonl")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriterSize(f, 1<<20)
	transcripts[kind](w, size)
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// counting counts what it passes on.
type counting struct {
	w io.Writer
	n int
}

func (c *counting) Write(b []byte) (int, error) {
	c.n += len(b)
	return c.w.Write(b)
}

func jsonOf(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings always marshal
	}
	return string(b)
}

// toolOutput is what a command or a file gives: a few kilobytes of code, with tabs, quotes and line breaks.
func toolOutput(i int) string {
	var b strings.Builder
	for n := range 20 + i%60 {
		fmt.Fprintf(&b, "%6d\tif err := w.append(record[%d], \"kind\"); err != nil {\n\t\treturn fmt.Errorf(\"line %d: %%w\", err)\n\t}\n", n, i, n)
	}
	return b.String()
}

func uuidOf(i int) string { return fmt.Sprintf("%08x-aaaa-4bbb-8ccc-%012x", i, i*7919) }

func longClaude(out io.Writer, size int) {
	w := &counting{w: out}
	n, parent := 0, "null"
	line := func(format string, args ...any) {
		n++
		fmt.Fprintf(w, `{"parentUuid":%s,"isSidechain":false,"userType":"external","cwd":"/home/me/project","sessionId":"11111111-2222-4333-8444-555555555555","version":"2.1.197","gitBranch":"main",`, parent)
		fmt.Fprintf(w, format, args...)
		fmt.Fprintf(w, `,"uuid":"%s","timestamp":"2026-11-22T12:45:31.448Z"}`+"\n", uuidOf(n))
		parent = `"` + uuidOf(n) + `"`
	}
	for i := 0; w.n < size; i++ {
		if i%10 == 0 {
			line(`"type":"user","message":{"role":"user","content":"now step %d of the plan, please"}`, i)
		}
		const said = `"type":"assistant","requestId":"req_%d","message":{"id":"msg_%d","type":"message","role":"assistant","model":"claude-opus-4-5",` +
			`"content":[%s],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":12,"cache_creation_input_tokens":300,` +
			`"cache_read_input_tokens":40000,"output_tokens":200,"service_tier":"standard"}}`
		line(said, i, i, `{"type":"thinking","thinking":"The test fails because of the order.","signature":"`+strings.Repeat("c2lnbmVk", 60)+`"}`)
		line(said, i, i, `{"type":"text","text":"I look at the file and then run the tests."}`)
		line(said, i, i, fmt.Sprintf(`{"type":"tool_use","id":"toolu_%d","name":"Bash","input":{"command":"sed -n '%d,+40p' file.go","description":"look"}}`, i, i))
		o := jsonOf(toolOutput(i))
		line(`"type":"user","message":{"role":"user","content":[{"tool_use_id":"toolu_%d","type":"tool_result","content":%s,"is_error":false}]},`+
			`"toolUseResult":{"stdout":%s,"stderr":"","interrupted":false,"isImage":false}`, i, o, o)
	}
}

func longCodex(out io.Writer, size int) {
	w := &counting{w: out}
	line := func(kind, format string, args ...any) {
		fmt.Fprintf(w, `{"timestamp":"2026-11-22T12:45:31.448Z","type":"%s","payload":`, kind)
		fmt.Fprintf(w, format, args...)
		io.WriteString(w, "}\n")
	}
	line("session_meta", `{"id":"%s","timestamp":"2026-11-22T12:45:28.570Z","cwd":"/home/me","cli_version":"0.169.0","base_instructions":{"text":"You are a coding agent."}}`, uuidOf(1))
	for i := 0; w.n < size; i++ {
		if i%10 == 0 {
			line("response_item", `{"type":"message","role":"user","content":[{"type":"input_text","text":"now step %d of the plan, please"}]}`, i)
		}
		line("response_item", `{"type":"reasoning","id":"rs_%d","summary":[{"type":"summary_text","text":"The test fails because of the order."}],"encrypted_content":"%s"}`,
			i, strings.Repeat("c2VhbGVk", 100))
		line("event_msg", `{"type":"agent_message","message":"I look at the file and then run the tests."}`)
		line("response_item", `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"I look at the file and then run the tests."}]}`)
		line("response_item", `{"type":"function_call","name":"exec_command","arguments":"{\"cmd\":\"sed -n '%d,+40p' file.go\"}","call_id":"call_%d"}`, i, i)
		o := jsonOf(toolOutput(i))
		line("event_msg", `{"type":"item_completed","item":{"type":"CommandExecution","id":"call_%d","status":"completed","aggregated_output":%s,"exit_code":0}}`, i, o)
		line("response_item", `{"type":"function_call_output","call_id":"call_%d","output":%s}`, i, o)
		line("event_msg", `{"type":"token_count","info":{"total_token_usage":{"input_tokens":%d,"total_tokens":%d}}}`, i*100, i*120)
	}
}

func longGemini(out io.Writer, size int) {
	w := &counting{w: out}
	fmt.Fprintf(w, `{"sessionId":"%s","projectHash":"444b","startTime":"2026-11-22T12:45:40.613Z","kind":"main"}`+"\n", uuidOf(1))
	for i := 0; w.n < size; i++ {
		if i%10 == 0 {
			fmt.Fprintf(w, `{"id":"user-%d","timestamp":"2026-11-22T12:45:40.631Z","type":"user","content":[{"text":"now step %d of the plan, please"}]}`+"\n", i, i)
		}
		head := fmt.Sprintf(`{"id":"m-%d","timestamp":"2026-11-22T12:45:40.801Z","type":"gemini","content":"I look at the file and then run the tests.",`+
			`"thoughts":[{"subject":"Looking","description":"The test fails because of the order."}],"tokens":{"input":11793,"output":23,"total":11816},"model":"gemini-2.5-flash"`, i)
		o := jsonOf(toolOutput(i))
		response := fmt.Sprintf(`[{"functionResponse":{"id":"run__%d","name":"run_shell_command","response":{"output":%s}}}]`, i, o)
		fmt.Fprintf(w, "%s}\n{\"$set\":{\"lastUpdated\":\"2026-11-22T12:45:40.803Z\"}}\n", head)
		fmt.Fprintf(w, `%s,"toolCalls":[{"id":"run__%d","name":"run_shell_command","args":{"command":"sed -n '%d,+40p' file.go"},"result":%s,"status":"success","resultDisplay":%s}]}`+"\n",
			head, i, i, response, o)
		fmt.Fprintf(w, `{"id":"r-%d","timestamp":"2026-11-22T12:45:40.883Z","type":"user","content":%s}`+"\n", i, response)
	}
}

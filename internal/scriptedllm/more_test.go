package scriptedllm

import (
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	ollamaTurn = `{"model":"qwen3","stream":STREAM,"think":true,"messages":[{"role":"system","content":"Be brief."},
		{"role":"user","content":"write hello.txt"}REST],"tools":[{"type":"function","function":{"name":"write_file",
		"parameters":{"type":"object","properties":{"path":{"type":"string"},"content":{"type":"string"}}}}}]}`
	ollamaRest = `,{"role":"assistant","content":"","tool_calls":[{"function":{"name":"write_file","arguments":{}}}]},
		{"role":"tool","tool_name":"write_file","content":"wrote 6 bytes"}`

	converseTurn = `{"system":[{"text":"Be brief."}],"messages":[{"role":"user","content":[{"text":"write hello.txt"}]}REST],
		"toolConfig":{"tools":[{"toolSpec":{"name":"write_file","inputSchema":{"json":{"type":"object",
		"properties":{"path":{"type":"string"},"content":{"type":"string"}}}}}}]}}`
	converseRest = `,{"role":"assistant","content":[{"toolUse":{"toolUseId":"t","name":"write_file","input":{}}}]},
		{"role":"user","content":[{"toolResult":{"toolUseId":"t","content":[{"text":"wrote 6 bytes"}]}}]}`
	modelPath = "/model/anthropic.claude-v2:1/"
)

var helloArgs = object{"path": "hello.txt", "content": "hello\n"}

// want compares what stands at a path.
func want(t *testing.T, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestOllama(t *testing.T) {
	_, body := post(t, nil, "/api/chat", fillIn(ollamaTurn, "false", ""))
	want(t, at(decode(t, body), "message", "tool_calls", 0, "function", "arguments"), any(helloArgs))

	resp, body := post(t, nil, "/api/chat", fillIn(ollamaTurn, "true", ollamaRest))
	var lines []object
	for line := range strings.Lines(body) {
		lines = append(lines, decode(t, line))
	}
	want(t, resp.Header.Get("Content-Type"), "application/x-ndjson")
	want(t, joined(lines, "message", "content"), outcomeText)
	want(t, joined(lines, "message", "thinking"), "The last message is: write hello.txt")
	last := lines[len(lines)-1]
	if last["done"] != true || last["eval_count"] == nil || lines[0]["done"] != false {
		t.Errorf("last line %v", last)
	}
}

func TestAzureTakesTheModelFromThePath(t *testing.T) {
	body := strings.Replace(fillIn(chatTurn, "false", chatRest), `"model":"gpt-4o",`, "", 1)
	e := New(nil)
	_, answer := postTo(t, e, "/openai/deployments/ours/chat/completions?api-version=1", body)
	want(t, at(decode(t, answer), "model"), any("ours"))
	want(t, at(decode(t, answer), "choices", 0, "message", "content"), any(outcomeText))
	want(t, e.Requests()[0].Provider, "openai")
}

func TestConverse(t *testing.T) {
	_, body := post(t, nil, modelPath+"converse", fillIn(converseTurn, "", ""))
	want(t, at(decode(t, body), "output", "message", "content", 1, "toolUse", "input"), any(helloArgs))
	want(t, at(decode(t, body), "stopReason"), any("tool_use"))

	resp, body := post(t, nil, modelPath+"converse-stream", fillIn(converseTurn, "", converseRest))
	want(t, resp.Header.Get("Content-Type"), "application/vnd.amazon.eventstream")
	payloads := frames(t, []byte(body))
	want(t, joined(payloads, "delta", "text"), outcomeText)
	if last := payloads[len(payloads)-1]; at(last, "usage", "totalTokens") == nil {
		t.Errorf("last event %v", last)
	}
	_, body = post(t, nil, modelPath+"converse-stream", fillIn(converseTurn, "", ""))
	wantJSON(t, joined(frames(t, []byte(body)), "delta", "toolUse", "input"), helloArgs)
}

func TestInvoke(t *testing.T) {
	turn := `{"anthropic_version":"bedrock-2023-05-31","messages":[{"role":"user","content":"hi"}]}`
	_, body := post(t, nil, modelPath+"invoke", turn)
	want(t, at(decode(t, body), "content", 0, "text"), any("Scripted answer to: hi"))
	_, body = post(t, nil, modelPath+"invoke-with-response-stream", turn)
	var list []object
	for _, frame := range frames(t, []byte(body)) {
		event, err := base64.StdEncoding.DecodeString(frame["bytes"].(string))
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, decode(t, string(event)))
	}
	want(t, joined(list, "delta", "text"), "Scripted answer to: hi")
}

// frames takes an event stream apart and checks its sums.
func frames(t *testing.T, b []byte) []object {
	t.Helper()
	var out []object
	for len(b) > 0 {
		total, headers := binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])
		if crc32.ChecksumIEEE(b[:8]) != binary.BigEndian.Uint32(b[8:]) {
			t.Fatal("the sum of the lengths is wrong")
		}
		if crc32.ChecksumIEEE(b[:total-4]) != binary.BigEndian.Uint32(b[total-4:]) {
			t.Fatal("the sum of the message is wrong")
		}
		out = append(out, decode(t, string(b[12+headers:total-4])))
		b = b[total:]
	}
	return out
}

func TestThoughts(t *testing.T) {
	thought := "The last message is: write hello.txt"
	body := strings.Replace(anthropicTurn, `"max_tokens":9`, `"max_tokens":9,"thinking":{"type":"enabled"}`, 1)
	_, answer := post(t, nil, "/v1/messages", fillIn(body, "true", ""))
	want(t, joined(events(t, answer), "delta", "thinking"), thought)
	if joined(events(t, answer), "delta", "signature") == "" {
		t.Error("the thought has no signature")
	}
	body = strings.Replace(geminiTurn, `{"systemI`, `{"generationConfig":{"thinkingConfig":{"includeThoughts":true}},"systemI`, 1)
	_, answer = post(t, nil, geminiPath+"generateContent", fillIn(body, "", ""))
	part := at(decode(t, answer), "candidates", 0, "content", "parts", 0)
	want(t, part, any(object{"text": thought, "thought": true}))
}

func TestCallsSideBySide(t *testing.T) {
	both := func(template string) string {
		return strings.Replace(fillIn(template, "true", ""), "write hello.txt", "write a.txt, b.txt and c.txt saying hi", 1)
	}
	e := New(nil)
	_, body := postTo(t, e, "/v1/chat/completions", both(chatTurn))
	calls := make(map[any]string)
	for _, o := range events(t, body) {
		c := at(o, "choices", 0, "delta", "tool_calls", 0)
		text, _ := at(c, "function", "arguments").(string)
		if c != nil {
			calls[at(c, "index")] += text
		}
	}
	for i, file := range []string{"a.txt", "b.txt", "c.txt"} {
		wantJSON(t, calls[float64(i)], object{"path": file, "content": "hi\n"})
	}
	want(t, e.Requests()[0].Tool, "write_file")
	_, body = post(t, nil, "/v1/responses", both(responsesTurn))
	want(t, strings.Count(body, "event: response.function_call_arguments.done"), 3)
}

func TestFaultsComeOnce(t *testing.T) {
	opts := &Options{Faults: true}
	for path, body := range map[string]string{
		"/v1/messages": anthropicTurn, "/v1/responses": responsesTurn, "/v1/chat/completions": chatTurn,
		geminiPath + "generateContent": geminiTurn, "/api/chat": ollamaTurn, modelPath + "converse": converseTurn,
	} {
		body = strings.Replace(fillIn(body, "false", ""), "write hello.txt", "fail once with 529", 1)
		e := New(opts)
		for _, status := range []int{529, 200, 200} {
			resp, answer := postTo(t, e, path, body)
			if resp.StatusCode != status {
				t.Errorf("%s: status %d, want %d: %s", path, resp.StatusCode, status, answer)
			}
		}
		if resp, _ := post(t, nil, path, body); resp.StatusCode != 200 {
			t.Errorf("%s: status %d without faults", path, resp.StatusCode)
		}
	}
}

func TestCounts(t *testing.T) {
	tests := []struct {
		path, body string
		where      []any
	}{
		{"/v1/messages/count_tokens", fillIn(anthropicTurn, "false", ""), []any{"input_tokens"}},
		{"/v1/responses/input_tokens", `{"model":"m","input":"hi"}`, []any{"input_tokens"}},
		{geminiPath + "countTokens", fillIn(geminiTurn, "", ""), []any{"totalTokens"}},
	}
	for _, tt := range tests {
		_, body := post(t, nil, tt.path, tt.body)
		if got, ok := at(decode(t, body), tt.where...).(float64); !ok || got == 0 {
			t.Errorf("%s: %s", tt.path, body)
		}
	}
}

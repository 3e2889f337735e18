package scriptedllm

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// names lists a stream's event types, each run of equal ones once.
func names(list []object) []string {
	var out []string
	for _, o := range list {
		name, _ := o["type"].(string)
		out = append(out, name)
	}
	return slices.Compact(out)
}

func wantJSON(t *testing.T, text string, want object) {
	t.Helper()
	if diff := cmp.Diff(want, decode(t, text)); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
}

func TestAnthropic(t *testing.T) {
	_, body := post(t, nil, "/v1/messages", fillIn(anthropicTurn, "false", ""))
	whole := decode(t, body)
	if at(whole, "stop_reason") != "tool_use" || at(whole, "content", 1, "type") != "tool_use" {
		t.Errorf("answer %s", body)
	}
	if diff := cmp.Diff(object{"path": "hello.txt", "content": "hello\n"}, at(whole, "content", 1, "input")); diff != "" {
		t.Error(diff)
	}
	if id, _ := at(whole, "content", 1, "id").(string); !strings.HasPrefix(id, "toolu_01") {
		t.Errorf("id %q", id)
	}

	resp, body := post(t, nil, "/v1/messages", fillIn(anthropicTurn, "true", ""))
	list := events(t, body)
	if resp.Header.Get("Request-Id") == "" || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		t.Errorf("header %v", resp.Header)
	}
	wantJSON(t, joined(list, "delta", "partial_json"), object{"path": "hello.txt", "content": "hello\n"})
	want := []string{
		"message_start", "content_block_start", "ping", "content_block_delta", "content_block_stop", "content_block_start",
		"content_block_delta", "content_block_stop", "message_delta", "message_stop",
	}
	if diff := cmp.Diff(want, names(list)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}

	_, body = post(t, nil, "/v1/messages", fillIn(anthropicTurn, "true", anthropicRest))
	if got := joined(events(t, body), "delta", "text"); got != outcomeText {
		t.Errorf("final text %q", got)
	}
	if got := joined(events(t, body), "delta", "stop_reason"); got != "end_turn" {
		t.Errorf("stop reason %q", got)
	}
}

func TestChat(t *testing.T) {
	_, body := post(t, nil, "/v1/chat/completions", fillIn(chatTurn, "false", ""))
	choice := at(decode(t, body), "choices", 0)
	if at(choice, "finish_reason") != "tool_calls" {
		t.Errorf("answer %s", body)
	}
	arguments, _ := at(choice, "message", "tool_calls", 0, "function", "arguments").(string)
	wantJSON(t, arguments, object{"path": "hello.txt", "content": "hello\n"})

	_, body = post(t, nil, "/v1/chat/completions", fillIn(chatTurn, "true", ""))
	list := events(t, body)
	wantJSON(t, joined(list, "choices", 0, "delta", "tool_calls", 0, "function", "arguments"),
		object{"path": "hello.txt", "content": "hello\n"})
	if at(list[0], "choices", 0, "delta", "role") != "assistant" || !strings.HasSuffix(body, "data: [DONE]\n\n") {
		t.Errorf("stream %s", body)
	}
	if last := list[len(list)-1]; at(last, "usage", "total_tokens") == nil || len(at(last, "choices").([]any)) != 0 {
		t.Errorf("usage chunk %v", last)
	}
	if usage, ok := list[0]["usage"]; !ok || usage != nil {
		t.Error("the first chunk's usage must be there and null")
	}

	_, body = post(t, nil, "/v1/chat/completions", fillIn(chatTurn, "true", chatRest))
	if got := joined(events(t, body), "choices", 0, "delta", "content"); got != outcomeText {
		t.Errorf("final text %q", got)
	}
}

func TestResponses(t *testing.T) {
	command := object{"cmd": `printf '%s\n' 'hello' > 'hello.txt'`}
	_, body := post(t, nil, "/v1/responses", fillIn(responsesTurn, "false", ""))
	item := at(decode(t, body), "output", 1)
	if at(item, "name") != "exec_command" {
		t.Errorf("answer %s", body)
	}
	wantJSON(t, at(item, "arguments").(string), command)

	_, body = post(t, nil, "/v1/responses", fillIn(responsesTurn, "true", ""))
	list := events(t, body)
	for i, o := range list {
		if o["sequence_number"] != float64(i) {
			t.Fatalf("event %d has sequence number %v", i, o["sequence_number"])
		}
	}
	wantNames := []string{
		"response.created", "response.in_progress", "response.output_item.added", "response.content_part.added",
		"response.output_text.delta", "response.output_text.done", "response.content_part.done", "response.output_item.done",
		"response.output_item.added", "response.function_call_arguments.delta", "response.function_call_arguments.done",
		"response.output_item.done", "response.completed",
	}
	if diff := cmp.Diff(wantNames, names(list)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	call := slices.IndexFunc(list, func(o object) bool { return o["type"] == "response.function_call_arguments.delta" })
	wantJSON(t, joined(list[call:], "delta"), command)
	if at(list[len(list)-1], "response", "status") != "completed" {
		t.Errorf("last event %v", list[len(list)-1])
	}

	_, body = post(t, nil, "/v1/responses", fillIn(responsesTurn, "true", responsesRest))
	if got := joined(events(t, body), "delta"); got != outcomeText {
		t.Errorf("final text %q", got)
	}
	_, body = post(t, nil, "/v1/responses", `{"model":"m","input":"name this"}`)
	if at(decode(t, body), "output", 0, "content", 0, "text") != "Scripted answer to: name this" {
		t.Errorf("without tools: %s", body)
	}
}

func TestGemini(t *testing.T) {
	args := object{"file_path": "hello.txt", "content": "hello\n"}
	_, body := post(t, nil, geminiPath+"generateContent", fillIn(geminiTurn, "", ""))
	candidate := at(decode(t, body), "candidates", 0)
	if diff := cmp.Diff(args, at(candidate, "content", "parts", 1, "functionCall", "args")); diff != "" {
		t.Error(diff)
	}
	if at(candidate, "finishReason") != "STOP" {
		t.Errorf("answer %s", body)
	}

	_, body = post(t, nil, geminiPath+"streamGenerateContent?alt=sse", fillIn(geminiTurn, "", ""))
	list := events(t, body)
	last := list[len(list)-1]
	if diff := cmp.Diff(args, at(last, "candidates", 0, "content", "parts", 0, "functionCall", "args")); diff != "" {
		t.Error(diff)
	}
	if at(last, "candidates", 0, "finishReason") != "STOP" || !strings.HasSuffix(body, "\r\n\r\n") {
		t.Errorf("stream %q", body)
	}
	_, body = post(t, nil, geminiPath+"streamGenerateContent?alt=sse", fillIn(geminiTurn, "", geminiRest))
	if got := joined(events(t, body), "candidates", 0, "content", "parts", 0, "text"); got != outcomeText {
		t.Errorf("final text %q", got)
	}
}

func TestGeminiArray(t *testing.T) {
	for name, text := range map[string]string{"several": outcomeText, "one": "short"} {
		rest := fillIn(geminiTurn, "", geminiRest)
		resp, body := post(t, &Options{Text: text}, geminiPath+"streamGenerateContent", rest)
		var list []object
		if err := json.Unmarshal([]byte(body), &list); err != nil {
			t.Fatalf("%s: %v in %q", name, err, body)
		}
		if got := joined(list, "candidates", 0, "content", "parts", 0, "text"); got != text {
			t.Errorf("%s: final text %q", name, got)
		}
		if !strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") {
			t.Errorf("%s: header %v", name, resp.Header)
		}
	}
}

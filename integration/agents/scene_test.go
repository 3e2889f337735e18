//go:build agents

package agents

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/tapedeck-dev/tapedeck/internal/scriptedllm"
)

// A scene is a model that plays a part: to a prompt that holds one of its cues it gives the steps of that cue, one a turn, in
// the wire format that it is asked in. Requests without a cue or without tools, as for a title, are scriptedllm's.
type scene struct {
	cues map[string][]step
	held chan string // cues whose step holds, once it has begun
	rest http.Handler

	mu     sync.Mutex
	failed map[string]int // by what fails: how often it has

	front http.Handler // what stands before the scene, for what is asked over a WebSocket; nil for nothing
}

// A step is one answer.
type step struct {
	think, say string
	calls      []toolCall
	status     int   // not 0: the answer is this failure
	hold       bool  // it begins, and ends when the client goes
	busy       []int // it is asked for so often in vain before: with a status each
}

func newScene(key string, cues map[string][]step) *scene {
	return &scene{cues: cues, held: make(chan string, 8), failed: make(map[string]int), rest: scriptedllm.New(&scriptedllm.Options{Key: key, Seed: 1})}
}

// ServeHTTP answers one request.
func (s *scene) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Upgrade") != "" {
		s.serveSocket(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var q map[string]any
	_ = json.Unmarshal(body, &q)
	cue, n := s.where(q)
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	if tools, _ := q["tools"].([]any); cue == "" || len(tools) == 0 {
		s.rest.ServeHTTP(w, r)
		return
	}
	now := step{say: "That is all."}
	if steps := s.cues[cue]; n < len(steps) {
		now = steps[n]
	}
	if now.status != 0 {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(now.status)
		fmt.Fprintf(w, `{"type":"error","error":{"type":"invalid_request_error","message":"the model is out of %s"}}`, cue)
		return
	}
	if status := s.fails(fmt.Sprint(cue, n), now.busy); status != 0 {
		busy(w, r, status)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	t := &telling{w: w, step: now, name: fmt.Sprintf("%s%d", strings.TrimPrefix(cue, "errand "), n), model: fmt.Sprint(q["model"])}
	switch {
	case strings.Contains(r.URL.Path, "/messages"):
		t.anthropic()
	case strings.Contains(r.URL.Path, "/responses"):
		t.responses()
	case strings.Contains(r.URL.Path, "/chat/completions"):
		t.chat()
	case strings.Contains(r.URL.Path, "treamGenerateContent"):
		t.gemini()
	default:
		s.rest.ServeHTTP(w, r)
		return
	}
	if now.hold {
		s.held <- cue
		<-r.Context().Done()
	}
}

// fails returns the next of the failures that come before a step; 0 once all have.
func (s *scene) fails(step string, statuses []int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.failed[step]
	if n >= len(statuses) {
		return 0
	}
	s.failed[step]++
	return statuses[n]
}

// busy says that a model has too much to do, as its provider says it: 429, of who asks too much, with when to ask again, or another one.
func busy(w http.ResponseWriter, r *http.Request, status int) {
	kind, text := "overloaded_error", "Overloaded"
	if status == http.StatusTooManyRequests {
		kind, text = "rate_limit_error", "This request would exceed your rate limit."
		w.Header().Set("Retry-After", "1")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if strings.Contains(r.URL.Path, "/messages") {
		fmt.Fprintf(w, `{"type":"error","error":{"type":%q,"message":%q},"request_id":"req_%d"}`, kind, text, status)
		return
	}
	fmt.Fprintf(w, `{"error":{"message":%q,"type":%q,"param":null,"code":%q}}`, text, kind, kind)
}

// where finds the last cue that a user says, and how many rounds of results came after it.
func (s *scene) where(q map[string]any) (cue string, n int) {
	var list []any
	for _, key := range []string{"messages", "input", "contents"} {
		if l, ok := q[key].([]any); ok {
			list = l
		}
	}
	results := false
	for _, x := range list {
		m, _ := x.(map[string]any)
		text, _ := json.Marshal(m)
		isResult := m["role"] == "tool" || m["type"] == "function_call_output" || m["type"] == "custom_tool_call_output" ||
			strings.Contains(string(text), `"type":"tool_result"`) || strings.Contains(string(text), `"functionResponse"`)
		switch {
		case isResult:
			if !results {
				n++
			}
			results = true
			continue
		case m["role"] == "user":
			last := -1 // a message may repeat the one before it
			for c := range s.cues {
				if at := strings.LastIndex(string(text), c); at > last {
					cue, n, last = c, 0, at
				}
			}
		}
		results = false
	}
	return cue, n
}

// A telling is one step on its way to a client.
type telling struct {
	w     http.ResponseWriter
	step  step
	name  string // names its calls
	model string
}

func (t *telling) event(kind string, data map[string]any) {
	if kind != "" {
		fmt.Fprintf(t.w, "event: %s\n", kind)
		if data["type"] == nil {
			data["type"] = kind
		}
	}
	b, _ := json.Marshal(data)
	fmt.Fprintf(t.w, "data: %s\n\n", b)
	t.w.(http.Flusher).Flush()
}

// id is the id of the step's ith call.
func (t *telling) id(i int) string { return fmt.Sprintf("call_%s_%d", t.name, i) }

func (c *toolCall) arguments() string {
	b, _ := json.Marshal(c.input)
	return string(b)
}

// The tokens that every answer takes.
const tokensIn, tokensOut = 100, 20

func (t *telling) anthropic() {
	usage := map[string]any{"input_tokens": tokensIn, "output_tokens": tokensOut, "cache_read_input_tokens": 7, "cache_creation_input_tokens": 0}
	t.event("message_start", map[string]any{"message": map[string]any{
		"id": "msg_" + t.name, "type": "message", "role": "assistant", "model": t.model, "content": []any{}, "usage": usage,
	}})
	index := 0
	block := func(start, delta map[string]any) {
		t.event("content_block_start", map[string]any{"index": index, "content_block": start})
		t.event("content_block_delta", map[string]any{"index": index, "delta": delta})
		if start["type"] == "thinking" {
			t.event("content_block_delta", map[string]any{"index": index, "delta": map[string]any{"type": "signature_delta", "signature": "c2lnbmVk"}})
		}
		if !t.step.hold {
			t.event("content_block_stop", map[string]any{"index": index})
		}
		index++
	}
	if t.step.think != "" {
		block(map[string]any{"type": "thinking", "thinking": ""}, map[string]any{"type": "thinking_delta", "thinking": t.step.think})
	}
	if t.step.say != "" {
		block(map[string]any{"type": "text", "text": ""}, map[string]any{"type": "text_delta", "text": t.step.say})
	}
	if t.step.hold {
		return
	}
	stop := "end_turn"
	for i, c := range t.step.calls {
		stop = "tool_use"
		block(map[string]any{"type": "tool_use", "id": t.id(i), "name": c.name, "input": map[string]any{}},
			map[string]any{"type": "input_json_delta", "partial_json": c.arguments()})
	}
	t.event("message_delta", map[string]any{"delta": map[string]any{"stop_reason": stop}, "usage": usage})
	t.event("message_stop", map[string]any{})
}

func (t *telling) chat() {
	send := func(delta map[string]any, finish any) {
		t.event("", map[string]any{"id": "chatcmpl-" + t.name, "object": "chat.completion.chunk", "created": 1700000000, "model": t.model,
			"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}}})
	}
	if t.step.think != "" {
		send(map[string]any{"role": "assistant", "reasoning_content": t.step.think}, nil)
	}
	send(map[string]any{"role": "assistant", "content": t.step.say}, nil)
	if t.step.hold {
		return
	}
	finish := "stop"
	for i, c := range t.step.calls {
		finish = "tool_calls"
		send(map[string]any{"tool_calls": []any{map[string]any{"index": i, "id": t.id(i), "type": "function",
			"function": map[string]any{"name": c.name, "arguments": c.arguments()}}}}, nil)
	}
	send(map[string]any{}, finish)
	t.event("", map[string]any{"id": "chatcmpl-" + t.name, "object": "chat.completion.chunk", "created": 1700000000, "model": t.model, "choices": []any{},
		"usage": map[string]any{"prompt_tokens": tokensIn, "completion_tokens": tokensOut, "total_tokens": tokensIn + tokensOut,
			"prompt_tokens_details": map[string]any{"cached_tokens": 7}}})
	fmt.Fprint(t.w, "data: [DONE]\n\n")
}

func (t *telling) responses() {
	response := map[string]any{"id": "resp_" + t.name, "object": "response", "created_at": 1700000000, "status": "in_progress", "model": t.model,
		"output": []any{}}
	t.event("response.created", map[string]any{"response": response})
	var items []any
	add := func(item map[string]any, during func(at int)) {
		at := len(items)
		begun := map[string]any{}
		for k, v := range item {
			begun[k] = v
		}
		switch item["type"] {
		case "message":
			begun["content"] = []any{}
		case "reasoning":
			begun["summary"] = []any{}
		case "function_call":
			begun["arguments"] = ""
		}
		begun["status"] = "in_progress"
		t.event("response.output_item.added", map[string]any{"output_index": at, "item": begun})
		during(at)
		if !t.step.hold || item["type"] != "message" {
			t.event("response.output_item.done", map[string]any{"output_index": at, "item": item})
		}
		items = append(items, item)
	}
	if t.step.think != "" {
		id := "rs_" + t.name
		part := map[string]any{"type": "summary_text", "text": t.step.think}
		add(map[string]any{"id": id, "type": "reasoning", "summary": []any{part}, "encrypted_content": "c2VhbGVk"}, func(at int) {
			t.event("response.reasoning_summary_part.added", map[string]any{"item_id": id, "output_index": at, "summary_index": 0, "part": map[string]any{"type": "summary_text", "text": ""}})
			t.event("response.reasoning_summary_text.delta", map[string]any{"item_id": id, "output_index": at, "summary_index": 0, "delta": t.step.think})
			t.event("response.reasoning_summary_text.done", map[string]any{"item_id": id, "output_index": at, "summary_index": 0, "text": t.step.think})
			t.event("response.reasoning_summary_part.done", map[string]any{"item_id": id, "output_index": at, "summary_index": 0, "part": part})
		})
	}
	if t.step.say != "" {
		id := "msg_" + t.name
		part := map[string]any{"type": "output_text", "text": t.step.say, "annotations": []any{}}
		add(map[string]any{"id": id, "type": "message", "role": "assistant", "status": "completed", "content": []any{part}}, func(at int) {
			t.event("response.content_part.added", map[string]any{"item_id": id, "output_index": at, "content_index": 0, "part": map[string]any{"type": "output_text", "text": "", "annotations": []any{}}})
			t.event("response.output_text.delta", map[string]any{"item_id": id, "output_index": at, "content_index": 0, "delta": t.step.say})
			if !t.step.hold {
				t.event("response.output_text.done", map[string]any{"item_id": id, "output_index": at, "content_index": 0, "text": t.step.say})
				t.event("response.content_part.done", map[string]any{"item_id": id, "output_index": at, "content_index": 0, "part": part})
			}
		})
	}
	if t.step.hold {
		return
	}
	for i, c := range t.step.calls {
		id := fmt.Sprintf("fc_%s_%d", t.name, i)
		item := map[string]any{"id": id, "type": "function_call", "status": "completed", "call_id": t.id(i), "name": c.name, "arguments": c.arguments()}
		if space, name, ok := strings.Cut(c.name, "."); ok {
			item["namespace"], item["name"] = space, name
		}
		add(item, func(at int) {
			t.event("response.function_call_arguments.delta", map[string]any{"item_id": id, "output_index": at, "delta": c.arguments()})
			t.event("response.function_call_arguments.done", map[string]any{"item_id": id, "output_index": at, "arguments": c.arguments()})
		})
	}
	response["status"], response["output"] = "completed", items
	response["usage"] = map[string]any{"input_tokens": tokensIn, "output_tokens": tokensOut, "total_tokens": tokensIn + tokensOut,
		"input_tokens_details": map[string]any{"cached_tokens": 7}, "output_tokens_details": map[string]any{"reasoning_tokens": 5}}
	t.event("response.completed", map[string]any{"response": response})
}

func (t *telling) gemini() {
	send := func(parts []any, finish string) {
		c := map[string]any{"index": 0, "content": map[string]any{"role": "model", "parts": parts}}
		if finish != "" {
			c["finishReason"] = finish
		}
		t.event("", map[string]any{"candidates": []any{c}, "modelVersion": t.model, "responseId": "resp-" + t.name,
			"usageMetadata": map[string]any{"promptTokenCount": tokensIn, "candidatesTokenCount": tokensOut, "totalTokenCount": tokensIn + tokensOut}})
	}
	if t.step.think != "" {
		send([]any{map[string]any{"text": t.step.think, "thought": true}}, "")
	}
	if t.step.say != "" {
		send([]any{map[string]any{"text": t.step.say}}, "")
	}
	if t.step.hold {
		return
	}
	var calls []any
	for i, c := range t.step.calls {
		calls = append(calls, map[string]any{"functionCall": map[string]any{"id": t.id(i), "name": c.name, "args": c.input}})
	}
	if calls == nil {
		calls = []any{map[string]any{"text": ""}}
	}
	send(calls, "STOP")
}

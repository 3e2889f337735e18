package truth

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
)

// An endpoint answers as the providers do, in the forms of their wires, and plain HTTP beside. Each answer has ids and a number of its
// own. It serves all recordings at once, and no replay needs it.
type endpoint struct {
	URL    string
	server *http.Server
}

func newEndpoint() (*endpoint, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	e := &endpoint{URL: "http://" + l.Addr().String(), server: &http.Server{Handler: http.HandlerFunc(serve)}}
	go e.server.Serve(l) // ends with close
	return e, nil
}

func (e *endpoint) close() { e.server.Close() }

// names are the hosts that programs ask.
func (e *endpoint) names() []string {
	return append([]string{"api.anthropic.com", "api.openai.com", "api.mistral.ai", "ollama.example.com", "generativelanguage.googleapis.com"}, hosts...)
}

func serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	t := turn{stream: strings.Contains(string(body), `"stream":true`) || strings.Contains(string(body), `"stream": true`), text: "Noted under number " + fresh("")[:6] + "."}
	for _, done := range []string{`"tool_result"`, `"role": "tool"`, `"role":"tool"`, `"function_call_output"`, `"functionResponse"`} {
		t.done = t.done || strings.Contains(string(body), done)
	}
	t.tools = !t.done && strings.Contains(string(body), `"tools"`)
	switch {
	case r.URL.Path == "/v1/messages":
		t.anthropic(w)
	case r.URL.Path == "/v1/chat/completions":
		t.chat(w)
	case r.URL.Path == "/api/chat":
		t.ollama(w)
	case r.URL.Path == "/v1/responses":
		t.responses(w)
	case strings.Contains(r.URL.Path, "enerateContent"):
		t.stream = strings.Contains(r.URL.Path, ":stream")
		t.gemini(w)
	default:
		writeJSON(w, doc{"says": "number " + fresh("")[:6], "length": len(body)})
	}
}

type doc = map[string]any

// A turn is what a model does next: it calls the tool twice where there is one and it has not been called, and says a text else.
type turn struct {
	stream, done, tools bool
	text                string
}

var inputs = []string{`{"what":"first"}`, `{"what":"second"}`}

func fresh(prefix string) string {
	var b [11]byte
	rand.Read(b[:])
	return prefix + hex.EncodeToString(b[:])
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(v)
}

// An sse writes events, each flushed by itself.
type sse struct{ w http.ResponseWriter }

func newSSE(w http.ResponseWriter) sse {
	w.Header().Set("Content-Type", "text/event-stream")
	return sse{w}
}

func (s sse) send(event string, v any) {
	if event != "" {
		fmt.Fprintf(s.w, "event: %s\n", event)
	}
	b, _ := json.Marshal(v) // maps of strings and numbers
	fmt.Fprintf(s.w, "data: %s\n\n", b)
	s.w.(http.Flusher).Flush()
}

func (t turn) anthropic(w http.ResponseWriter) {
	var blocks []doc
	reason := "end_turn"
	if t.tools {
		reason = "tool_use"
		for _, in := range inputs {
			blocks = append(blocks, doc{"type": "tool_use", "id": fresh("toolu_01"), "name": "find", "input": json.RawMessage(in)})
		}
	} else {
		blocks = append(blocks, doc{"type": "text", "text": t.text})
	}
	message := doc{"id": fresh("msg_01"), "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "content": blocks,
		"stop_reason": reason, "stop_sequence": nil, "usage": doc{"input_tokens": 20, "output_tokens": 9}}
	if !t.stream {
		writeJSON(w, message)
		return
	}
	s := newSSE(w)
	message["content"], message["stop_reason"] = []doc{}, nil
	s.send("message_start", doc{"type": "message_start", "message": message})
	for i, b := range blocks {
		s.anthropicBlock(i, b)
	}
	s.send("message_delta", doc{"type": "message_delta", "delta": doc{"stop_reason": reason, "stop_sequence": nil}, "usage": doc{"output_tokens": 9}})
	s.send("message_stop", doc{"type": "message_stop"})
}

func (s sse) anthropicBlock(i int, b doc) {
	start, kind, key, whole := doc{"type": "text", "text": ""}, "text_delta", "text", b["text"]
	if b["type"] == "tool_use" {
		start = doc{"type": "tool_use", "id": b["id"], "name": b["name"], "input": doc{}}
		kind, key, whole = "input_json_delta", "partial_json", string(b["input"].(json.RawMessage))
	}
	s.send("content_block_start", doc{"type": "content_block_start", "index": i, "content_block": start})
	for _, piece := range halves(whole.(string)) {
		s.send("content_block_delta", doc{"type": "content_block_delta", "index": i, "delta": doc{"type": kind, key: piece}})
	}
	s.send("content_block_stop", doc{"type": "content_block_stop", "index": i})
}

func halves(s string) []string { return []string{s[:len(s)/2], s[len(s)/2:]} }

func (t turn) chat(w http.ResponseWriter) {
	var calls []doc
	message, reason := doc{"role": "assistant", "content": t.text}, "stop"
	if t.tools {
		for i, in := range inputs {
			calls = append(calls, doc{"index": i, "id": fresh("call_"), "type": "function", "function": doc{"name": "find", "arguments": in}})
		}
		message, reason = doc{"role": "assistant", "content": nil, "tool_calls": calls}, "tool_calls"
	}
	head := doc{"id": fresh("chatcmpl-"), "object": "chat.completion", "created": 1790000000, "model": "gpt-4o"}
	if !t.stream {
		head["choices"] = []doc{{"index": 0, "message": message, "finish_reason": reason}}
		head["usage"] = doc{"prompt_tokens": 20, "completion_tokens": 9, "total_tokens": 29}
		writeJSON(w, head)
		return
	}
	s := newSSE(w)
	chunk := func(delta doc, reason any) {
		head["object"], head["choices"] = "chat.completion.chunk", []doc{{"index": 0, "delta": delta, "finish_reason": reason}}
		s.send("", head)
	}
	chunk(doc{"role": "assistant"}, nil)
	for _, c := range calls {
		chunk(doc{"tool_calls": []doc{c}}, nil)
	}
	for _, piece := range halves(t.text) {
		if !t.tools {
			chunk(doc{"content": piece}, nil)
		}
	}
	chunk(doc{}, reason)
	fmt.Fprint(w, "data: [DONE]\n\n")
}

func (t turn) ollama(w http.ResponseWriter) {
	piece := func(s string, done bool) doc {
		return doc{"model": "llama3.2", "created_at": "2026-01-02T03:04:05Z", "message": doc{"role": "assistant", "content": s}, "done": done}
	}
	if !t.stream {
		writeJSON(w, piece(t.text, true))
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	e := json.NewEncoder(w)
	for _, s := range halves(t.text) {
		e.Encode(piece(s, false))
	}
	e.Encode(piece("", true))
}

func (t turn) responses(w http.ResponseWriter) {
	var items []doc
	if t.tools {
		for _, in := range inputs {
			items = append(items, doc{"type": "function_call", "id": fresh("fc_"), "call_id": fresh("call_"), "name": "find", "arguments": in, "status": "completed"})
		}
	} else {
		items = append(items, doc{"type": "message", "id": fresh("msg_"), "role": "assistant", "status": "completed",
			"content": []doc{{"type": "output_text", "text": t.text, "annotations": []doc{}}}})
	}
	whole := doc{"id": fresh("resp_"), "object": "response", "created_at": 1790000000, "model": "gpt-5", "status": "completed", "output": items,
		"usage": doc{"input_tokens": 20, "output_tokens": 9, "total_tokens": 29}}
	if !t.stream {
		writeJSON(w, whole)
		return
	}
	s := newSSE(w)
	s.send("response.created", doc{"type": "response.created", "sequence_number": 0, "response": doc{"id": whole["id"], "object": "response", "status": "in_progress", "model": "gpt-5", "output": []doc{}}})
	number := 1
	step := func(event string, d doc) {
		d["type"], d["sequence_number"] = event, number
		number++
		s.send(event, d)
	}
	for i, item := range items {
		step("response.output_item.added", doc{"output_index": i, "item": item})
		if !t.tools {
			for _, piece := range halves(t.text) {
				step("response.output_text.delta", doc{"output_index": i, "content_index": 0, "item_id": item["id"], "delta": piece})
			}
		}
		step("response.output_item.done", doc{"output_index": i, "item": item})
	}
	step("response.completed", doc{"response": whole})
}

func (t turn) gemini(w http.ResponseWriter) {
	answer := func(parts []doc, reason string) doc {
		c := doc{"index": 0, "content": doc{"role": "model", "parts": parts}}
		if reason != "" {
			c["finishReason"] = reason
		}
		return doc{"candidates": []doc{c}, "modelVersion": "gemini-2.5-flash", "responseId": fresh(""),
			"usageMetadata": doc{"promptTokenCount": 20, "candidatesTokenCount": 9, "totalTokenCount": 29}}
	}
	var pieces [][]doc
	if t.tools {
		for _, in := range inputs {
			pieces = append(pieces, []doc{{"functionCall": doc{"id": fresh("fn"), "name": "find", "args": json.RawMessage(in)}}})
		}
	} else {
		for _, piece := range halves(t.text) {
			pieces = append(pieces, []doc{{"text": piece}})
		}
	}
	if !t.stream {
		writeJSON(w, answer(append(pieces[0], pieces[1]...), "STOP"))
		return
	}
	s := newSSE(w)
	s.send("", answer(pieces[0], ""))
	s.send("", answer(pieces[1], "STOP"))
}

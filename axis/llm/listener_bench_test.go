package llm

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/cputime"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// longTalk returns the bodies of a conversation of n turns: its requests, each with the whole history, and an answer.
func longTalk(n, size int) (requests [][]byte, answer []byte) {
	text := strings.Repeat("x", size)
	system := strings.Repeat("Be brief.\\n", 2000)
	tools := strings.TrimSuffix(strings.Repeat(`{"name":"read","description":"`+strings.Repeat("y", 500)+`","input_schema":{"type":"object"}},`, 40), ",")
	var list bytes.Buffer
	list.WriteString(`{"role":"user","content":"do it"}`)
	for i := range n {
		if i > 0 {
			fmt.Fprintf(&list, `,{"role":"assistant","content":[{"type":"text","text":"I \"look\"."},{"type":"tool_use","id":"t%d","name":"read","input":{"path":"a"}}]}`, i)
			fmt.Fprintf(&list, `,{"role":"user","content":[{"type":"tool_result","tool_use_id":"t%d","content":"%s\n%d"}]}`, i, text, i)
		}
		requests = append(requests, fmt.Appendf(nil, `{"model":"m","max_tokens":100,"system":"%s","messages":[%s],"tools":[%s]}`, system, list.Bytes(), tools))
	}
	var events []string
	for range 200 {
		events = append(events, `data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a few words "}}`)
	}
	answer = []byte(`data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}` + "\n\n" + strings.Join(events, "\n\n") +
		"\n\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n")
	return requests, answer
}

// BenchmarkListener reads a conversation of 300 turns of 4 KiB: MB/s are those of its bodies. hash is SHA-256 over the same bytes.
func BenchmarkListener(b *testing.B) {
	requests, answer := longTalk(300, 4<<10)
	size := int64(len(requests) * len(answer))
	for _, r := range requests {
		size += int64(len(r))
	}
	call := saidCall("anthropic", "messages")
	b.Run("said", func(b *testing.B) {
		b.SetBytes(size)
		for b.Loop() {
			var l Listener
			for _, r := range requests {
				if _, err := l.Read(call, r, answer); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	b.Run("hash", func(b *testing.B) {
		b.SetBytes(size)
		for b.Loop() {
			for _, r := range requests {
				sha256.Sum256(r)
				sha256.Sum256(answer)
			}
		}
	})
}

// TestSaidIsLinear reads what costs the square of its length where something looks through all that came before.
func TestSaidIsLinear(t *testing.T) {
	hostile := func(n int) (took time.Duration) {
		var deltas, history strings.Builder
		for i := range n {
			fmt.Fprintf(&deltas, "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":%d,\"function\":{\"name\":\"a\",\"arguments\":\"{}\"}}]}}]}\n\n", n-i)
			fmt.Fprintf(&history, `,{"role":"tool","content":"%d"}`, i)
		}
		var calls strings.Builder
		for range n {
			calls.WriteString(`,{"function":{"name":"b","arguments":"{}"}}`)
		}
		request := `{"messages":[{"role":"user","content":"a"},{"role":"assistant","tool_calls":[` + calls.String()[1:] + `]}` + history.String() + `]}`
		best := time.Hour
		for range 3 {
			began := cputime.Spent()
			s, err := new(Listener).Read(&tape.LLMCall{Provider: "openai", Endpoint: "chat.completions"}, []byte(request), []byte(deltas.String()))
			if err != nil || len(s.Answer.Message.ToolCalls) != n || s.New[n].Results[0].CallID == "" {
				t.Fatalf("%v, %+v", err, s)
			}
			best = min(best, cputime.Spent()-began)
		}
		return best
	}
	small, large := hostile(2000), hostile(32000)
	if large > 64*small { // 16 times as much, and 256 times as long were it square
		t.Errorf("%v for 2,000 calls, %v for 32,000", small, large)
	}
}

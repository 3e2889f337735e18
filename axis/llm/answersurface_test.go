package llm

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tapedeck-dev/tapedeck/scrub/masks"
)

// Answers of two live runs compare by what the model said, and which call an id belongs to still counts.
func TestAnswerSurface(t *testing.T) {
	c := NewClassifier(masks.New(nil))
	tests := []struct {
		name, a, b string
		same       bool
	}{
		{
			"ids and times", `{"id":"msg_01","created":1700000000,"content":[{"type":"tool_use","id":"toolu_a","input":{"id":"7"}}]}`,
			`{"id":"msg_02","created":1800000000,"content":[{"type":"tool_use","id":"toolu_b","input":{"id":"7"}}]}`, true,
		},
		{"what the model passes to a tool", `{"input":{"id":"7"}}`, `{"input":{"id":"8"}}`, false},
		{"which of two ids", `{"a":{"id":"x"},"b":{"id":"x"}}`, `{"a":{"id":"x"},"b":{"id":"y"}}`, false},
		{"another text", `{"id":"x","text":"tea"}`, `{"id":"x","text":"milk"}`, false},
		{
			"events", "data: {\"id\":\"chatcmpl-1\",\"choices\":[{\"delta\":{\"tool_calls\":[{\"id\":\"call_1\"}]}}]}\n\ndata: [DONE]\n\n",
			"data: {\"id\":\"chatcmpl-9\",\"choices\":[{\"delta\":{\"tool_calls\":[{\"id\":\"call_7\"}]}}]}\r\n\r\ndata: [DONE]\r\n\r\n", true,
		},
		{
			"a ping", "event: a\ndata: {\"t\":1}\n\nevent: ping\ndata: {\"type\": \"ping\"}\n\nevent: b\ndata: {\"t\":2}\n\n",
			": hello\n\nevent: a\ndata: {\"t\":1}\n\nevent: b\ndata: {\"t\":2}\n\n", true,
		},
		{"events that say something else", "data: {\"id\":\"1\",\"t\":\"a\"}\n\n", "data: {\"id\":\"1\",\"t\":\"b\"}\n\n", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := cmp.Diff(string(c.AnswerSurface([]byte(tt.a))), string(c.AnswerSurface([]byte(tt.b))))
			if (d == "") != tt.same {
				t.Errorf("want the same: %v\n%s", tt.same, d)
			}
		})
	}
	if got := c.AnswerSurface([]byte("\x00\xff")); got != nil {
		t.Errorf("bytes that are no text have the surface %q", got)
	}
}

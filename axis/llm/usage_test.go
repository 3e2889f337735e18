package llm_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/llm"
)

func TestUsage(t *testing.T) {
	for _, tc := range []struct {
		name     string
		provider llm.Provider
		answer   string
		want     string
	}{
		{"anthropic whole", llm.Anthropic{},
			`{"id":"msg_1","type":"message","content":[],"usage":{"input_tokens":10,"output_tokens":3}}`,
			`{"input_tokens":10,"output_tokens":3}`},
		{"anthropic stream", llm.Anthropic{}, "event: message_start\r\n" +
			`data: {"type":"message_start","message":{"id":"m","usage":{"input_tokens":10,"output_tokens":1,"service_tier":"standard"}}}` + "\r\n\r\n" +
			"event: ping\ndata: {\"type\":\"ping\"}\n\n" +
			"event: message_delta\n" + `data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":null,"output_tokens":42}}` + "\n\n" +
			"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
			`{"input_tokens":10,"output_tokens":42,"service_tier":"standard"}`},
		{"anthropic cut", llm.Anthropic{},
			`data: {"type":"message_start","message":{"usage":{"input_tokens":10}}}` + "\n\ndata: {\"type\":\"mess",
			`{"input_tokens":10}`},
		{"anthropic error", llm.Anthropic{}, `{"type":"error","error":{"type":"overloaded_error"}}`, ""},
		{"chat whole", llm.OpenAIChat{}, `{"choices":[],"usage":{"total_tokens":7}}`, `{"total_tokens":7}`},
		{"chat stream", llm.OpenAIChat{},
			`data: {"choices":[{"delta":{"content":"\"usage\""}}],"usage":null}` + "\n\n" +
				`data: {"choices":[],"usage":{"total_tokens":9}}` + "\n\ndata: [DONE]\n\n", `{"total_tokens":9}`},
		{"chat without", llm.OpenAIChat{}, "data: {\"choices\":[]}\n\ndata: [DONE]\n\n", ""},
		{"responses whole", llm.OpenAIResponses{}, ` {"object":"response","usage":{"total_tokens":5}}`, `{"total_tokens":5}`},
		{"responses stream", llm.OpenAIResponses{},
			"event: response.created\n" + `data: {"type":"response.created","response":{"usage":null}}` + "\n\n" +
				"event: response.completed\n" + `data: {"type":"response.completed","response":{"usage":{"total_tokens":8}}}` + "\n\n",
			`{"total_tokens":8}`},
		{"gemini whole", llm.Gemini{}, `{"candidates":[],"usageMetadata":{"totalTokenCount":4}}`, `{"totalTokenCount":4}`},
		{"gemini stream", llm.Gemini{},
			`data: {"usageMetadata":{"totalTokenCount":1}}` + "\r\n\r\n" + `data: {"usageMetadata":{"totalTokenCount":6}}` + "\r\n\r\n",
			`{"totalTokenCount":6}`},
		{"gemini array", llm.Gemini{},
			"[{\"usageMetadata\":{\"totalTokenCount\":1}}\n,\r\n{\"usageMetadata\":{\"totalTokenCount\":3}}\n]", `{"totalTokenCount":3}`},
		{"gemini array cut", llm.Gemini{}, `[{"usageMetadata":{"totalTokenCount":1}},{"usageM`, `{"totalTokenCount":1}`},
		{"data on two lines", llm.OpenAIChat{}, "data: {\"usage\":\ndata: {\"n\":1}}\n\n", "{\"n\":1}"},
		{"empty", llm.Gemini{}, "", ""},
		{"usage is no object", llm.OpenAIChat{}, `{"usage":3}`, ""},
		{"html", llm.OpenAIChat{}, `<html>usage</html>`, ""},
	} {
		if got := tc.provider.Usage([]byte(tc.answer)); string(got) != tc.want {
			t.Errorf("%s: %s", tc.name, got)
		}
	}
}

// FuzzUsage holds every provider to giving a JSON object or nothing, whatever an upstream answered.
func FuzzUsage(f *testing.F) {
	f.Add([]byte(`{"usage":{"a":1}}`))
	f.Add([]byte("data: {\"message\":{\"usage\":{}}}\n\ndata: {\"usage\":{\"a\":2}}\n\n"))
	f.Add([]byte(`[{"usageMetadata":{"a":1}},{"usageMetadata":{}}]`))
	f.Add([]byte("\xef\xbb\xbfdata: \r\rdata:{\r"))
	f.Fuzz(func(t *testing.T, answer []byte) {
		before := string(answer)
		for _, p := range llm.Providers() {
			usage := p.Usage(answer)
			if usage != nil && (!json.Valid(usage) || !strings.HasPrefix(string(usage), "{")) {
				t.Errorf("%s: %q", p.Name(), usage)
			}
		}
		if string(answer) != before {
			t.Error("the answer was written to")
		}
	})
}

package llm

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestExtract(t *testing.T) {
	for _, tc := range []struct {
		name   string
		answer string
		want   string
	}{
		{"anthropic whole",
			`{"id":"msg_1","type":"message","content":[],"usage":{"input_tokens":10,"output_tokens":3}}`,
			`{"input_tokens":10,"output_tokens":3}`},
		{"anthropic stream", "event: message_start\r\n" +
			`data: {"type":"message_start","message":{"id":"m","usage":{"input_tokens":10,"output_tokens":1,"service_tier":"standard"}}}` + "\r\n\r\n" +
			"event: ping\ndata: {\"type\":\"ping\"}\n\n" +
			"event: message_delta\n" + `data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":null,"output_tokens":42}}` + "\n\n" +
			"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
			`{"input_tokens":10,"output_tokens":42,"service_tier":"standard"}`},
		{"anthropic cut",
			`data: {"type":"message_start","message":{"usage":{"input_tokens":10}}}` + "\n\ndata: {\"type\":\"mess",
			`{"input_tokens":10}`},
		{"anthropic error", `{"type":"error","error":{"type":"overloaded_error"}}`, ""},
		{"chat whole", `{"choices":[],"usage":{"total_tokens":7}}`, `{"total_tokens":7}`},
		{"chat stream",
			`data: {"choices":[{"delta":{"content":"\"usage\""}}],"usage":null}` + "\n\n" +
				`data: {"choices":[],"usage":{"total_tokens":9}}` + "\n\ndata: [DONE]\n\n", `{"total_tokens":9}`},
		{"chat without", "data: {\"choices\":[]}\n\ndata: [DONE]\n\n", ""},
		{"responses whole", ` {"object":"response","usage":{"total_tokens":5}}`, `{"total_tokens":5}`},
		{"responses stream",
			"event: response.created\n" + `data: {"type":"response.created","response":{"usage":null}}` + "\n\n" +
				"event: response.completed\n" + `data: {"type":"response.completed","response":{"usage":{"total_tokens":8}}}` + "\n\n",
			`{"total_tokens":8}`},
		{"gemini whole", `{"candidates":[],"usageMetadata":{"totalTokenCount":4}}`, `{"totalTokenCount":4}`},
		{"gemini stream",
			`data: {"usageMetadata":{"totalTokenCount":1}}` + "\r\n\r\n" + `data: {"usageMetadata":{"totalTokenCount":6}}` + "\r\n\r\n",
			`{"totalTokenCount":6}`},
		{"gemini array",
			"[{\"usageMetadata\":{\"totalTokenCount\":1}}\n,\r\n{\"usageMetadata\":{\"totalTokenCount\":3}}\n]", `{"totalTokenCount":3}`},
		{"gemini array cut", `[{"usageMetadata":{"totalTokenCount":1}},{"usageM`, `{"totalTokenCount":1}`},
		{"data on two lines", "data: {\"usage\":\ndata: {\"n\":1}}\n\n", "{\"n\":1}"},
		{"empty", "", ""},
		{"usage is no object", `{"usage":3}`, ""},
		{"counts beside the answer", `{"response":"hi","eval_count":12.0,"prompt_eval_count":"x"}`, `{"eval_count":12.0}`},
		{"a count that is none beside a usage", `{"eval_count":1.5,"usage":{"input_tokens":1}}`, `{"input_tokens":1}`},
		{"html", `<html>usage</html>`, ""},
	} {
		if got := FindUsage([]byte(tc.answer)); string(got) != tc.want {
			t.Errorf("%s: %s", tc.name, got)
		}
	}
}

// FuzzExtract holds FindUsage to giving a JSON object or nothing, whatever an upstream answered.
func FuzzExtract(f *testing.F) {
	f.Add([]byte(`{"usage":{"a":1}}`))
	f.Add([]byte("data: {\"message\":{\"usage\":{}}}\n\ndata: {\"usage\":{\"a\":2}}\n\n"))
	f.Add([]byte(`[{"usageMetadata":{"a":1}},{"usageMetadata":{}}]`))
	f.Add([]byte("\xef\xbb\xbfdata: \r\rdata:{\r"))
	f.Fuzz(func(t *testing.T, answer []byte) {
		before := string(answer)
		if usage := FindUsage(answer); usage != nil && (!json.Valid(usage) || !strings.HasPrefix(string(usage), "{")) {
			t.Errorf("%q", usage)
		}
		if string(answer) != before {
			t.Error("the answer was written to")
		}
	})
}

package llm_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/axis/llm"
)

// TestChange puts a model, a system text and what a tool gave into requests of each protocol: where it stands there, and nowhere else. The
// order of keys stays.
func TestChange(t *testing.T) {
	system := "new"
	change := llm.Change{Model: "M", System: &system, Results: map[string]string{"c1": "gave"}}
	for _, c := range []struct{ url, body, wantURL, want string }{
		{
			"https://api.anthropic.com/v1/messages",
			`{"model":"m","system":[{"type":"text","text":"old"}],"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"was"},{"type":"tool_result","tool_use_id":"c2","content":"was"}]}],"max_tokens":1}`,
			"",
			`{"model":"M","system":"new","messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"gave"},{"type":"tool_result","tool_use_id":"c2","content":"was"}]}],"max_tokens":1}`,
		}, {
			"https://api.openai.com/v1/chat/completions",
			`{"messages":[{"role":"developer","content":"old"},{"role":"tool","tool_call_id":"c1","content":"was"}],"model":"m","tools":[{"z":1,"a":12345678901234567890}]}`,
			"",
			`{"messages":[{"role":"developer","content":"new"},{"role":"tool","tool_call_id":"c1","content":"gave"}],"model":"M","tools":[{"z":1,"a":12345678901234567890}]}`,
		}, {
			"https://x.openai.azure.com/openai/deployments/m/chat/completions?api-version=1",
			`{"messages":[{"role":"user","content":"hi"}]}`,
			"https://x.openai.azure.com/openai/deployments/M/chat/completions?api-version=1",
			`{"messages":[{"role":"system","content":"new"},{"role":"user","content":"hi"}]}`,
		}, {
			"https://api.openai.com/v1/responses",
			`{"model":"m","instructions":"old","input":[{"type":"function_call_output","call_id":"c1","output":"was"}]}`,
			"",
			`{"model":"M","instructions":"new","input":[{"type":"function_call_output","call_id":"c1","output":"gave"}]}`,
		}, {
			"https://generativelanguage.googleapis.com/v1beta/models/m:streamGenerateContent?alt=sse",
			`{"contents":[{"role":"user","parts":[{"functionResponse":{"id":"c1","name":"t","response":{"output":"was"}}}]}],"system_instruction":{"parts":[{"text":"old"}]}}`,
			"https://generativelanguage.googleapis.com/v1beta/models/M:streamGenerateContent?alt=sse",
			`{"contents":[{"role":"user","parts":[{"functionResponse":{"id":"c1","name":"t","response":{"output":"gave"}}}]}],"system_instruction":{"parts":[{"text":"new"}]}}`,
		}, {
			"https://cloudcode-pa.googleapis.com/v1internal:generateContent",
			`{"model":"m","request":{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}}`,
			"",
			`{"model":"M","request":{"contents":[{"role":"user","parts":[{"text":"hi"}]}],"systemInstruction":{"parts":[{"text":"new"}]}}}`,
		}, {
			"https://bedrock-runtime.us-east-1.amazonaws.com/model/m/converse",
			`{"system":[{"text":"old"}],"messages":[{"role":"user","content":[{"toolResult":{"toolUseId":"c1","content":[{"text":"was"}]}}]}]}`,
			"https://bedrock-runtime.us-east-1.amazonaws.com/model/M/converse",
			`{"system":[{"text":"new"}],"messages":[{"role":"user","content":[{"toolResult":{"toolUseId":"c1","content":[{"text":"gave"}]}}]}]}`,
		}, {
			"http://localhost:11434/api/chat",
			`{"model":"m","messages":[{"role":"system","content":"old"},{"role":"tool","tool_call_id":"c1","content":"was"}]}`,
			"",
			`{"model":"M","messages":[{"role":"system","content":"new"},{"role":"tool","tool_call_id":"c1","content":"gave"}]}`,
		}, {
			"https://api.cohere.com/v2/chat",
			`{"model":"m","messages":[{"role":"system","content":"old"},{"role":"tool","tool_call_id":"c1","content":"was"}]}`,
			"",
			`{"model":"M","messages":[{"role":"system","content":"new"},{"role":"tool","tool_call_id":"c1","content":"gave"}]}`,
		},
	} {
		out, changed, err := apply(t, &change, c.url, c.body, nil)
		if err != nil || len(changed) < 2 {
			t.Errorf("%s: changed %q, %v", c.url, changed, err)
			continue
		}
		if c.wantURL == "" {
			c.wantURL = c.url
		}
		if out.URL != c.wantURL || string(out.Body) != c.want {
			t.Errorf("%s:\n got %s %s\nwant %s %s", c.url, out.URL, out.Body, c.wantURL, c.want)
		}
		if now := classify(t, out.URL, string(out.Body)); now.Key.Model != "M" {
			t.Errorf("%s: now it asks for %q", c.url, now.Key.Model)
		}
	}
}

// TestChangeOfDocument: what is changed is what a Listener shows: results without ids by their tools' names, all messages that begin with the
// system's.
func TestChangeOfDocument(t *testing.T) {
	system := "new"
	for _, c := range []struct{ url, body, id, want string }{
		{
			"https://generativelanguage.googleapis.com/v1beta/models/m:generateContent",
			`{"contents":[{"role":"model","parts":[{"functionCall":{"name":"a","args":{}}},{"functionCall":{"name":"b","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"name":"b","response":{"output":"B"}}},{"functionResponse":{"name":"a","response":{"output":"A"}}}]}]}`,
			"call_1",
			`{"functionResponse":{"name":"b","response":{"output":"B"}}},{"functionResponse":{"name":"a","response":{"output":"gave"}}}`,
		}, {
			"http://localhost:11434/api/chat",
			`{"model":"m","messages":[{"role":"user","content":"x"},{"role":"assistant","content":"","tool_calls":[{"function":{"name":"a","arguments":{}}},{"function":{"name":"b","arguments":{}}}]},{"role":"tool","tool_name":"b","content":"B"},{"role":"tool","tool_name":"a","content":"A"}]}`,
			"call_2",
			`{"role":"tool","tool_name":"b","content":"gave"},{"role":"tool","tool_name":"a","content":"A"}`,
		}, {
			"https://api.openai.com/v1/chat/completions",
			`{"model":"m","messages":[{"role":"system","content":"one"},{"role":"developer","content":"two"},{"role":"user","content":"x"},{"role":"system","content":"late"}]}`,
			"",
			`"messages":[{"role":"system","content":"new"},{"role":"user","content":"x"},{"role":"system","content":"late"}]`,
		}, {
			"https://api.openai.com/v1/responses",
			`{"model":"m","input":[{"role":"system","content":"one"},{"role":"developer","content":"two"},{"role":"user","content":"x"}]}`,
			"",
			`"input":[{"role":"system","content":"new"},{"role":"user","content":"x"}]`,
		},
	} {
		change := llm.Change{System: &system}
		if c.id != "" {
			change = llm.Change{Results: map[string]string{c.id: "gave"}}
		}
		out, _, err := apply(t, &change, c.url, c.body, nil)
		if err != nil || !strings.Contains(string(out.Body), c.want) {
			t.Errorf("%s: %v\n got %s\nwant %s", c.url, err, out.Body, c.want)
		}
	}
}

func apply(t *testing.T, c *llm.Change, url, body string, h http.Header) (*exchange.Request, []string, error) {
	t.Helper()
	r := &exchange.Request{Method: http.MethodPost, URL: url, Header: h, Body: []byte(body)}
	return c.Apply(r, classify(t, url, body))
}

// TestChangeRefused: a request that is signed is not changed, an embedding has nothing to change, and what changes nothing leaves the bytes.
func TestChangeRefused(t *testing.T) {
	signed := http.Header{"Authorization": {"AWS4-HMAC-SHA256 Credential=x"}}
	_, _, err := apply(t, &llm.Change{Model: "M"}, "https://bedrock-runtime.us-east-1.amazonaws.com/model/m/converse", `{"messages":[]}`, signed)
	if !errors.Is(err, llm.ErrSigned) {
		t.Errorf("signed: %v", err)
	}
	_, _, err = apply(t, &llm.Change{Model: "M"}, "https://api.openai.com/v1/embeddings", `{"model":"m","input":"x"}`, nil)
	if !errors.Is(err, llm.ErrNoCall) {
		t.Errorf("an embedding: %v", err)
	}
	const spaced = `{ "model": "m", "messages": [ ], "max_tokens": 1 }`
	out, changed, err := apply(t, &llm.Change{Results: map[string]string{"c": "x"}}, "https://api.anthropic.com/v1/messages", spaced, signed)
	if err != nil || changed != nil || string(out.Body) != spaced {
		t.Errorf("nothing to change: %s, %q, %v", out.Body, changed, err)
	}
}

// FuzzChange: whatever the body is, it is refused, or is JSON that asks for the model.
func FuzzChange(f *testing.F) {
	const url = "https://api.anthropic.com/v1/messages"
	f.Add(`{"model":"m","messages":[{"role":"user","content":"x"}]}`)
	f.Add(`{"model":"m","messages":[{"content":[{"type":"tool_result","tool_use_id":"c1","content":[1]}]}],"model":"n"}`)
	f.Fuzz(func(t *testing.T, body string) {
		r := &exchange.Request{Method: http.MethodPost, URL: url, Body: []byte(body)}
		id, err := llm.NewClassifier(nil).Classify(r)
		if err != nil || id.Key.Kind != exchange.LLM {
			return
		}
		system := "s"
		out, _, err := (&llm.Change{Model: "M", System: &system, Results: map[string]string{"c1": "x"}}).Apply(r, id)
		if err == nil && !strings.Contains(string(out.Body), `"model":"M"`) {
			t.Errorf("%s became %s", body, out.Body)
		}
	})
}

package llm_test

import (
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/llm"
)

// TestInCallOrder: results of one turn stand in the order of their calls, in each provider's form; whose result is whose counts.
func TestInCallOrder(t *testing.T) {
	const (
		claude = `{"model":"m","messages":[{"role":"user","content":"go"},{"role":"assistant","content":[{"type":"tool_use","id":"toolu_b","name":"x","input":{}},{"type":"tool_use","id":"toolu_a","name":"x","input":{}}]},{"role":"user","content":[RESULTS,{"type":"text","text":"and"}]}]}`
		chat   = `{"model":"m","messages":[{"role":"user","content":"go"},{"role":"assistant","tool_calls":[{"id":"call_b","type":"function","function":{"name":"x"}},{"id":"call_a","type":"function","function":{"name":"x"}}]},RESULTS]}`
		items  = `{"model":"m","input":[{"role":"user","content":"go"},{"type":"function_call","call_id":"call_b","name":"x","arguments":"{}"},{"type":"function_call","call_id":"call_a","name":"x","arguments":"{}"},RESULTS]}`
		parts  = `{"contents":[{"role":"user","parts":[{"text":"go"}]},{"role":"model","parts":[{"functionCall":{"id":"b","name":"x"}},{"functionCall":{"id":"a","name":"x"}}]},{"role":"user","parts":[RESULTS]}]}`
		blocks = `{"modelId":"m","messages":[{"role":"user","content":[{"text":"go"}]},{"role":"assistant","content":[{"toolUse":{"toolUseId":"b","name":"x","input":{}}},{"toolUse":{"toolUseId":"a","name":"x","input":{}}}]},{"role":"user","content":[RESULTS]}]}`
	)
	for name, tt := range map[string]struct{ body, url, one, other string }{
		"anthropic": {claude, anthropicURL, `{"type":"tool_result","tool_use_id":"toolu_b","content":"B"}`, `{"type":"tool_result","tool_use_id":"toolu_a","content":"A"}`},
		"chat":      {chat, chatURL, `{"role":"tool","tool_call_id":"call_b","content":"B"}`, `{"role":"tool","tool_call_id":"call_a","content":"A"}`},
		"responses": {items, responsesURL, `{"type":"function_call_output","call_id":"call_b","output":"B"}`, `{"type":"function_call_output","call_id":"call_a","output":"A"}`},
		"gemini":    {parts, geminiURL, `{"functionResponse":{"id":"b","name":"x","response":{"output":"B"}}}`, `{"functionResponse":{"id":"a","name":"x","response":{"output":"A"}}}`},
		"bedrock":   {blocks, "https://bedrock-runtime.us-east-1.amazonaws.com/model/m/converse", `{"toolResult":{"toolUseId":"b","content":[{"text":"B"}]}}`, `{"toolResult":{"toolUseId":"a","content":[{"text":"A"}]}}`},
	} {
		as := func(results string) string { return strings.Replace(tt.body, "RESULTS", results, 1) }
		called, turned := as(tt.one+","+tt.other), as(tt.other+","+tt.one)
		if classify(t, tt.url, called).Key == classify(t, tt.url, turned).Key {
			t.Errorf("%s: the order counts nowhere", name)
		}
		key := classify(t, tt.url, called).Key
		for _, body := range []string{called, turned} {
			if sorted := llm.InCallOrder([]byte(body)); sorted == nil || classify(t, tt.url, string(sorted)).Key != key {
				t.Errorf("%s: put in order it is %s", name, sorted)
			}
		}
		swapped := strings.NewReplacer(`"A"`, `"B"`, `"B"`, `"A"`).Replace(called)
		if classify(t, tt.url, string(llm.InCallOrder([]byte(swapped)))).Key == key {
			t.Errorf("%s: another call's result is taken for its own", name)
		}
		if sorted := llm.InCallOrder([]byte(as(tt.one))); sorted != nil {
			t.Errorf("%s: one result is put in order: %s", name, sorted)
		}
	}
	for _, body := range []string{`{"messages":[{"role":"tool","tool_call_id":"unknown","content":"output"},{"role":"tool","content":"b"}]}`, `[1`, `{"model":"m"}`} {
		if sorted := llm.InCallOrder([]byte(body)); sorted != nil {
			t.Errorf("%s is put in order: %s", body, sorted)
		}
	}
}

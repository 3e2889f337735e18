package llm_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// sse is a stream of server-sent events.
func sse(events ...string) string {
	var b strings.Builder
	for _, e := range events {
		fmt.Fprintf(&b, "data: %s\n\n", e)
	}
	return b.String()
}

func lines(texts ...string) string { return strings.Join(texts, "\n") + "\n" }

// said is what a test looks at, in one line each: "calls:" and "gave:" of the history, then the answer.
func said(s *llm.Said) []string {
	out := []string{fmt.Sprintf("system %q, tools %v, %d messages", s.System, s.Tools, s.Messages)}
	if s.Follows != "" {
		out = append(out, "follows "+s.Follows)
	}
	for _, m := range s.New {
		for _, text := range m.Texts {
			out = append(out, fmt.Sprintf("%s said %q", m.Role, text))
		}
		for _, a := range m.Attachments {
			out = append(out, fmt.Sprintf("%s attached %s", m.Role, a))
		}
		for _, c := range m.Calls {
			out = append(out, "called "+callText(c))
		}
		for _, r := range m.Results {
			out = append(out, fmt.Sprintf("%s gave %s, failed %v", r.CallID, r.Output, r.IsError))
		}
	}
	a := s.Answer
	if a == nil {
		return append(out, "no answer")
	}
	out = append(out, fmt.Sprintf("answer %s, whole %v", a.Message.Content, a.Whole))
	if a.Reasoning != "" {
		out = append(out, fmt.Sprintf("thought %q", a.Reasoning))
	}
	for _, b := range a.Native {
		out = append(out, "native "+string(b))
	}
	for _, c := range a.Message.ToolCalls {
		out = append(out, "calls "+callText(c))
	}
	return out
}

func callText(c sessionlog.ToolCall) string {
	return fmt.Sprintf("%s %s %s", c.ID, c.Name, c.Arguments)
}

func llmCall(provider, endpoint string) *tape.LLMCall {
	return &tape.LLMCall{Provider: provider, Endpoint: endpoint, Model: "m", Exchange: tape.Exchange{Status: 200, URL: "https://host/v2/x"}}
}

const (
	anthropicAsked = `{"model":"m","system":[{"type":"text","text":"x-anthropic-billing-header: 1"},{"type":"text","text":"Be brief."}],
 "tools":[{"type":"web_search_20250305","name":"web_search"},{"name":"read","input_schema":{}}],
 "messages":[
  {"role":"user","content":[{"type":"image","source":{"type":"base64",
   "data":"aGk="}},{"type":"text","text":"do <it>","cache_control":{"type":"ephemeral"}}]},
  {"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"tool_use","id":"t1","name":"read","input":{"p":1.0}},{"type":"tool_use","id":"t2","name":"read","input":{}}]},
  {"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"one"}]},{"type":"tool_result","tool_use_id":"t2","is_error":true,"content":[{"type":"text","text":"two"},{"type":"image","source":{}}]},{"type":"text","text":"go on"}]}]}`
	chatAsked = `{"model":"m","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":[{"type":"text","text":"do it"},{"type":"image_url","image_url":{"url":"data:"}}]},
  {"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"read","arguments":"{\"p\": 12345678901234567890}"}}]},
  {"role":"tool","tool_call_id":"c1","content":"one"}],"tools":[{"type":"function","function":{"name":"read"}}]}`
	responsesAsked = `{"model":"m","instructions":"Be brief.","tools":[{"type":"custom","name":"apply_patch"}],"input":[
  {"type":"message","role":"developer","content":[{"type":"input_text","text":"rules"}]},{"role":"user","content":"do it"},
  {"type":"reasoning","id":"rs","summary":[],"encrypted_content":"x"},
  {"type":"function_call","id":"fc_1","call_id":"c1","name":"shell","arguments":"{\"cmd\":[\"ls\"]}"},
  {"type":"custom_tool_call","id":"ct_1","call_id":"c2","name":"apply_patch","input":"*** Begin"},
  {"type":"local_shell_call","id":"ls_1","call_id":"c3","status":"completed","action":{"type":"exec","command":["ls"]}},
  {"type":"web_search_call","id":"ws_1","status":"completed"},
  {"type":"function_call_output","call_id":"c1","output":"one"},
  {"type":"custom_tool_call_output","call_id":"c2","output":"two"},
  {"type":"local_shell_call_output","call_id":"c3","output":[{"type":"input_text","text":"three"}]}]}`
	geminiAsked = `{"systemInstruction":{"parts":[{"text":"Be brief."}]},"tools":[{"functionDeclarations":[{"name":"read"}]}],"contents":[
  {"role":"user","parts":[{"text":"do it"},{"inlineData":{"mimeType":"image/png","data":"aGk="}}]},
  {"role":"model","parts":[{"text":"hm","thought":true},{"functionCall":{"name":"read","args":{"p":1}}},{"functionCall":{"name":"write","args":{}}}]},
  {"role":"function","parts":[{"functionResponse":{"name":"write","response":{"error":"no"}}},{"functionResponse":{"name":"read","response":{"output":"one"}}}]}]}`
	ollamaAsked = `{"model":"m","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"do it","images":["aGk="]},
  {"role":"assistant","content":"","tool_calls":[{"function":{"name":"read","arguments":{"p":1}}},{"function":{"name":"read","arguments":{"p":2}}}]},
  {"role":"tool","tool_name":"read","content":"one"},{"role":"tool","content":"two"}],"tools":[{"type":"function"}]}`
	converseAsked = `{"system":[{"text":"Be brief."}],"toolConfig":{"tools":[{"toolSpec":{"name":"read"}}]},"messages":[
  {"role":"user","content":[{"text":"do it"},{"cachePoint":{}},{"image":{"format":"png"}}]},
  {"role":"assistant","content":[{"toolUse":{"toolUseId":"u1","name":"read","input":{}}},{"toolUse":{"toolUseId":"u2","name":"read","input":{}}}]},
  {"role":"user","content":[{"toolResult":{"toolUseId":"u1","content":[{"text":"one"}],"status":"error"}},{"toolResult":{"toolUseId":"u2","content":[{"json":{"a":1}}]}}]}]}`
)

var (
	anthropicHeard = []string{
		`system "Be brief.", tools true, 3 messages`, `user said "do <it>"`,
		`user attached {"type":"image","source":{"type":"base64",   "data":"aGk="}}`, `called t1 read {"p":1.0}`, `called t2 read {}`,
		`user said "go on"`, `t1 gave "one", failed false`,
		`t2 gave [{"type":"text","text":"two"},{"type":"image","source":{}}], failed true`,
	}
	chatHeard = []string{
		`system "Be brief.", tools true, 4 messages`, `system said "Be brief."`, `user said "do it"`,
		`user attached {"type":"image_url","image_url":{"url":"data:"}}`, `called c1 read {"p": 12345678901234567890}`,
		`c1 gave "one", failed false`,
	}
	responsesHeard = []string{
		`system "Be brief.", tools true, 10 messages`, `system said "rules"`, `user said "do it"`, `called c1 shell {"cmd":["ls"]}`,
		`called c2 apply_patch "*** Begin"`, `called c3 local_shell {"type":"exec","command":["ls"]}`,
		`c1 gave "one", failed false`, `c2 gave "two", failed false`, `c3 gave "three", failed false`,
	}
	geminiHeard = []string{
		`system "Be brief.", tools true, 3 messages`, `user said "do it"`,
		`user attached {"inlineData":{"mimeType":"image/png","data":"aGk="}}`, `called call_1 read {"p":1}`, `called call_2 write {}`,
		`call_2 gave "no", failed true`, `call_1 gave "one", failed false`,
	}
	ollamaHeard = []string{
		`system "Be brief.", tools true, 5 messages`, `system said "Be brief."`, `user said "do it"`, `user attached "aGk="`,
		`called call_1 read {"p":1}`, `called call_2 read {"p":2}`, `call_1 gave "one", failed false`, `call_2 gave "two", failed false`,
	}
	converseHeard = []string{
		`system "Be brief.", tools true, 3 messages`, `user said "do it"`, `user attached {"image":{"format":"png"}}`,
		`called u1 read {}`, `called u2 read {}`, `u1 gave "one", failed true`, `u2 gave {"a":1}, failed false`,
	}
)

// TestSaid reads calls of every provider, their answers whole and streamed.
func TestSaid(t *testing.T) {
	for _, c := range []struct {
		name, provider, endpoint, request, response string
		heard, want                                 []string
	}{
		{"anthropic", "anthropic", "messages", anthropicAsked, `{"id":"msg","type":"message","role":"assistant","model":"m","content":[
   {"type":"thinking","thinking":"Let me.","signature":"sig"},{"type":"text","text":"I look & see."},
   {"type":"tool_use","id":"t3","name":"read","input":{"p":"é","n":9007199254740993}},{"type":"tool_use","id":"t4","name":"write","input":{}}],
   "stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":2}}`, anthropicHeard, []string{
			`answer "I look & see.", whole true`, `thought "Let me."`, `native {"type":"thinking","thinking":"Let me.","signature":"sig"}`,
			`calls t3 read {"p":"é","n":9007199254740993}`, `calls t4 write {}`,
		}},
		{"anthropic streamed", "anthropic", "messages", anthropicAsked, sse(
			`{"type":"message_start","message":{"id":"msg","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"usage":{}}}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`, `{"type":"ping"}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Let "}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"me."}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"sig"}}`,
			`{"type":"content_block_stop","index":0}`,
			`{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}`,
			`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"I look"}}`,
			`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":" & see."}}`,
			`{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"t3","name":"read","input":{}}}`,
			`{"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"t4","name":"write","input":{}}}`,
			`{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":""}}`,
			`{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"p\":\"é\",\"n\":90071"}}`,
			`{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"99254740993}"}}`,
			`{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":2}}`, `{"type":"message_stop"}`), anthropicHeard, []string{
			`answer "I look & see.", whole true`, `thought "Let me."`, `native {"type":"thinking","thinking":"Let me.","signature":"sig"}`,
			`calls t3 read {"p":"é","n":9007199254740993}`, `calls t4 write {}`,
		}},
		{"anthropic, what it ran itself", "anthropic", "messages", `{"model":"m","messages":[{"role":"user","content":"hi"}],"tools":[{"type":"web_search_20250305","name":"web_search"}]}`, sse(
			`{"type":"message_start","message":{"content":[]}}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":"srv","name":"web_search","input":{}}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"query\":\"q\"}"}}`,
			`{"type":"content_block_start","index":1,"content_block":{"type":"web_search_tool_result","tool_use_id":"srv","content":[]}}`,
			`{"type":"content_block_start","index":2,"content_block":{"type":"text","text":"","citations":[]}}`,
			`{"type":"content_block_delta","index":2,"delta":{"type":"citations_delta","citation":{"url":"u"}}}`,
			`{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"So."}}`,
			`{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`),
			[]string{`system "", tools false, 1 messages`, `user said "hi"`}, []string{
				`answer [{"type":"server_tool_use","id":"srv","name":"web_search","input":{"query":"q"}},` +
					`{"type":"web_search_tool_result","tool_use_id":"srv","content":[]},{"type":"text","text":"So.","citations":[{"url":"u"}]}], whole true`,
			}},
		{"anthropic, cut in a call", "anthropic", "messages", anthropicAsked, sse(
			`{"type":"message_start","message":{"content":[]}}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t3","name":"read","input":{}}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"p\":"}}`) + `data: {"type":"content_blo`, anthropicHeard,
			[]string{`answer "", whole false`, `calls t3 read "{\"p\":"`}},
		{"anthropic, cut before anything", "anthropic", "messages", anthropicAsked, sse(
			`{"type":"message_start","message":{"content":[]}}`, `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`),
			anthropicHeard, []string{"no answer"}},
		{"anthropic, overloaded", "anthropic", "messages", anthropicAsked, sse(
			`{"type":"message_start","message":{"content":[]}}`, `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"I"}}`, `{"type":"error","error":{"type":"overloaded_error"}}`),
			anthropicHeard, []string{`answer "I", whole false`}},

		{"chat", "openai", "chat.completions", chatAsked, `{"id":"x","model":"m","choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant","content":"I look.","reasoning_content":"Let me.",
   "tool_calls":[{"id":"c2","type":"function","function":{"name":"read","arguments":"{\"p\":1}"}},{"id":"c3","type":"function","function":{"name":"write","arguments":""}},{"id":"c4","type":"custom","custom":{"name":"patch","input":"{\"a\":1}"}}]}}]}`, chatHeard, []string{
			`answer "I look.", whole true`, `thought "Let me."`, `calls c2 read {"p":1}`, `calls c3 write {}`, `calls c4 patch "{\"a\":1}"`,
		}},
		{"chat streamed", "openai", "chat.completions", chatAsked, sse(
			`{"id":"x","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}],"usage":null}`,
			`{"id":"x","choices":[{"index":0,"delta":{"reasoning_content":"Let "}}]}`, `{"id":"x","choices":[{"index":0,"delta":{"reasoning_content":"me."}}]}`,
			`{"id":"x","choices":[{"index":0,"delta":{"content":"I "}},{"index":1,"delta":{"content":"Other"}}]}`, `{"id":"x","choices":[{"index":0,"delta":{"content":"look."}}]}`,
			`{"id":"x","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c2","type":"function","function":{"name":"read","arguments":""}}]}}]}`,
			`{"id":"x","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"p\""}},{"index":1,"id":"c3","type":"function","function":{"name":"write","arguments":"{}"}}]}}]}`,
			`{"id":"x","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]}}]}`,
			`{"id":"x","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`, `{"id":"x","choices":[],"usage":{}}`, `[DONE]`), chatHeard, []string{
			`answer "I look.", whole true`, `thought "Let me."`, `calls c2 read {"p":1}`, `calls c3 write {}`,
		}},
		{"chat, calls without an index", "openai", "chat.completions", chatAsked, sse(
			`{"choices":[{"delta":{"tool_calls":[{"id":"c2","function":{"name":"read","arguments":"{}"}}]}}]}`,
			`{"choices":[{"delta":{"tool_calls":[{"id":"c3","function":{"name":"write","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`), chatHeard,
			[]string{`answer "", whole true`, `calls c2 read {}`, `calls c3 write {}`}},
		{"chat, refused", "openai", "chat.completions", chatAsked, sse(
			`{"choices":[{"delta":{"refusal":"I "}}]}`, `{"choices":[{"delta":{"refusal":"won't."},"finish_reason":"stop"}]}`), chatHeard,
			[]string{`answer [{"type":"refusal","refusal":"I won't."}], whole true`}},
		{"chat, before tools", "openai", "chat.completions", `{"model":"m","functions":[{"name":"read"}],"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":null,"function_call":{"name":"read","arguments":"{}"}},{"role":"function","name":"read","content":"one"}]}`,
			`{"choices":[{"index":0,"message":{"content":null,"function_call":{"name":"read","arguments":"{\"p\":1}"}},"finish_reason":"function_call"}]}`,
			[]string{`system "", tools true, 3 messages`, `user said "hi"`, `called call_1 read {}`, `call_1 gave "one", failed false`},
			[]string{`answer "", whole true`, `calls call_2 read {"p":1}`}},
		{"completions", "openai", "completions", `{"model":"m","prompt":"Once"}`, `{"choices":[{"text":" upon","index":0,"finish_reason":"stop"}]}`,
			[]string{`system "", tools false, 1 messages`, `user said "Once"`}, []string{`answer " upon", whole true`}},

		{"responses", "openai", "responses", responsesAsked, `{"id":"resp","object":"response","status":"completed","model":"m","output":[
   {"type":"reasoning","id":"rs","summary":[{"type":"summary_text","text":"Let me."}],"encrypted_content":"x"},
   {"type":"message","id":"msg","role":"assistant","content":[{"type":"output_text","text":"I look.","annotations":[]}]},
   {"type":"function_call","id":"fc_2","call_id":"c4","name":"shell","arguments":"{}"},
   {"type":"custom_tool_call","id":"ct_2","call_id":"c5","name":"apply_patch","input":"{\"no\":\"json\"}"},
   {"type":"local_shell_call","id":"ls_2","call_id":"c6","action":{"type":"exec"}}]}`, responsesHeard, []string{
			`answer "I look.", whole true`, `thought "Let me."`,
			`native {"type":"reasoning","id":"rs","summary":[{"type":"summary_text","text":"Let me."}],"encrypted_content":"x"}`,
			`calls c4 shell {}`, `calls c5 apply_patch "{\"no\":\"json\"}"`, `calls c6 local_shell {"type":"exec"}`,
		}},
		{"responses streamed", "openai", "responses", `{"model":"m","previous_response_id":"resp_0","input":"go on"}`, sse(
			`{"type":"response.created","response":{"id":"resp","status":"in_progress","output":[]}}`,
			`{"type":"response.output_item.added","item":{"type":"message","id":"msg","content":[]}}`,
			`{"type":"response.output_text.delta","item_id":"msg","delta":"I "}`, `{"type":"response.output_text.delta","item_id":"msg","delta":"look."}`,
			`{"type":"response.output_item.done","item":{"type":"message","id":"msg","content":[{"type":"output_text","text":"I look.","annotations":[]}]}}`,
			`{"type":"response.output_item.added","item":{"type":"function_call","id":"fc","call_id":"c1","name":"shell","arguments":""}}`,
			`{"type":"response.function_call_arguments.delta","item_id":"fc","delta":"{}"}`,
			`{"type":"response.output_item.done","item":{"type":"function_call","id":"fc","call_id":"c1","name":"shell","arguments":"{}"}}`,
			`{"type":"response.output_item.done","item":{"type":"web_search_call","id":"ws","status":"completed"}}`,
			`{"type":"response.completed","response":{"id":"resp","status":"completed","output":[]}}`),
			[]string{`system "", tools false, 1 messages`, `follows resp_0`, `user said "go on"`},
			[]string{`answer [{"type":"text","text":"I look."},{"type":"web_search_call","id":"ws","status":"completed"}], whole true`, `calls c1 shell {}`}},
		{"responses, cut", "openai", "responses", `{"model":"m","input":"hi"}`, sse(
			`{"type":"response.created","response":{"id":"resp","status":"in_progress","output":[]}}`,
			`{"type":"response.output_item.added","item":{"type":"message","id":"msg","content":[]}}`,
			`{"type":"response.output_text.delta","item_id":"msg","delta":"I "}`), []string{`system "", tools false, 1 messages`, `user said "hi"`},
			[]string{`answer "I ", whole false`}},
		{"responses, failed", "openai", "responses", `{"model":"m","input":"hi"}`, sse(
			`{"type":"response.failed","response":{"id":"resp","status":"failed","output":[],"error":{"code":"server_error"}}}`),
			[]string{`system "", tools false, 1 messages`, `user said "hi"`}, []string{`no answer`}},

		{"gemini", "gemini", "generateContent", geminiAsked, `{"candidates":[{"index":0,"finishReason":"STOP","content":{"role":"model","parts":[{"text":"Let me.","thought":true},
   {"text":"I look."},{"functionCall":{"id":"g1","name":"read","args":{"p":1}},"thoughtSignature":"sig"},{"functionCall":{"name":"write"}}]}}]}`, geminiHeard, []string{
			`answer "I look.", whole true`, `thought "Let me."`, `native {"thoughtSignature":"sig"}`, `calls g1 read {"p":1}`, `calls call_3 write {}`,
		}},
		{"gemini streamed", "gemini", "streamGenerateContent", geminiAsked, sse(
			`{"candidates":[{"content":{"role":"model","parts":[{"text":"I "}]}}]}`, `{"candidates":[{"content":{"role":"model","parts":[{"text":"look."}]}}]}`,
			`{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"read","args":{}}}]},"finishReason":"STOP"}]}`), geminiHeard,
			[]string{`answer "I look.", whole true`, `calls call_3 read {}`}},
		{"gemini as a list", "gemini", "streamGenerateContent", geminiAsked,
			`[{"candidates":[{"content":{"parts":[{"text":"I "}]}}]},` + "\n" + `{"candidates":[{"content":{"parts":[{"text":"look."}]},"finishReason":"STOP"}]}]`,
			geminiHeard, []string{`answer "I look.", whole true`}},
		{"gemini, blocked", "gemini", "generateContent", geminiAsked, `{"promptFeedback":{"blockReason":"SAFETY"}}`, geminiHeard, []string{`answer "", whole true`}},
		{"code assist", "gemini", "streamGenerateContent", `{"model":"m","project":"p","request":` + geminiAsked + `}`,
			sse(`{"response":{"candidates":[{"content":{"parts":[{"text":"I look."},{"executableCode":{"code":"1"}}]},"finishReason":"STOP"}]}}`), geminiHeard,
			[]string{`answer [{"type":"text","text":"I look."},{"executableCode":{"code":"1"}}], whole true`}},

		{"ollama", "ollama", "chat", ollamaAsked, `{"model":"m","message":{"role":"assistant","content":"I look.","thinking":"Let me.","tool_calls":[{"function":{"name":"read","arguments":{"p":3}}}]},"done":true,"done_reason":"stop"}`,
			ollamaHeard, []string{`answer "I look.", whole true`, `thought "Let me."`, `calls call_3 read {"p":3}`}},
		{"ollama streamed", "ollama", "chat", ollamaAsked, lines(
			`{"model":"m","message":{"role":"assistant","content":"I "},"done":false}`, `{"model":"m","message":{"role":"assistant","content":"look."},"done":false}`,
			`{"model":"m","message":{"role":"assistant","content":"","tool_calls":[{"id":"o1","function":{"name":"read","arguments":{}}}]},"done":false}`,
			`{"model":"m","message":{"role":"assistant","content":""},"done":true}`), ollamaHeard, []string{`answer "I look.", whole true`, `calls o1 read {}`}},
		{"ollama generate", "ollama", "generate", `{"model":"m","system":"Be brief.","prompt":"hi"}`, lines(`{"response":"Hel","done":false}`, `{"response":"lo","done":true}`),
			[]string{`system "Be brief.", tools false, 1 messages`, `user said "hi"`}, []string{`answer "Hello", whole true`}},

		{"cohere", "cohere", "chat", chatAsked, `{"id":"x","finish_reason":"TOOL_CALL","message":{"role":"assistant","tool_plan":"Let me.","content":[{"type":"text","text":"I look."}],
   "tool_calls":[{"id":"read_1","type":"function","function":{"name":"read","arguments":"{\"p\":1}"}}]}}`, chatHeard, []string{
			`answer "I look.", whole true`, `thought "Let me."`, `calls read_1 read {"p":1}`,
		}},
		{"cohere streamed", "cohere", "chat", chatAsked, sse(`{"type":"message-start","id":"x"}`, `{"type":"tool-plan-delta","delta":{"message":{"tool_plan":"Let "}}}`,
			`{"type":"tool-plan-delta","delta":{"message":{"tool_plan":"me."}}}`,
			`{"type":"content-start","index":0,"delta":{"message":{"content":{"type":"text","text":""}}}}`,
			`{"type":"content-delta","index":0,"delta":{"message":{"content":{"text":"I look."}}}}`,
			`{"type":"tool-call-start","index":0,"delta":{"message":{"tool_calls":{"id":"read_1","type":"function","function":{"name":"read","arguments":""}}}}}`,
			`{"type":"tool-call-delta","index":0,"delta":{"message":{"tool_calls":{"function":{"arguments":"{\"p\""}}}}}`,
			`{"type":"tool-call-start","index":1,"delta":{"message":{"tool_calls":{"id":"read_2","type":"function","function":{"name":"read","arguments":"{}"}}}}}`,
			`{"type":"tool-call-delta","index":0,"delta":{"message":{"tool_calls":{"function":{"arguments":":1}"}}}}}`,
			`{"type":"message-end","delta":{"finish_reason":"TOOL_CALL"}}`), chatHeard, []string{
			`answer "I look.", whole true`, `thought "Let me."`, `calls read_1 read {"p":1}`, `calls read_2 read {}`,
		}},
		{"cohere's first version", "cohere", "chat v1", `{"model":"m","preamble":"Be brief.","message":"do it","tools":[{"name":"read"}],"tool_results":[{"call":{"name":"read","parameters":{}},"outputs":[{"a":1}]}]}`,
			lines(`{"event_type":"text-generation","text":"I look."}`, `{"event_type":"tool-calls-generation","tool_calls":[{"name":"read","parameters":{"p":1}}]}`, `{"event_type":"stream-end","finish_reason":"COMPLETE","response":{}}`),
			[]string{`system "Be brief.", tools true, 1 messages`, `user said "do it"`, `call_1 gave [{"a":1}], failed false`},
			[]string{`answer "I look.", whole true`, `calls call_2 read {"p":1}`}},

		{"converse", "bedrock", "converse", converseAsked, `{"output":{"message":{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"Let me.","signature":"s"}}},{"text":"I look."},{"toolUse":{"toolUseId":"u3","name":"read","input":{"p":1}}}]}},"stopReason":"tool_use"}`,
			converseHeard, []string{
				`answer "I look.", whole true`, `thought "Let me."`, `native {"reasoningContent":{"reasoningText":{"text":"Let me.","signature":"s"}}}`, `calls u3 read {"p":1}`,
			}},
		{"invoke llama", "bedrock", "invoke", `{"prompt":"hi"}`, `{"generation":"Hello","stop_reason":"stop"}`,
			[]string{`system "", tools false, 1 messages`, `user said "hi"`}, []string{`answer "Hello", whole true`}},
		{"invoke titan", "bedrock", "invoke", `{"inputText":"hi"}`, `{"results":[{"outputText":"Hello","completionReason":"FINISH"}]}`,
			[]string{`system "", tools false, 1 messages`, `user said "hi"`}, []string{`answer "Hello", whole true`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			call := llmCall(c.provider, c.endpoint)
			if c.endpoint == "chat v1" {
				call.Endpoint, call.URL = "chat", "https://api.cohere.com/v1/chat"
			}
			s, err := llm.ReadCall(call, []byte(c.request), []byte(c.response))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(append(append([]string{}, c.heard...), c.want...), said(s)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			valid(t, s)
		})
	}
}

// valid checks that everything that an event will hold is JSON on one line.
func valid(t *testing.T, s *llm.Said) {
	t.Helper()
	check := func(b []byte) {
		if !json.Valid(b) || strings.Contains(string(b), "\n") {
			t.Errorf("no JSON on one line: %q", b)
		}
	}
	for _, m := range s.New {
		for _, c := range m.Calls {
			check(c.Arguments)
		}
		for _, r := range m.Results {
			check(r.Output)
		}
		for _, a := range m.Attachments {
			check(a)
		}
	}
	if s.Answer == nil {
		return
	}
	check(s.Answer.Message.Content)
	for _, c := range s.Answer.Message.ToolCalls {
		check(c.Arguments)
	}
	for _, b := range s.Answer.Native {
		check(b)
	}
}

package llm_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/axis/llm"
)

const (
	anthropicURL = "https://api.anthropic.com/v1/messages"
	chatURL      = "https://api.openai.com/v1/chat/completions"
	responsesURL = "https://api.openai.com/v1/responses"
	geminiURL    = "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse"
)

// classify identifies a POST of body to url.
func classify(t testing.TB, url, body string) *exchange.Identity {
	t.Helper()
	id, err := llm.NewClassifier(nil).Classify(&exchange.Request{Method: http.MethodPost, URL: url, Body: []byte(body)})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// The bodies below are what the providers' SDKs and agents send, shortened.
const (
	claudeCode = `{"model":"claude-sonnet-4-5","max_tokens":32000,"stream":true,
		"system":[{"type":"text","text":"x-anthropic-billing-header: cc_version=2.1; cch=a1b2c;"},
			{"type":"text","text":"You are Claude Code.","cache_control":{"type":"ephemeral"}}],
		"messages":[{"role":"user","content":[{"type":"text","text":"write hello.txt","cache_control":{"type":"ephemeral"}}]},
			{"role":"assistant","content":[{"type":"thinking","thinking":"A file.","signature":"EqQB"},
				{"type":"tool_use","id":"toolu_01","name":"Write","input":{"signature":"kept","path":"hello.txt"}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_01","content":"ok"}]}],
		"tools":[{"name":"Write","input_schema":{"type":"object"},"cache_control":{"type":"ephemeral"}}],
		"metadata":{"user_id":"user_1_session_2"},"thinking":{"type":"enabled","budget_tokens":1024},"temperature":1}`
	chat = `{"model":"gpt-4o","messages":[{"role":"system","content":"You are Qwen Code."},
		{"role":"user","content":"write hello.txt"}],"tools":[{"type":"function","function":{"name":"write_file"}}],
		"tool_choice":"auto","stream":true,"stream_options":{"include_usage":true},"user":"u1","store":false,
		"prompt_cache_key":"k1","temperature":0}`
	codex = `{"model":"gpt-5-codex","instructions":"You are Codex.","input":[
		{"type":"message","role":"developer","content":[{"type":"input_text","text":"Sandbox off."}]},
		{"type":"message","role":"user","content":[{"type":"input_text","text":"write hello.txt"}]},
		{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gAAAA"},
		{"type":"function_call","id":"fc_1","call_id":"call_1","name":"exec_command","arguments":"{\"cmd\":\"ls\"}"},
		{"type":"function_call_output","call_id":"call_1","output":"ok"}],
		"tools":[{"type":"function","name":"exec_command"}],"tool_choice":"auto","reasoning":{"effort":"medium"},
		"store":false,"stream":true,"include":["reasoning.encrypted_content"],"prompt_cache_key":"0199",
		"client_metadata":{"turn_started_at_unix_ms":"1"}}`
	geminiCLI = `{"contents":[{"role":"user","parts":[{"text":"write hello.txt"}]},
		{"role":"model","parts":[{"functionCall":{"id":"c1","name":"write_file","args":{"id":"kept"}},"thoughtSignature":"Cg"}]},
		{"role":"user","parts":[{"functionResponse":{"id":"c1","name":"write_file","response":{"output":"ok"}}}]}],
		"systemInstruction":{"role":"user","parts":[{"text":"You are Gemini."}]},
		"tools":[{"functionDeclarations":[{"name":"write_file"}]}],
		"generationConfig":{"temperature":0,"topP":1,"thinkingConfig":{"includeThoughts":true}}}`
)

func TestClassifyCalls(t *testing.T) {
	for _, tc := range []struct {
		name, url, body           string
		provider, endpoint, model string
		turns                     int
		surface, params           string
	}{{
		name: "anthropic", url: anthropicURL + "?beta=true", body: claudeCode,
		provider: "anthropic", endpoint: "messages", model: "claude-sonnet-4-5", turns: 3,
		surface: `{"messages":[{"content":[{"text":"write hello.txt","type":"text"}],"role":"user"},` +
			`{"content":[{"thinking":"A file.","type":"thinking"},` +
			`{"id":"#1","input":{"path":"hello.txt","signature":"kept"},"name":"Write","type":"tool_use"}],"role":"assistant"},` +
			`{"content":[{"content":[{"text":"ok","type":"text"}],"tool_use_id":"#1","type":"tool_result"}],"role":"user"}],` +
			`"system":[{"text":"You are Claude Code.","type":"text"}],"thinking":{"budget_tokens":1024,"type":"enabled"},` +
			`"tools":[{"input_schema":{"type":"object"},"name":"Write"}]}`,
		params: `{"?beta":["true"],"max_tokens":32000,"stream":true,"temperature":1}`,
	}, {
		name: "chat completions", url: chatURL, body: chat,
		provider: "openai", endpoint: "chat.completions", model: "gpt-4o", turns: 2,
		surface: `{"messages":[{"content":[{"text":"You are Qwen Code.","type":"text"}],"role":"system"},` +
			`{"content":[{"text":"write hello.txt","type":"text"}],"role":"user"}],` +
			`"tool_choice":"auto","tools":[{"function":{"name":"write_file"},"type":"function"}]}`,
		params: `{"stream":true,"stream_options":{"include_usage":true},"temperature":0}`,
	}, {
		name: "responses", url: responsesURL, body: codex,
		provider: "openai", endpoint: "responses", model: "gpt-5-codex", turns: 5,
		surface: `{"input":[{"content":[{"text":"Sandbox off.","type":"input_text"}],"role":"developer","type":"message"},` +
			`{"content":[{"text":"write hello.txt","type":"input_text"}],"role":"user","type":"message"},` +
			`{"summary":[],"type":"reasoning"},` +
			`{"arguments":"{\"cmd\":\"ls\"}","call_id":"#1","name":"exec_command","type":"function_call"},` +
			`{"call_id":"#1","output":"ok","type":"function_call_output"}],"instructions":"You are Codex.",` +
			`"reasoning":{"effort":"medium"},"tool_choice":"auto","tools":[{"name":"exec_command","type":"function"}]}`,
		params: `{"include":["reasoning.encrypted_content"],"stream":true}`,
	}, {
		name: "gemini", url: geminiURL + "&key=secret", body: geminiCLI,
		provider: "gemini", endpoint: "streamGenerateContent", model: "gemini-2.5-flash", turns: 3,
		surface: `{"contents":[{"parts":[{"text":"write hello.txt"}],"role":"user"},` +
			`{"parts":[{"functionCall":{"args":{"id":"kept"},"name":"write_file"}}],"role":"model"},` +
			`{"parts":[{"functionResponse":{"name":"write_file","response":{"output":"ok"}}}],"role":"user"}],` +
			`"systemInstruction":{"parts":[{"text":"You are Gemini."}],"role":"user"},` +
			`"thinkingConfig":{"includeThoughts":true},"tools":[{"functionDeclarations":[{"name":"write_file"}]}]}`,
		params: `{"?alt":["sse"],"generationConfig":{"temperature":0,"topP":1}}`,
	}} {
		t.Run(tc.name, func(t *testing.T) {
			id := classify(t, tc.url, tc.body)
			if k := id.Key; k.Kind != exchange.LLM || k.Provider != tc.provider || k.Endpoint != tc.endpoint || k.Model != tc.model {
				t.Fatalf("key %+v", k)
			}
			if len(talkOf(id).Turns) != tc.turns || talkOf(id).Opening.IsZero() {
				t.Errorf("%d turns, opening %s", len(talkOf(id).Turns), talkOf(id).Opening)
			}
			if string(id.Surface) != tc.surface {
				t.Errorf("surface\n got %s\nwant %s", id.Surface, tc.surface)
			}
			if string(id.Params) != tc.params {
				t.Errorf("params\n got %s\nwant %s", id.Params, tc.params)
			}
		})
	}
}

func TestDetection(t *testing.T) {
	for _, tc := range []struct {
		method, url, body string
		endpoint, model   string // "" for plain HTTP
	}{
		{"POST", "http://localhost:8080/anthropic/v1/messages", `{"model":"m","messages":[]}`, "messages", "m"},
		{"POST", "https://api.anthropic.com/v1/messages/count_tokens", `{"model":"m","messages":[]}`, "", ""},
		{"POST", "https://chat.example.com/v1/messages", `{"to":"bob"}`, "", ""},
		{"GET", anthropicURL, `{"model":"m","messages":[]}`, "", ""},
		{"POST", anthropicURL, `not json`, "", ""},
		{"POST", anthropicURL, `[1]`, "", ""},
		{"POST", "https://r.openai.azure.com/openai/deployments/d/chat/completions?api-version=1", `{"messages":[]}`, "chat.completions", "d"},
		{"POST", "https://openrouter.ai/api/v1/chat/completions", `{"model":"x/y","messages":[]}`, "chat.completions", "x/y"},
		{"POST", responsesURL, `{"model":"m","input":"hi"}`, "responses", "m"},
		{"POST", responsesURL, `{"model":"m","prompt":{"id":"p"}}`, "responses", "m"},
		{"POST", responsesURL, `{"model":"m"}`, "", ""},
		{"POST", responsesURL + "/compact", `{"model":"m","input":"hi"}`, "responses.compact", "m"},
		{"POST", "https://x/v1beta/models/g:generateContent", `{"contents":[]}`, "generateContent", "g"},
		{"POST", "https://x/v1/projects/p/locations/l/publishers/google/models/g:generateContent", `{"contents":[]}`, "generateContent", "g"},
		{"POST", "https://x/v1/tunedModels/t:generateContent", `{"contents":[]}`, "generateContent", "tunedModels/t"},
		{"POST", "https://x/v1beta/models/g:countTokens", `{"contents":[]}`, "", ""},
		{"POST", "https://x/v1beta/models/g:generateContent", `{}`, "", ""},
		{"POST", "https://x/v1beta/models/:generateContent", `{"contents":[]}`, "", ""},
		{"POST", "https://x/:generateContent", `{"contents":[]}`, "", ""},
	} {
		r := &exchange.Request{Method: tc.method, URL: tc.url, Body: []byte(tc.body)}
		id, err := llm.NewClassifier(nil).Classify(r)
		if err != nil {
			t.Fatal(err)
		}
		if id.Key.Endpoint != tc.endpoint || id.Key.Model != tc.model || (id.Key.Kind == exchange.LLM) != (tc.endpoint != "") {
			t.Errorf("%s %s %s: %+v", tc.method, tc.url, tc.body, id.Key)
		}
	}
}

// TestSameCall changes what must not matter to a match.
func TestSameCall(t *testing.T) {
	for _, tc := range []struct{ name, url, a, b string }{
		{"billing line", anthropicURL, claudeCode, strings.Replace(claudeCode, "cch=a1b2c", "cch=fffff", 1)},
		{"user id", anthropicURL, claudeCode, strings.Replace(claudeCode, "session_2", "session_3", 1)},
		{"signature", anthropicURL, claudeCode, strings.Replace(claudeCode, "EqQB", "other", 1)},
		{"cache mark moves", anthropicURL, claudeCode, strings.Replace(claudeCode,
			`[{"type":"text","text":"write hello.txt","cache_control":{"type":"ephemeral"}}]`, `"write hello.txt"`, 1)},
		{"system as a string", anthropicURL, `{"model":"m","messages":[],"system":"s"}`,
			`{"model":"m","messages":[],"system":[{"type":"text","text":"s"}]}`},
		{"cache key", chatURL, chat, strings.Replace(chat, `"k1"`, `"k2"`, 1)},
		{"content as parts", chatURL, chat, strings.Replace(chat, `"content":"write hello.txt"`,
			`"content":[{"type":"text","text":"write hello.txt"}]`, 1)},
		{"order of keys", chatURL, `{"model":"m","messages":[],"n":1}`, `{"n":1,"messages":[],"model":"m"}`},
		{"sealed reasoning", responsesURL, codex, strings.Replace(codex, "gAAAA", "hBBBB", 1)},
		{"item ids", responsesURL, codex, strings.NewReplacer("rs_1", "rs_2", "fc_1", "fc_2").Replace(codex)},
		{"input as a string", responsesURL, `{"model":"m","input":"hi"}`,
			`{"model":"m","input":[{"role":"user","content":[{"type":"input_text","text":"hi"}]}]}`},
		{"call ids", geminiURL, geminiCLI, strings.ReplaceAll(geminiCLI, `"id":"c1"`, `"id":"c2"`)},
		{"snake case", geminiURL, geminiCLI, strings.NewReplacer("systemInstruction", "system_instruction",
			"generationConfig", "generation_config", "thinkingConfig", "thinking_config").Replace(geminiCLI)},
	} {
		if a, b := classify(t, tc.url, tc.a), classify(t, tc.url, tc.b); a.Key != b.Key || talkOf(a).Opening != talkOf(b).Opening {
			t.Errorf("%s:\n%s\n%s", tc.name, a.Surface, b.Surface)
		}
		if tc.a == tc.b {
			t.Errorf("%s: nothing was changed", tc.name)
		}
	}
}

// TestOtherCall changes what must matter.
func TestOtherCall(t *testing.T) {
	for _, tc := range []struct{ name, url, a, was, now string }{
		{"prompt", anthropicURL, claudeCode, "write hello.txt", "write bye.txt"},
		{"temperature", anthropicURL, claudeCode, `"temperature":1`, `"temperature":0`},
		{"unknown parameter", anthropicURL, claudeCode, `"temperature"`, `"temperament"`},
		{"argument named like an echo", anthropicURL, claudeCode, `"signature":"kept"`, `"signature":"other"`},
		{"thinking", anthropicURL, claudeCode, `"budget_tokens":1024`, `"budget_tokens":2048`},
		{"model", chatURL, chat, "gpt-4o", "gpt-5"},
		{"stream", chatURL, chat, `"stream":true`, `"stream":false`},
		{"tool", chatURL, chat, "write_file", "read_file"},
		{"instructions", responsesURL, codex, "You are Codex", "You were Codex"},
		{"argument named id", geminiURL, geminiCLI, `"id":"kept"`, `"id":"other"`},
		{"thinking config", geminiURL, geminiCLI, `"includeThoughts":true`, `"includeThoughts":false`},
	} {
		b := strings.Replace(tc.a, tc.was, tc.now, 1)
		if classify(t, tc.url, tc.a).Key == classify(t, tc.url, b).Key {
			t.Errorf("%s does not matter", tc.name)
		}
	}
	if classify(t, geminiURL, geminiCLI).Key == classify(t, strings.TrimSuffix(geminiURL, "?alt=sse"), geminiCLI).Key {
		t.Error("alt=sse does not matter")
	}
}

// TestQuery compares calls by their queries, those too that do not parse.
func TestQuery(t *testing.T) {
	params := func(query string) string {
		return string(classify(t, anthropicURL+query, `{"model":"m","messages":[]}`).Params)
	}
	for _, tc := range []struct{ query, want string }{
		{"", `{}`},
		{"?", `{}`},
		{"?&&key=a&X-Amz-Date=b", `{}`},
		{"?b=2&a=1&b=1&a", `{"?a":["1",""],"?b":["2","1"]}`},
		{"?a%20b=c+d", `{"?a b":["c d"]}`},
		{"?x=%zz", `{"&":["x=%zz"]}`},
		{"?x=%25zz", `{"?x":["%zz"]}`},
		{"?%zz=1&x=1", `{"&":["%zz=1&x=1"]}`},
		{"?a;b=1", `{"&":["a;b=1"]}`},
		{"?a%3Bb=1", `{"?a;b":["1"]}`},
	} {
		if got := params(tc.query); got != tc.want {
			t.Errorf("%s\n got %s\nwant %s", tc.query, got, tc.want)
		}
	}
	if params("?x=%zz") == params("?x=%yy") {
		t.Error("two values that do not parse are the same")
	}
}

// TestTurns sees a conversation grow by whole turns, and its opening stay.
func TestTurns(t *testing.T) {
	short := `{"model":"m","system":"s","messages":[{"role":"user","content":"a"}]}`
	long := `{"model":"m","system":"s","messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},` +
		`{"role":"user","content":"c"}]}`
	a, b := classify(t, anthropicURL, short), classify(t, anthropicURL, long)
	if talkOf(a).Opening != talkOf(b).Opening || len(talkOf(a).Turns) != 1 || len(talkOf(b).Turns) != 3 || talkOf(a).Turns[0] != talkOf(b).Turns[0] {
		t.Errorf("%v %v", talkOf(a).Turns, talkOf(b).Turns)
	}
	other := classify(t, anthropicURL, strings.Replace(short, `"s"`, `"S"`, 1))
	if talkOf(other).Opening == talkOf(a).Opening {
		t.Error("another system text opens the same conversation")
	}
}

func TestPlain(t *testing.T) {
	for _, tc := range []struct {
		name string
		a, b exchange.Request
		same bool
	}{
		{"order of keys", exchange.Request{Method: "POST", URL: "https://h/p", Body: []byte(`{"a":1,"b":2}`)},
			exchange.Request{Method: "POST", URL: "https://h/p", Body: []byte(`{ "b": 2.0, "a": 1 }`)}, true},
		{"query", exchange.Request{Method: "GET", URL: "https://h/p?a=1"},
			exchange.Request{Method: "GET", URL: "https://h/p?a=2"}, false},
		{"method", exchange.Request{Method: "GET", URL: "https://h/p"},
			exchange.Request{Method: "HEAD", URL: "https://h/p"}, false},
		{"bytes", exchange.Request{Method: "POST", URL: "https://h/p", Body: []byte("\x00\xff")},
			exchange.Request{Method: "POST", URL: "https://h/p", Body: []byte("\x00\xfe")}, false},
		{"headers", exchange.Request{Method: "GET", URL: "https://h/p", Header: http.Header{"X-A": {"1"}}},
			exchange.Request{Method: "GET", URL: "https://h/p"}, true},
	} {
		c := llm.NewClassifier(nil)
		a, errA := c.Classify(&tc.a)
		b, errB := c.Classify(&tc.b)
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		if (a.Key == b.Key) != tc.same || a.Key.Kind != exchange.HTTP || a.Usage != nil {
			t.Errorf("%s: %+v %+v", tc.name, a.Key, b.Key)
		}
	}
	if _, err := llm.NewClassifier(nil).Classify(&exchange.Request{Method: "GET", URL: "https://h/%zz"}); err == nil {
		t.Error("a URL that does not parse is taken")
	}
}

func TestErrorBody(t *testing.T) {
	for url, want := range map[string]string{
		anthropicURL: `{"type":"error","error":{"type":"invalid_request_error","message":"a <b>"}}`,
		chatURL:      `{"error":{"message":"a <b>","type":"invalid_request_error","param":null,"code":null}}`,
		responsesURL: `{"error":{"message":"a <b>","type":"invalid_request_error","param":null,"code":null}}`,
		geminiURL:    `{"error":{"code":400,"message":"a <b>","status":"INVALID_ARGUMENT"}}`,
	} {
		body := `{"model":"m","messages":[],"input":[],"contents":[]}`
		got := classify(t, url, body).ErrorBody(http.StatusBadRequest, "a <b>")
		if string(got) != want || !json.Valid(got) {
			t.Errorf("%s: %s", url, got)
		}
	}
}

// talkOf is what a request shows of its conversation, nothing where it is no call of a model.
func talkOf(id *exchange.Identity) exchange.Talk {
	if id.Talk == nil {
		return exchange.Talk{}
	}
	return id.Talk()
}

package llm_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/axis/llm"
)

// The hosts at which the requests below are sent.
const (
	azureURL      = "https://res.openai.azure.com/openai/deployments/my-gpt/chat/completions?api-version=2025-04-01-preview"
	bedrockHost   = "https://bedrock-runtime.us-east-1.amazonaws.com"
	converseURL   = bedrockHost + "/model/us.amazon.nova-pro-v1%3A0/converse-stream"
	invokeURL     = bedrockHost + "/model/anthropic.claude-3-5-sonnet-20241022-v2%3A0/invoke-with-response-stream"
	arnURL        = bedrockHost + "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A123456789012%3Ainference-profile%2Fus.anthropic.claude-sonnet-4-5-20250929-v1%3A0/invoke"
	vertexHost    = "https://us-east5-aiplatform.googleapis.com/v1/projects/p/locations/us-east5/publishers"
	codeAssistURL = "https://cloudcode-pa.googleapis.com/v1internal:streamGenerateContent?alt=sse"
	ollamaURL     = "http://localhost:11434/api/chat"
	openRouterURL = "https://openrouter.ai/api/v1/chat/completions"
	countURL      = "https://api.anthropic.com/v1/messages/count_tokens?beta=true"
)

// The bodies are what SDKs and agents send there, shortened.
const (
	converse = `{"messages":[{"role":"user","content":[{"text":"weather in Paris?"},{"cachePoint":{"type":"default"}}]},
		{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"I ask.","signature":"Er8B"}}},
			{"toolUse":{"toolUseId":"tooluse_kZJMlvQmRJ6eAyJE5GIl7Q","name":"weather","input":{"city":"Paris","toolUseId":"kept"}}}]},
		{"role":"user","content":[{"toolResult":{"toolUseId":"tooluse_kZJMlvQmRJ6eAyJE5GIl7Q","content":[{"json":{"c":21}}]}}]}],
		"system":[{"text":"Be brief."},{"cachePoint":{"type":"default"}}],
		"toolConfig":{"tools":[{"toolSpec":{"name":"weather","inputSchema":{"json":{"type":"object"}}}},{"cachePoint":{"type":"default"}}]},
		"inferenceConfig":{"maxTokens":512,"temperature":0.5},"requestMetadata":{"run":"r-1"}}`
	bedrockClaude = `{"anthropic_version":"bedrock-2023-05-31","max_tokens":1024,"system":"Be brief.",
		"messages":[{"role":"user","content":[{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}}]}]}`
	llama        = `{"prompt":"<|begin_of_text|>hi","max_gen_len":128,"temperature":0.1}`
	vertexClaude = `{"anthropic_version":"vertex-2023-10-16","max_tokens":64,"stream":true,
		"messages":[{"role":"user","content":"hi"}]}`
	codeAssist = `{"model":"gemini-2.5-pro","project":"cloud-project-1","user_prompt_id":"s-1########0",
		"request":{"contents":[{"role":"user","parts":[{"text":"hi"}]}],"systemInstruction":{"role":"user","parts":[{"text":"You are Gemini."}]},
		"generationConfig":{"temperature":1,"thinkingConfig":{"thinkingBudget":-1}},"session_id":"s-1"}}`
	ollamaChat = `{"model":"qwen3:8b","stream":true,"options":{"num_ctx":8192,"temperature":0},"keep_alive":"5m","think":true,
		"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"weather?","images":["iVBORw0KGgo="]},
		{"role":"assistant","content":"","tool_calls":[{"id":"call_x1","function":{"name":"weather","arguments":{"city":"Paris","id":"kept"}}}]},
		{"role":"tool","content":"21","tool_name":"weather","tool_call_id":"call_x1"}],
		"tools":[{"type":"function","function":{"name":"weather","parameters":{"type":"object"}}}]}`
	openRouter = `{"model":"anthropic/claude-sonnet-4.5","usage":{"include":true},"provider":{"order":["anthropic"]},
		"session_id":"s-1","trace":{"trace_id":"t-1"},"user":"u-1",
		"messages":[{"role":"system","content":[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}}]},
		{"role":"user","content":"weather?","cache_control":{"type":"ephemeral"}},
		{"role":"assistant","content":"","reasoning":"I ask.","reasoning_details":[{"type":"reasoning.text","text":"I ask.","id":"rd-1",
			"signature":"EqQB","index":0},{"type":"reasoning.encrypted","data":"gAAA"}],
			"tool_calls":[{"id":"call_1761234567890_ab1","type":"function","function":{"name":"weather","arguments":"{\"id\":\"kept\"}"},
			"extra_content":{"google":{"thought_signature":"Cg=="}}}]},
		{"role":"tool","tool_call_id":"call_1761234567890_ab1","content":"21"}]}`
)

// TestEndpoints sees each endpoint recognised, and what of its requests is surface and what is a parameter.
func TestEndpoints(t *testing.T) {
	for _, tc := range []struct {
		url, body                 string
		provider, endpoint, model string // no provider for plain HTTP
		surface, params           string
	}{
		{azureURL, `{"messages":[{"role":"user","content":"hi"}],"model":"gpt-4o"}`, "openai", "chat.completions", "my-gpt",
			`{"messages":[{"content":[{"text":"hi","type":"text"}],"role":"user"}]}`, `{"?api-version":["2025-04-01-preview"]}`},
		{"https://res.openai.azure.com/openai/v1/responses?api-version=preview", `{"model":"my-gpt","input":"hi"}`, "openai", "responses", "my-gpt",
			`{"input":[{"content":[{"text":"hi","type":"input_text"}],"role":"user","type":"message"}]}`, `{"?api-version":["preview"]}`},
		{"https://res.openai.azure.com/openai/deployments/emb/embeddings?api-version=2024-10-21", `{"input":["a","b"],"encoding_format":"base64"}`,
			"openai", "embeddings", "emb", `{"input":["a","b"]}`, `{"?api-version":["2024-10-21"],"encoding_format":"base64"}`},
		{"http://localhost:8000/v1/completions", `{"model":"m","prompt":"once","max_tokens":5,"request_id":"r1"}`, "openai", "completions", "m",
			`{"prompt":"once"}`, `{"max_tokens":5}`},
		{"https://api.openai.com/v1/responses/compact", `{"model":"m","input":[{"type":"compaction","encrypted_content":"x"}]}`,
			"openai", "responses.compact", "m", `{"input":[{"type":"compaction"}]}`, `{}`},
		{"https://api.openai.com/v1/images/generations", `{"model":"gpt-image-1","prompt":"a cat","size":"1024x1024","user":"u"}`,
			"openai", "images.generations", "gpt-image-1", `{"prompt":"a cat"}`, `{"size":"1024x1024"}`},
		{"https://api.openai.com/v1/audio/speech", `{"model":"tts-1","input":"hi","voice":"alloy"}`, "openai", "audio.speech", "tts-1",
			`{"input":"hi"}`, `{"voice":"alloy"}`},
		{openRouterURL, openRouter, "openai", "chat.completions", "anthropic/claude-sonnet-4.5",
			`{"messages":[{"content":[{"text":"Be brief.","type":"text"}],"role":"system"},{"content":[{"text":"weather?","type":"text"}],"role":"user"},` +
				`{"content":[{"text":"","type":"text"}],"reasoning":"I ask.","reasoning_details":[{"index":0,"text":"I ask.","type":"reasoning.text"},` +
				`{"type":"reasoning.encrypted"}],"role":"assistant","tool_calls":[{"extra_content":{"google":{}},` +
				`"function":{"arguments":"{\"id\":\"kept\"}","name":"weather"},"id":"#1","type":"function"}]},` +
				`{"content":[{"text":"21","type":"text"}],"role":"tool","tool_call_id":"#1"}]}`,
			`{"provider":{"order":["anthropic"]},"usage":{"include":true}}`},
		{converseURL, converse, "bedrock", "converse-stream", "us.amazon.nova-pro-v1:0",
			`{"messages":[{"content":[{"text":"weather in Paris?"}],"role":"user"},{"content":[{"reasoningContent":{"reasoningText":{"text":"I ask."}}},` +
				`{"toolUse":{"input":{"city":"Paris","toolUseId":"kept"},"name":"weather","toolUseId":"#1"}}],"role":"assistant"},` +
				`{"content":[{"toolResult":{"content":[{"json":{"c":21}}],"toolUseId":"#1"}}],"role":"user"}],"system":[{"text":"Be brief."}],` +
				`"toolConfig":{"tools":[{"toolSpec":{"inputSchema":{"json":{"type":"object"}},"name":"weather"}}]}}`,
			`{"inferenceConfig":{"maxTokens":512,"temperature":0.5}}`},
		{invokeURL, bedrockClaude, "bedrock", "invoke-with-response-stream", "anthropic.claude-3-5-sonnet-20241022-v2:0",
			`{"messages":[{"content":[{"text":"hi","type":"text"}],"role":"user"}],"system":[{"text":"Be brief.","type":"text"}]}`,
			`{"anthropic_version":"bedrock-2023-05-31","max_tokens":1024}`},
		{arnURL, bedrockClaude, "bedrock", "invoke",
			"arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-sonnet-4-5-20250929-v1:0",
			`{"messages":[{"content":[{"text":"hi","type":"text"}],"role":"user"}],"system":[{"text":"Be brief.","type":"text"}]}`,
			`{"anthropic_version":"bedrock-2023-05-31","max_tokens":1024}`},
		{bedrockHost + "/model/meta.llama3-70b-instruct-v1%3A0/invoke", llama, "bedrock", "invoke", "meta.llama3-70b-instruct-v1:0",
			`{"prompt":"<|begin_of_text|>hi"}`, `{"max_gen_len":128,"temperature":0.1}`},
		{bedrockHost + "/model/amazon.titan-embed-text-v2%3A0/invoke", `{"inputText":"hi","dimensions":256}`, "bedrock", "invoke",
			"amazon.titan-embed-text-v2:0", `{"inputText":"hi"}`, `{"dimensions":256}`},
		{bedrockHost + "/model/new.model/invoke", `{"novel":"shape"}`, "bedrock", "invoke", "new.model", `{"novel":"shape"}`, `{}`},
		{vertexHost + "/anthropic/models/claude-sonnet-4-5@20250929:streamRawPredict", vertexClaude, "anthropic", "streamRawPredict",
			"claude-sonnet-4-5@20250929", `{"messages":[{"content":[{"text":"hi","type":"text"}],"role":"user"}]}`,
			`{"anthropic_version":"vertex-2023-10-16","max_tokens":64,"stream":true}`},
		{vertexHost + "/google/models/gemini-2.5-pro:generateContent", `{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`,
			"gemini", "generateContent", "gemini-2.5-pro", `{"contents":[{"parts":[{"text":"hi"}],"role":"user"}]}`, `{}`},
		{vertexHost + "/google/models/text-embedding-005:predict", `{"instances":[{"content":"hi"}],"parameters":{"outputDimensionality":256}}`,
			"gemini", "predict", "text-embedding-005", `{"instances":[{"content":"hi"}]}`, `{"parameters":{"outputDimensionality":256}}`},
		{vertexHost + "/mistralai/models/mistral-large:rawPredict", `{"model":"mistral-large","messages":[{"role":"user","content":"hi"}]}`,
			"openai", "chat.completions", "mistral-large", `{"messages":[{"content":[{"text":"hi","type":"text"}],"role":"user"}]}`, `{}`},
		{codeAssistURL, codeAssist, "gemini", "streamGenerateContent", "gemini-2.5-pro",
			`{"contents":[{"parts":[{"text":"hi"}],"role":"user"}],"systemInstruction":{"parts":[{"text":"You are Gemini."}],"role":"user"},` +
				`"thinkingConfig":{"thinkingBudget":-1}}`, `{"?alt":["sse"],"generationConfig":{"temperature":1}}`},
		{"https://generativelanguage.googleapis.com/v1beta/models/gemini-embedding-001:embedContent?key=k",
			`{"model":"models/gemini-embedding-001","content":{"parts":[{"text":"hi"}]},"taskType":"RETRIEVAL_QUERY"}`,
			"gemini", "embedContent", "gemini-embedding-001", `{"content":{"parts":[{"text":"hi"}]}}`, `{"taskType":"RETRIEVAL_QUERY"}`},
		{ollamaURL, ollamaChat, "ollama", "chat", "qwen3:8b",
			`{"messages":[{"content":"Be brief.","role":"system"},{"content":"weather?","images":["iVBORw0KGgo="],"role":"user"},` +
				`{"content":"","role":"assistant","tool_calls":[{"function":{"arguments":{"city":"Paris","id":"kept"},"name":"weather"},"id":"#1"}]},` +
				`{"content":"21","role":"tool","tool_call_id":"#1","tool_name":"weather"}],"think":true,` +
				`"tools":[{"function":{"name":"weather","parameters":{"type":"object"}},"type":"function"}]}`,
			`{"options":{"num_ctx":8192,"temperature":0},"stream":true}`},
		{"http://localhost:11434/api/generate", `{"model":"qwen3","prompt":"hi","system":"s","context":[1,2],"stream":false,"keep_alive":0}`,
			"ollama", "generate", "qwen3", `{"context":[1,2],"prompt":"hi","system":"s"}`, `{"stream":false}`},
		{"http://localhost:11434/api/embed", `{"model":"nomic-embed-text","input":["a"],"truncate":true}`, "ollama", "embed",
			"nomic-embed-text", `{"input":["a"]}`, `{"truncate":true}`},
		{"http://localhost:11434/api/embeddings", `{"model":"nomic-embed-text","prompt":"a"}`, "ollama", "embeddings",
			"nomic-embed-text", `{"prompt":"a"}`, `{}`},
		{"https://api.cohere.com/v2/chat", `{"model":"command-a-03-2025","messages":[{"role":"user","content":"hi"}],"stream":true}`,
			"cohere", "chat", "command-a-03-2025", `{"messages":[{"content":[{"text":"hi","type":"text"}],"role":"user"}]}`, `{"stream":true}`},
		{"https://api.cohere.com/v2/embed", `{"model":"embed-v4.0","texts":["a"],"input_type":"search_query"}`, "cohere", "embed", "embed-v4.0",
			`{"texts":["a"]}`, `{"input_type":"search_query"}`},
		{"https://api.anthropic.com/v1/complete", `{"model":"claude-2.1","prompt":"\n\nHuman: hi","max_tokens_to_sample":9}`, "anthropic", "complete",
			"claude-2.1", `{"prompt":"\n\nHuman: hi"}`, `{"max_tokens_to_sample":9}`},

		// Plain HTTP whose body still leaves out what does not count.
		{countURL, `{"model":"m","system":"s","messages":[{"role":"user","content":"hi","x":1}],"metadata":{"user_id":"u"}}`, "", "", "",
			`{"messages":[{"content":[{"text":"hi","type":"text"}],"role":"user","x":1}],"model":"m","system":[{"text":"s","type":"text"}]}`, ""},
		{vertexHost + "/anthropic/models/count-tokens:rawPredict", `{"model":"m","messages":[]}`, "", "", "", `{"messages":[],"model":"m"}`, ""},
		{"https://api.anthropic.com/v1/messages/batches",
			`{"requests":[{"custom_id":"a","params":{"model":"m","max_tokens":1,"metadata":{},"messages":[{"role":"user","content":"hi"}]}}]}`, "", "", "",
			`{"requests":[{"custom_id":"a","params":{"max_tokens":1,"messages":[{"content":[{"text":"hi","type":"text"}],"role":"user"}],"model":"m"}}]}`, ""},
		{"https://generativelanguage.googleapis.com/v1beta/models/g:countTokens",
			`{"generateContentRequest":{"model":"models/g","contents":[{"parts":[{"text":"hi","thoughtSignature":"x"}]}]}}`, "", "", "",
			`{"generateContentRequest":{"contents":[{"parts":[{"text":"hi"}]}],"model":"models/g"}}`, ""},
		{"https://cloudcode-pa.googleapis.com/v1internal:countTokens", `{"request":{"model":"models/g","contents":[]}}`, "", "", "",
			`{"contents":[],"model":"models/g"}`, ""},
		{bedrockHost + "/model/m/count-tokens", `{"input":{"converse":{"messages":[{"role":"user","content":[{"text":"hi"},{"cachePoint":{}}]}]}}}`,
			"", "", "", `{"input":{"converse":{"messages":[{"content":[{"text":"hi"}],"role":"user"}]}}}`, ""},
		{"https://api.openai.com/v1/responses/input_tokens", `{"model":"m","input":"hi","user":"u"}`, "", "", "",
			`{"input":[{"content":[{"text":"hi","type":"input_text"}],"role":"user","type":"message"}],"model":"m"}`, ""},

		// Plain HTTP as it stands.
		{"http://localhost:11434/api/show", `{"model":"qwen3"}`, "", "", "", `{"model":"qwen3"}`, ""},
		{"http://localhost:11434/api/generate", `{"model":"qwen3","keep_alive":0}`, "", "", "", `{"keep_alive":0,"model":"qwen3"}`, ""},
		{"https://app.example.com/api/chat", `{"model":"m","messages":[{"role":"user","content":[]}]}`, "", "", "",
			`{"messages":[{"content":[],"role":"user"}],"model":"m"}`, ""},
		{"https://app.example.com/api/chat", `{"model":"m","messages":[{"id":"x7","role":"user","parts":[]}]}`, "", "", "",
			`{"messages":[{"id":"x7","parts":[],"role":"user"}],"model":"m"}`, ""},
		{"https://chat.example.com/v1/chat", `{"message":"hi"}`, "", "", "", `{"message":"hi"}`, ""},
		{codeAssistURL, `{"model":"g","contents":[],"request":{"contents":[]}}`, "", "", "", `{"contents":[],"model":"g","request":{"contents":[]}}`, ""},
		{"https://api.openai.com/v1/moderations", `{"input":"hi"}`, "", "", "", `{"input":"hi"}`, ""},
		{"https://api.openai.com/v1/batches", `{"endpoint":"/v1/responses","input_file_id":"file-1"}`, "", "", "",
			`{"endpoint":"/v1/responses","input_file_id":"file-1"}`, ""},
	} {
		id := classify(t, tc.url, tc.body)
		name := tc.url + " " + tc.body[:min(40, len(tc.body))]
		if k := id.Key; k.Provider != tc.provider || k.Endpoint != tc.endpoint || k.Model != tc.model || (k.Kind == exchange.LLM) != (tc.provider != "") {
			t.Errorf("%s: key %+v", name, k)
		}
		if string(id.Surface) != tc.surface {
			t.Errorf("%s: surface\n got %s\nwant %s", name, id.Surface, tc.surface)
		}
		if string(id.Params) != tc.params {
			t.Errorf("%s: params\n got %s\nwant %s", name, id.Params, tc.params)
		}
		if id.Key.Kind == exchange.LLM && (id.Usage == nil || id.ErrorBody == nil || talkOf(id).Opening.IsZero() || len(talkOf(id).Turns) == 0 && tc.endpoint != "responses.compact") {
			t.Errorf("%s: %+v", name, id)
		}
	}
}

// TestSameElsewhere changes what must not matter, one thing at a time.
func TestSameElsewhere(t *testing.T) {
	for _, tc := range []struct{ name, url, body, was, now string }{
		{"converse: cache point of a message", converseURL, converse, `,{"cachePoint":{"type":"default"}}]},`, `]},`},
		{"converse: cache point of the system", converseURL, converse, `{"text":"Be brief."},{"cachePoint":{"type":"default"}}`, `{"text":"Be brief."}`},
		{"converse: cache point of the tools", converseURL, converse, `}},{"cachePoint":{"type":"default"}}]`, `}}]`},
		{"converse: signature", converseURL, converse, "Er8B", "Zz"},
		{"converse: tool use ids", converseURL, converse, "tooluse_kZJMlvQmRJ6eAyJE5GIl7Q", "tooluse_2"},
		{"converse: metadata", converseURL, converse, "r-1", "r-2"},
		{"invoke: cache mark", invokeURL, bedrockClaude, `,"cache_control":{"type":"ephemeral"}`, ``},
		{"invoke: escape of the model", invokeURL, bedrockClaude, "", ""},
		{"code assist: prompt id", codeAssistURL, codeAssist, "s-1########0", "s-2########7"},
		{"code assist: session", codeAssistURL, codeAssist, `"session_id":"s-1"`, `"session_id":"s-2"`},
		{"code assist: project", codeAssistURL, codeAssist, "cloud-project-1", "cloud-project-2"},
		{"ollama: keep alive", ollamaURL, ollamaChat, `"5m"`, `-1`},
		{"ollama: call ids", ollamaURL, ollamaChat, "call_x1", "call_y2"},
		{"openrouter: session", openRouterURL, openRouter, `"s-1"`, `"s-2"`},
		{"openrouter: trace", openRouterURL, openRouter, `"t-1"`, `"t-2"`},
		{"openrouter: cache mark of a message", openRouterURL, openRouter, `"weather?","cache_control":{"type":"ephemeral"}`, `"weather?"`},
		{"openrouter: reasoning id", openRouterURL, openRouter, "rd-1", "rd-2"},
		{"openrouter: reasoning signature", openRouterURL, openRouter, "EqQB", "EqQC"},
		{"openrouter: sealed reasoning", openRouterURL, openRouter, "gAAA", "hAAA"},
		{"openrouter: thought signature", openRouterURL, openRouter, "Cg==", "Dg=="},
		{"openrouter: call ids that an agent made up", openRouterURL, openRouter, "call_1761234567890_ab1", "call_1769999999999_zz9"},
		{"anthropic: call ids", anthropicURL, claudeCode, "toolu_01", "made-up"},
		{"responses: call ids", responsesURL, codex, "call_1", "made-up"},
		{"count: user", countURL, `{"model":"m","messages":[],"metadata":{"user_id":"u-1"}}`, "u-1", "u-2"},
		{"count: billing line", countURL, `{"model":"m","messages":[],"system":[{"type":"text","text":"x-anthropic-billing-header: cch=1;"}]}`, "cch=1", "cch=2"},
	} {
		b := strings.ReplaceAll(tc.body, tc.was, tc.now)
		if tc.was != "" && b == tc.body {
			t.Errorf("%s: nothing was changed", tc.name)
		}
		url := tc.url
		if tc.was == "" {
			url = strings.ReplaceAll(url, "%3A", ":")
		}
		x, y := classify(t, tc.url, tc.body), classify(t, url, b)
		if x.Key != y.Key || talkOf(x).Opening != talkOf(y).Opening {
			t.Errorf("%s:\n%s\n%s", tc.name, x.Surface, y.Surface)
		}
	}
}

// TestOtherElsewhere changes what must matter, one thing at a time.
func TestOtherElsewhere(t *testing.T) {
	for _, tc := range []struct{ name, url, body, was, now string }{
		{"converse: text", converseURL, converse, "weather in Paris?", "weather in Rome?"},
		{"converse: argument named like an id", converseURL, converse, `"toolUseId":"kept"`, `"toolUseId":"other"`},
		{"converse: limit", converseURL, converse, "512", "513"},
		{"converse: system", converseURL, converse, "Be brief.", "Be long."},
		{"invoke: text", invokeURL, bedrockClaude, `"hi"`, `"ho"`},
		{"code assist: text", codeAssistURL, codeAssist, `"hi"`, `"ho"`},
		{"code assist: thinking", codeAssistURL, codeAssist, `"thinkingBudget":-1`, `"thinkingBudget":0`},
		{"code assist: model", codeAssistURL, codeAssist, "gemini-2.5-pro", "gemini-2.5-flash"},
		{"ollama: image", ollamaURL, ollamaChat, "iVBORw0KGgo=", "iVBORw0KGgp="},
		{"ollama: option", ollamaURL, ollamaChat, "8192", "4096"},
		{"ollama: argument named id", ollamaURL, ollamaChat, `"id":"kept"`, `"id":"other"`},
		{"openrouter: routing", openRouterURL, openRouter, `"order":["anthropic"]`, `"order":["google"]`},
		{"openrouter: reasoning", openRouterURL, openRouter, `"text":"I ask."`, `"text":"I guess."`},
		{"a result that belongs to another call", anthropicURL,
			`{"model":"m","messages":[{"role":"assistant","content":[{"type":"tool_use","id":"a"},{"type":"tool_use","id":"b"}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"},{"type":"tool_result","tool_use_id":"b","content":"2"}]}]}`,
			`[{"type":"tool_result","tool_use_id":"a","content":"1"},{"type":"tool_result","tool_use_id":"b","content":"2"}]`,
			`[{"type":"tool_result","tool_use_id":"b","content":"1"},{"type":"tool_result","tool_use_id":"a","content":"2"}]`},
		{"count: text", countURL, `{"model":"m","messages":[{"role":"user","content":"hi"}]}`, "hi", "ho"},
		{"count: model", countURL, `{"model":"m","messages":[]}`, `"m"`, `"n"`},
	} {
		b := strings.Replace(tc.body, tc.was, tc.now, 1)
		if b == tc.body {
			t.Errorf("%s: nothing was changed", tc.name)
		}
		if classify(t, tc.url, tc.body).Key == classify(t, tc.url, b).Key {
			t.Errorf("%s does not matter", tc.name)
		}
	}
	if classify(t, invokeURL, bedrockClaude).Key == classify(t, strings.TrimSuffix(invokeURL, "-with-response-stream"), bedrockClaude).Key {
		t.Error("a stream matches a whole answer")
	}
}

// TestLanesWithoutMessages sees calls without messages keep to lanes of their own, whatever order they come in.
func TestLanesWithoutMessages(t *testing.T) {
	const url = "https://api.openai.com/v1/embeddings"
	a, b := classify(t, url, `{"model":"m","input":["a","x"]}`), classify(t, url, `{"model":"m","input":["a","y"]}`)
	if talkOf(a).Opening == talkOf(b).Opening || len(talkOf(a).Turns) != 1 {
		t.Errorf("%s %s, %d turns", talkOf(a).Opening, talkOf(b).Opening, len(talkOf(a).Turns))
	}
	var lanes exchange.Lanes
	first, other, again := lanes.Begin(a, url), lanes.Begin(b, url), lanes.Begin(a, url)
	if first == other || again != first+"#2" {
		t.Errorf("lanes %s, %s, %s", first, other, again)
	}
}

// TestRefusalsOfPlainEndpoints sees a count of tokens that is refused get the provider's error.
func TestRefusalsOfPlainEndpoints(t *testing.T) {
	id := classify(t, countURL, `{"model":"m","messages":[]}`)
	if id.ErrorBody == nil || !strings.Contains(string(id.ErrorBody(http.StatusBadRequest, "why")), `"invalid_request_error"`) {
		t.Error("no error of the provider")
	}
	get := &exchange.Request{Method: http.MethodGet, URL: "https://api.openai.com/v1/models"}
	if id, err := llm.NewClassifier(nil).Classify(get); err != nil || id.ErrorBody != nil || id.Key.Kind != exchange.HTTP {
		t.Errorf("%+v, %v", id, err)
	}
}

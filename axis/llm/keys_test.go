package llm

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
)

// smallest are bodies with nothing in them but what an endpoint needs to be recognised. Each endpoint takes one of them.
var smallest = []string{
	`{"model":"m","messages":[]}`, `{"contents":[]}`, `{"model":"m","request":{"contents":[]}}`, `{"model":"m","input":"i"}`,
	`{"model":"m","prompt":"p"}`, `{"model":"m","message":"hi"}`, `{"model":"m","texts":[]}`, `{"content":{}}`, `{"requests":[]}`,
	`{"instances":[]}`, `{"model":"m","input":"i","generate":false}`,
}

// base returns the smallest body that an endpoint takes.
func base(t *testing.T, e *endpoint) string {
	t.Helper()
	if e.keys == invokeKeys { // with messages it is read as another protocol
		return `{"prompt":"p"}`
	}
	for _, body := range smallest {
		if _, ok := e.read(parsed(body), e.keys); ok {
			return body
		}
	}
	t.Fatalf("%s %s takes none of the smallest bodies", e.provider, e.name)
	return ""
}

// with returns a body with one more key.
func with(body, key, value string) string {
	return fmt.Sprintf(`{%q:%s,%s`, key, value, body[1:])
}

// readCanonical reads a body and returns its surface, messages included, and its parameters.
func readCanonical(t *testing.T, e *endpoint, body string) (surface, params string) {
	t.Helper()
	c, ok := e.read(parsed(body), e.keys)
	if !ok {
		t.Fatalf("%s %s does not take %s", e.provider, e.name, body)
	}
	if c.messages.Key != "" {
		c.surface = append(c.surface, c.messages)
	}
	s, p := object(c.surface...), object(c.params...)
	return string(s.Append(nil)), string(p.Append(nil))
}

// TestKeys holds every endpoint to its lists, which docs/reference/providers.md repeats: a key of the surface counts there, an
// ignored one nowhere, any other one as a parameter.
func TestKeys(t *testing.T) {
	for i := range endpoints {
		e := &endpoints[i]
		if e.read == nil {
			continue
		}
		body := base(t, e)
		surface, params := readCanonical(t, e, body)
		has := func(key string) bool { return strings.Contains(body, `"`+key+`"`) }
		for _, key := range e.keys.surface {
			if has(key) || key == "generateContentRequest" {
				continue
			}
			if s, p := readCanonical(t, e, with(body, key, `{"x":"new"}`)); s == surface || p != params {
				t.Errorf("%s %s: %s is not in the surface", e.provider, e.name, key)
			}
		}
		for _, x := range e.keys.ignored {
			if s, p := readCanonical(t, e, with(body, x.what, `"new"`)); s != surface || p != params {
				t.Errorf("%s %s: %s is not ignored: %s %s", e.provider, e.name, x.what, s, p)
			}
			if x.why == "" || slices.Contains(e.keys.surface, x.what) {
				t.Errorf("%s %s: %s is ignored without a reason, or surface too", e.provider, e.name, x.what)
			}
		}
		if s, p := readCanonical(t, e, with(body, "brand_new", "1")); s+p == surface+params {
			t.Errorf("%s %s: a key that is in no list does not count", e.provider, e.name)
		}
		if c, _ := e.read(parsed(body), e.keys); body == smallest[0] && c.messages.Key != e.keys.messages {
			t.Errorf("%s %s: messages stand under %q, the list says %q", e.provider, e.name, c.messages.Key, e.keys.messages)
		}
	}
}

// TestTable holds the table of endpoints to being whole.
func TestTable(t *testing.T) {
	for _, e := range endpoints {
		name := e.provider + " " + e.name
		if len(e.paths) == 0 || e.keys == nil || providers[e.provider].fail == nil || e.read == nil && e.form == nil {
			t.Errorf("%s: %+v", name, e)
		}
		for _, status := range []int{400, 401, 403, 404, 409, 413, 429, 500, 529} {
			if body := providers[e.provider].fail(status, `a "word" <&>`); !json.Valid(body) || !strings.Contains(string(body), `a \"word\" <&>`) {
				t.Errorf("%s: %d: %s", name, status, body)
			}
		}
		for _, p := range e.paths {
			path := strings.NewReplacer("*", "/base", "{model}", "m", "{model+}", "m/n", "{tunedModels/model}", "tunedModels/m",
				"{endpoints/model}", "endpoints/m").Replace(p.text)
			model, ok := e.match(path)
			if !ok || (model != "") != strings.Contains(p.text, "{") {
				t.Errorf("%s: %s names %q, %v", name, path, model, ok)
			}
		}
	}
	for status, want := range map[int]string{401: "authentication_error", 429: "rate_limit_error", 529: "overloaded_error", 400: "invalid_request_error"} {
		if got := string(providers[anthropic].fail(status, "")); !strings.Contains(got, want) {
			t.Errorf("%d: %s", status, got)
		}
	}
	for status, want := range map[int]string{401: "UNAUTHENTICATED", 429: "RESOURCE_EXHAUSTED", 500: "INTERNAL", 409: "FAILED_PRECONDITION"} {
		if got := string(providers[gemini].fail(status, "")); !strings.Contains(got, want) {
			t.Errorf("%d: %s", status, got)
		}
	}
}

// TestOmitted takes out of a surface, one by one, what the lists say is left out of it.
func TestOmitted(t *testing.T) {
	for _, tc := range []struct {
		name string
		read func(*canonjson.Value, *keys) (call, bool)
		keys *keys
		a, b string
	}{
		{"sealed thinking", readVertexMessages, anthropicKeys,
			`{"messages":[{"content":[{"type":"redacted_thinking","data":"a"}]}]}`, `{"messages":[{"content":[{"type":"redacted_thinking","data":"b"}]}]}`},
		{"search results", readVertexMessages, anthropicKeys,
			`{"messages":[{"content":[{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","url":"u","encrypted_content":"a"}]}]}]}`,
			`{"messages":[{"content":[{"type":"web_search_tool_result","tool_use_id":"srvtoolu_2","content":[{"type":"web_search_result","url":"u","encrypted_content":"b"}]}]}]}`},
		{"citations", readVertexMessages, anthropicKeys,
			`{"messages":[{"content":[{"type":"text","text":"t","citations":[{"url":"u","encrypted_index":"a"}]}]}]}`,
			`{"messages":[{"content":[{"type":"text","text":"t","citations":[{"url":"u","encrypted_index":"b"}]}]}]}`},
		{"token of an MCP server", readVertexMessages, anthropicKeys,
			`{"messages":[],"mcp_servers":[{"url":"u","authorization_token":"a"}]}`, `{"messages":[],"mcp_servers":[{"url":"u"}]}`},
		{"cache mark of a tool", readVertexMessages, anthropicKeys,
			`{"messages":[],"tools":[{"name":"t","cache_control":{"type":"ephemeral","ttl":"1h"}}]}`, `{"messages":[],"tools":[{"name":"t"}]}`},
		{"thought signatures of LiteLLM", readChat, chatKeys,
			`{"messages":[{"role":"assistant","provider_specific_fields":{"thought_signatures":["a"],"x":1}}]}`,
			`{"messages":[{"role":"assistant","provider_specific_fields":{"thought_signatures":["b"],"x":1}}]}`},
		{"sealed reasoning of Copilot", readChat, chatKeys,
			`{"messages":[{"role":"assistant","reasoning_opaque":"a","copilot_cache_control":{"type":"ephemeral"}}]}`, `{"messages":[{"role":"assistant"}]}`},
		{"annotations", readResponses, responsesKeys,
			`{"input":[{"role":"assistant","content":[{"type":"output_text","text":"t","annotations":[],"logprobs":[]}]}]}`,
			`{"input":[{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":"t"}]}`},
		{"sealed reasoning of Bedrock", readConverse, converseKeys,
			`{"messages":[{"content":[{"reasoningContent":{"redactedContent":"a"}}]}]}`, `{"messages":[{"content":[{"reasoningContent":{"redactedContent":"b"}}]}]}`},
		{"Nova", readInvoke, invokeKeys,
			`{"schemaVersion":"messages-v1","messages":[{"content":[{"text":"t"},{"cachePoint":{"type":"default"}}]}]}`,
			`{"schemaVersion":"messages-v1","messages":[{"content":[{"text":"t"}]}],"requestMetadata":{}}`},
		{"models that speak chat", readInvoke, invokeKeys,
			`{"messages":[{"role":"user","content":"hi"}],"user":"a"}`, `{"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}],"user":"b"}`},
		{"snake case", readGemini, geminiKeys,
			`{"contents":[],"system_instruction":{},"generation_config":{"thinking_config":{"thinkingBudget":0}}}`,
			`{"contents":[],"systemInstruction":{},"generationConfig":{"thinkingConfig":{"thinkingBudget":0}}}`},
	} {
		if a, b := canonicalCall(t, tc.read, tc.keys, tc.a), canonicalCall(t, tc.read, tc.keys, tc.b); a != b {
			t.Errorf("%s:\n%s\n%s", tc.name, a, b)
		}
	}
	if a, b := canonicalCall(t, readConverse, converseKeys, `{"promptVariables":{"a":{"text":"x"}}}`),
		canonicalCall(t, readConverse, converseKeys, `{"promptVariables":{"a":{"text":"y"}}}`); a == b {
		t.Error("the variables of a prompt that the path names do not matter")
	}
	if a, b := canonicalCall(t, readResponses, responsesKeys, `{"input":[{"type":"item_reference","id":"a"}]}`),
		canonicalCall(t, readResponses, responsesKeys, `{"input":[{"type":"item_reference","id":"b"}]}`); a == b {
		t.Error("which item is referred to does not matter")
	}
}

func canonicalCall(t *testing.T, read func(*canonjson.Value, *keys) (call, bool), k *keys, body string) string {
	t.Helper()
	c, ok := read(parsed(body), k)
	if !ok {
		t.Fatalf("%s is not taken", body)
	}
	whole := c.whole()
	return string(whole.Append(nil))
}

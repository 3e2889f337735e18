package mcptext

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestRequest(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ method, params, want string }{
		{"tools/call", `{"name":"read_file","arguments":{"path":"notes.txt"}}`, `read_file {path: "notes.txt"}`},
		{"tools/call", `{"arguments":{"a-b":[1,2.50,{"c":null}],"d":true},"_meta":{"progressToken":4},"name":"sum"}`, `sum {"a-b": [1, 2.50, {c: null}], d: true}`},
		{"tools/call", `{"name":"ping","arguments":{}}`, `ping`},
		{"tools/call", `{"name":"say","arguments":{"text":"one\ntwo \"three\" \u00e9"}}`, `say {text: "one\ntwo \"three\" é"}`},
		{"tools/list", `{"_meta":{"progressToken":0}}`, ``},
		{"tools/list", `{"cursor":"abc"}`, `{cursor: "abc"}`},
		{"tools/list", ``, ``},
		{"initialize", `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"gemini","version":"0.61.0"}}`, `gemini 0.61.0 protocol 2025-06-18`},
		{"resources/read", `{"uri":"file:///a"}`, `file:///a`},
		{"prompts/get", `{"name":"greet","arguments":{"who":"me"}}`, `greet {who: "me"}`},
		{"sampling/createMessage", `{"messages":[{"role":"user","content":{"type":"text","text":"hi"}}],"maxTokens":5}`, `user "hi"`},
		{"elicitation/create", `{"message":"Your name?","requestedSchema":{}}`, `"Your name?"`},
		{"notifications/progress", `{"progressToken":1,"progress":2,"total":5,"message":"reading"}`, `2 of 5 "reading"`},
		{"notifications/message", `{"level":"info","logger":"db","data":"ready"}`, `info db "ready"`},
		{"notifications/cancelled", `{"requestId":7,"reason":"timeout"}`, `request 7 timeout`},
		{"notifications/initialized", `{}`, ``},
		{"vendor/thing", `{"a":{"b":{"c":{"d":{"e":{"f":{"g":1}}}}}}}`, `{a: {b: {c: {d: {e: {f: {…}}}}}}}`},
	} {
		message := `{"jsonrpc":"2.0","id":1,"method":"` + tt.method + `"}`
		if tt.params != "" {
			message = `{"jsonrpc":"2.0","id":1,"method":"` + tt.method + `","params":` + tt.params + `}`
		}
		if got := Request(tt.method, []byte(message), 80); got != tt.want {
			t.Errorf("%s %s:\n%s, want\n%s", tt.method, tt.params, got, tt.want)
		}
	}
}

// TestBare: some producers keep the params and the result alone.
func TestBare(t *testing.T) {
	t.Parallel()
	asked, answered := []byte(`{"name":"echo","arguments":{"n":1}}`), []byte(`{"content":[{"type":"text","text":"one"}]}`)
	if got := Request("tools/call", asked, 80); got != "echo {n: 1}" || Subject("tools/call", asked) != "echo" {
		t.Errorf("a request reads %s, of %s", got, Subject("tools/call", asked))
	}
	if got := Answer("tools/call", answered, 80); got.Text != `"one"` {
		t.Errorf("an answer reads %s", got.Text)
	}
}

func TestAnswer(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		method, body, want string
		failed             bool
	}{
		{"tools/call", `"result":{"content":[{"type":"text","text":"alpha"}]}`, `"alpha"`, false},
		{"tools/call", `"result":{"content":[{"type":"text","text":"a"},{"type":"image","data":"AA==","mimeType":"image/png"}]}`, `"a" and 1 more`, false},
		{"tools/call", `"result":{"content":[{"type":"image","data":"AA==","mimeType":"image/png"}]}`, `image/png in base64`, false},
		{"tools/call", `"result":{"content":[{"type":"text","text":"no such file"}],"isError":true}`, `failed: "no such file"`, true},
		{"tools/call", `"result":{"content":[],"structuredContent":{"sum":3}}`, `{sum: 3}`, false},
		{"tools/call", `"error":{"code":-32602,"message":"Unknown tool: x"}`, `error -32602: Unknown tool: x`, true},
		{"tools/call", `"error":"bad"`, `error "bad"`, true},
		{"tools/call", `"error":null,"result":{}`, ``, false},
		{"tools/call", `"result":{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{}}}}`, `asks for input: elicitation/create`, false},
		{"tools/list", `"result":{"tools":[{"name":"echo"},{"name":"add"}]}`, `2 tools: echo, add`, false},
		{"tools/list", `"result":{"tools":[]}`, `0 tools`, false},
		{"roots/list", `"result":{"roots":[{"uri":"file:///w"}]}`, `1 root: file:///w`, false},
		{"initialize", `"result":{"protocolVersion":"2025-06-18","serverInfo":{"name":"files","version":"1"}}`, `files 1 protocol 2025-06-18`, false},
		{"resources/read", `"result":{"contents":[{"uri":"file:///a","text":"hi"}]}`, `"hi"`, false},
		{"resources/read", `"result":{"contents":[{"uri":"file:///a","blob":"AA=="}]}`, `file:///a in base64`, false},
		{"prompts/get", `"result":{"messages":[{"role":"user","content":{"type":"text","text":"hi"}}]}`, `user "hi"`, false},
		{"sampling/createMessage", `"result":{"role":"assistant","content":{"type":"text","text":"yes"},"model":"m"}`, `"yes" m`, false},
		{"elicitation/create", `"result":{"action":"accept","content":{"name":"x"}}`, `accept {name: "x"}`, false},
		{"tools/call", `"result":{"ok":true,"isError":false}`, `{ok: true}`, false},
		{"tools/call", `"result":{"toolResult":7}`, `{toolResult: 7}`, false},
		{"ping", `"result":{}`, ``, false},
	} {
		got := Answer(tt.method, []byte(`{"jsonrpc":"2.0","id":1,`+tt.body+`}`), 80)
		if got.Text != tt.want || got.Failed != tt.failed {
			t.Errorf("%s %s:\n%+v, want\n%s %v", tt.method, tt.body, got, tt.want, tt.failed)
		}
	}
}

func TestOtherBytes(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"": "", "hello": "hello", "\t[1,2]": "[1,2]", `"a"`: `"a"`, "{": ""} {
		if got := Answer("m", []byte(in), 40); got.Text != want || got.Failed {
			t.Errorf("%q: %+v, want %s", in, got, want)
		}
	}
}

func TestWidth(t *testing.T) {
	t.Parallel()
	long := `{"params":{"name":"w","arguments":{"text":"` + strings.Repeat("é", 1000) + `"}}}`
	for _, max := range []int{10, 40, 200} {
		got := Request("tools/call", []byte(long), max)
		if n := utf8.RuneCountInString(got); n > max || n < max-3 || !strings.Contains(got, "…") {
			t.Errorf("%d: %d characters: %s", max, n, got)
		}
	}
	if got := clip("abc", 3); got != "abc" {
		t.Error(got)
	}
}

// TestCut cuts a message at every byte: what there is is told, and no more.
func TestCut(t *testing.T) {
	t.Parallel()
	whole := `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"one \u00e9 é\n two"}],"n":[1,{"a":-2.5e3}],"isError":false}}`
	const said = `"one é é\n two"`
	for n := 1; n < len(whole); n++ {
		got := Answer("tools/call", []byte(whole[:n]), 40)
		if n > strings.Index(whole, "one") && !strings.HasPrefix(said, strings.TrimSuffix(got.Text, `"`)) || !utf8.ValidString(got.Text) || got.Failed {
			t.Errorf("%d: %s: %+v", n, whole[:n], got)
		}
		if compact := compact(value(whole[:n]), 1000); !strings.HasPrefix(compact, `{`) || !strings.HasSuffix(compact, `}`) {
			t.Errorf("%d: %s: %s", n, whole[:n], compact)
		}
	}
	if got := Answer("tools/call", []byte(whole[:80]), 40); got.Text != `"one é "` {
		t.Errorf("%s: %+v", whole[:80], got)
	}
	for cut, want := range map[string]string{
		`{"a":[1,{"b":-2.5`: `{a: [1, {}]}`, `{"a":[1,{"b":tru`: `{a: [1, {}]}`, `{"a":[1,{"b":true,`: `{a: [1, {b: true}]}`, `{"a":1,"b`: `{a: 1}`, `{"a":"x\u00`: `{a: "x"}`,
	} {
		if got := compact(value(cut), 1000); got != want {
			t.Errorf("%s: %s, want %s", cut, got, want)
		}
	}
	if got := Request("vendor/thing", []byte(`{"params":{"a":1,"_meta":{},"b":[2,3`), 80); got != "{a: 1, b: [2]}" {
		t.Error(got)
	}
}

func FuzzSaid(f *testing.F) {
	f.Add("tools/call", []byte(`{"params":{"name":"a","arguments":{"b":[1,"c"]}},"result":{"content":[{"text":"x"}]}}`))
	f.Add("tools/list", []byte(`{"result":{"tools":[{"name":1}]},"error":{"code":{}}}`))
	f.Add("sampling/createMessage", []byte(`{"params":{"messages":{}},"result":[`))
	f.Fuzz(func(t *testing.T, method string, b []byte) {
		for _, s := range []string{Request(method, b, 50), Answer(method, b, 50).Text} {
			if n := utf8.RuneCountInString(s); n > 50 {
				t.Errorf("%d characters: %q", n, s)
			}
		}
		Subject(method, b)
	})
}

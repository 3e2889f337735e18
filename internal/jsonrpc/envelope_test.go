package jsonrpc

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// TestWhatComesIn holds every frame to its answer, and sees the conversation go on after it.
func TestWhatComesIn(t *testing.T) {
	methods := handler(map[string]Handler{
		"echo": echo,
		"strict": func(_ context.Context, r *Request) (any, error) {
			var p struct{ N int }
			if err := json.Unmarshal(r.Params, &p); err != nil {
				return nil, Errorf(CodeInvalidParams, "invalid params: %v", err)
			}
			return p.N, nil
		},
	})
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	long := strings.Repeat("9", MaxID)
	tests := []struct{ name, frame, want string }{
		// Replies.
		{"id is a string", `{"jsonrpc":"2.0","id":"a","method":"echo","params":[1]}`, `{"jsonrpc":"2.0","id":"a","result":[1]}`},
		{"id has escapes", `{"jsonrpc":"2.0","id":"\u0061\n","method":"echo","params":[1]}`, `{"jsonrpc":"2.0","id":"\u0061\n","result":[1]}`},
		{"id is 0", `{"jsonrpc":"2.0","id":0,"method":"echo"}`, `{"jsonrpc":"2.0","id":0,"result":null}`},
		{"id is negative", `{"jsonrpc":"2.0","id":-1,"method":"echo"}`, `{"jsonrpc":"2.0","id":-1,"result":null}`},
		{"id is a fraction", `{"jsonrpc":"2.0","id":1.50,"method":"echo"}`, `{"jsonrpc":"2.0","id":1.50,"result":null}`},
		{"id is greater than 2^64", `{"jsonrpc":"2.0","id":123456789012345678901234567890,"method":"echo"}`, `{"jsonrpc":"2.0","id":123456789012345678901234567890,"result":null}`},
		{"id is null", `{"jsonrpc":"2.0","id":null,"method":"echo"}`, `{"jsonrpc":"2.0","id":null,"result":null}`},
		{"keys in any order", `{"params":{"a":1},"method":"echo","id":1,"jsonrpc":"2.0"}`, `{"jsonrpc":"2.0","id":1,"result":{"a":1}}`},
		{"white space", " {\n\t\"jsonrpc\" : \"2.0\" , \"id\" : 1 , \"method\" : \"echo\" , \"params\" : [ 1 ]\r\n}\n", `{"jsonrpc":"2.0","id":1,"result":[ 1 ]}`},
		{"other keys", `{"jsonrpc":"2.0","id":1,"method":"echo","trace":{"a":[1]},"x":null}`, `{"jsonrpc":"2.0","id":1,"result":null}`},
		{"no version", `{"id":1,"method":"echo"}`, `{"jsonrpc":"2.0","id":1,"result":null}`},
		{"method with escapes", `{"jsonrpc":"2.0","id":1,"method":"\u0065cho"}`, `{"jsonrpc":"2.0","id":1,"result":null}`},
		{"params are null", `{"jsonrpc":"2.0","id":1,"method":"echo","params":null}`, `{"jsonrpc":"2.0","id":1,"result":null}`},
		{"numbers are kept", `{"jsonrpc":"2.0","id":1,"method":"echo","params":[1e400,0.1000,12345678901234567890]}`, `{"jsonrpc":"2.0","id":1,"result":[1e400,0.1000,12345678901234567890]}`},
		{"nested, but not too deep", `{"jsonrpc":"2.0","id":1,"method":"echo","params":` + deep(9000) + `}`, `{"jsonrpc":"2.0","id":1,"result":` + deep(9000) + `}`},

		// Errors of the method.
		{"unknown method", `{"jsonrpc":"2.0","id":1,"method":"no\"pe"}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"unknown method: no\"pe"}}`},
		{"empty method", `{"jsonrpc":"2.0","id":1,"method":""}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,`},
		{"wrong params", `{"jsonrpc":"2.0","id":1,"method":"strict","params":{"n":"x"}}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,`},
		{"params are a number", `{"jsonrpc":"2.0","id":1,"method":"echo","params":7}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,`},
		{"params are a string", `{"jsonrpc":"2.0","id":1,"method":"echo","params":"x"}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,`},
		{"params are true", `{"jsonrpc":"2.0","id":1,"method":"echo","params":true}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,`},

		// No request.
		{"batch", `[{"jsonrpc":"2.0","id":1,"method":"echo"}]`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,`},
		{"empty batch", `[]`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,`},
		{"number", `1`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,`},
		{"string", `"echo"`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,`},
		{"null", `null`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,`},
		{"empty object", `{}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,`},
		{"no method", `{"jsonrpc":"2.0","id":1}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32600,`},
		{"method is a number", `{"jsonrpc":"2.0","id":1,"method":1}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32600,`},
		{"method is null", `{"jsonrpc":"2.0","id":1,"method":null}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32600,`},
		{"version 1", `{"jsonrpc":"1.0","id":1,"method":"echo"}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32600,`},
		{"version is a number", `{"jsonrpc":2.0,"id":1,"method":"echo"}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32600,`},
		{"id is true", `{"jsonrpc":"2.0","id":true,"method":"echo"}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,`},
		{"id is false", `{"jsonrpc":"2.0","id":false,"method":"echo"}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,`},
		{"id is an object", `{"jsonrpc":"2.0","id":{"a":1},"method":"echo"}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,`},
		{"id is a list", `{"jsonrpc":"2.0","id":[1],"method":"echo"}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,`},
		{"id is as long as it may be", `{"jsonrpc":"2.0","id":` + long + `,"method":"echo"}`, `{"jsonrpc":"2.0","id":` + long + `,"result":null}`},
		{"id is too long", `{"jsonrpc":"2.0","id":` + long + `0,"method":"echo"}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,`},
		{"id twice", `{"jsonrpc":"2.0","id":1,"method":"echo","id":2}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,`},
		{"method twice", `{"jsonrpc":"2.0","id":1,"method":"echo","method":"echo"}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32600,`},
		{"params twice, once in disguise", `{"jsonrpc":"2.0","id":1,"method":"echo","params":[],"p\u0061rams":[]}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32600,`},
		{"request and reply", `{"jsonrpc":"2.0","id":1,"method":"echo","result":1}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32600,`},
		{"result and error", `{"jsonrpc":"2.0","id":1,"result":1,"error":{"code":1,"message":""}}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32600,`},

		// No JSON.
		{"empty", ``, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,`},
		{"text", `hello`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,`},
		{"cut off", `{"jsonrpc":"2.0","id":1,"method":"echo"`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,`},
		{"two objects", `{"jsonrpc":"2.0","id":1,"method":"echo"}{}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,`},
		{"trailing comma", `{"jsonrpc":"2.0","id":1,"method":"echo",}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,`},
		{"byte order mark", "\ufeff{}", `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,`},
		{"not UTF-8", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\",\"params\":[\"\xff\"]}", `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,`},
		{"NaN", `{"jsonrpc":"2.0","id":1,"method":"echo","params":[NaN]}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,`},
		{"cut off batch", `[{"jsonrpc":"2.0"`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,`},
		{"1,000,000 brackets", `{"jsonrpc":"2.0","id":1,"method":"echo","params":` + deep(1_000_000) + `}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,`},
		{"1,000,000 brackets alone", deep(1_000_000), `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,`},
		{"1,000,000 brackets that stay open", strings.Repeat("[", 1_000_000), `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,`},
		{"1,000,000 braces", strings.Repeat(`{"a":`, 1_000_000), `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,`},

		// No answer.
		{"notification", `{"jsonrpc":"2.0","method":"echo","params":[1]}`, ""},
		{"notification of an unknown method", `{"jsonrpc":"2.0","method":"nope"}`, ""},
		{"notification with wrong params", `{"jsonrpc":"2.0","method":"echo","params":1}`, ""},
		{"reply that nobody waits for", `{"jsonrpc":"2.0","id":"cb-9","result":1}`, ""},
		{"reply whose id is a number", `{"jsonrpc":"2.0","id":9,"result":1}`, ""},
		{"reply without id", `{"jsonrpc":"2.0","error":{"code":1,"message":"x"}}`, ""},
	}
	_, f := peer(t, &Options{Handler: methods})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := far{t, f.s}
			f.send(tt.frame)
			if tt.want != "" {
				got := f.recv()
				if !strings.HasPrefix(got, tt.want) {
					t.Errorf("got %.300s\nwant %.300s", got, tt.want)
				}
				if err := jsonscan.Valid([]byte(got)); err != nil {
					t.Errorf("%.300s: %v", got, err)
				}
			}
			f.send(`{"jsonrpc":"2.0","id":"after","method":"echo","params":[2]}`)
			if got := f.recv(); got != `{"jsonrpc":"2.0","id":"after","result":[2]}` {
				t.Errorf("after it, got %.300s", got)
			}
		})
	}
}

// FuzzParse holds the envelope to encoding/json: what that does not read is a parse error, what it reads is answered with its id.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"a","params":[1]}`, `{"id":"x","result":null}`, `{"error":{"code":-1}}`, `[]`, `{`,
		`{"id":1,"id":2}`, `{"method":"\ud800"}`, "\xff",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		var m message
		var s jsonscan.Scanner
		wrong := m.parse(&s, frame)
		if valid := jsonscan.Valid(frame) == nil; valid != (wrong == nil || wrong.Code != CodeParse) {
			t.Fatalf("valid %v, parse says %v", valid, wrong)
		}
		if wrong != nil && !json.Valid(appendError(nil, m.id, wrong)) {
			t.Fatalf("the answer is no JSON: %s", appendError(nil, m.id, wrong))
		}
		if wrong != nil {
			return
		}
		var std map[string]json.RawMessage
		if err := json.Unmarshal(frame, &std); err != nil {
			t.Fatal(err)
		}
		var method string
		if m.called && (json.Unmarshal(std["method"], &method) != nil || method != m.method) {
			t.Fatalf("method %q, want %s", m.method, std["method"])
		}
		if m.id != nil && string(m.id) != string(std["id"]) || m.result != nil && string(m.result) != string(std["result"]) {
			t.Fatalf("id %s, result %s of %s", m.id, m.result, frame)
		}
		if b := appendError(nil, m.id, Errorf(1, "%s", m.method)); !json.Valid(b) {
			t.Fatalf("no JSON: %s", b)
		}
		if m.failure != nil && !json.Valid(appendError(nil, nil, parseFailure(m.failure))) {
			t.Fatalf("an error of the peer cannot be said again: %s", m.failure)
		}
	})
}

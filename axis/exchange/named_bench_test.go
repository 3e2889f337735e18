package exchange_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// callOf is a call of a model of about size bytes, with tools whose schemas name secrets and text that speaks of them.
func callOf(b testing.TB, n, size int) []byte {
	b.Helper()
	schema := json.RawMessage(`{"type":"object","properties":{"password":{"type":"string"},"api_key":{"type":"string"}},"required":["password"]}`)
	call := map[string]any{"model": "m", "max_tokens": 1024, "tools": []any{map[string]any{"name": "login", "input_schema": schema}}}
	var messages []any
	for i := 0; size > 0; i++ {
		text := fmt.Sprintf("request %d, turn %d: %s", n, i, strings.Repeat("a \"token\": of some words,\n", 40)[:min(size, 800)])
		size -= len(text) + 100
		part := map[string]any{"type": "text", "text": text}
		messages = append(messages, map[string]any{"role": "user", "content": []any{part}})
	}
	call["messages"] = messages
	body, err := json.Marshal(call)
	if err != nil {
		b.Fatal(err)
	}
	return body
}

// BenchmarkNames tells what looking at the names in a call of a model and in its answer costs: by the rules without names, and
// with them. No two calls are equal.
func BenchmarkNames(b *testing.B) {
	for _, size := range []int{2 << 10, 100 << 10} {
		for _, rules := range []int{scrub.RulesForeign, scrub.Rules} {
			b.Run(fmt.Sprintf("%dKB/rules=%d", size>>10, rules), func(b *testing.B) {
				store := cas.NewMemory()
				w, err := tape.NewWriter(new(bytes.Buffer), &tape.Header{Producer: "test"})
				if err != nil {
					b.Fatal(err)
				}
				s := scrub.New(scrub.Key{1}, &scrub.Options{Env: []string{"TEST_TOKEN=" + secret}, Rules: rules})
				tap := exchange.NewTap(tape.NewRecorder(w, &tape.RecorderOptions{Store: store}), classifier{}, s, nil)
				answer := callOf(b, 0, 1000)
				h := headers("Content-Type", "application/json")
				b.ReportAllocs()
				for n := 0; b.Loop(); n++ {
					b.StopTimer()
					body := callOf(b, n, size)
					b.StartTimer()
					o, err := tap.Begin(&exchange.Request{Method: "POST", URL: url, Header: h, Body: body})
					if err != nil {
						b.Fatal(err)
					}
					o.Response(http.StatusOK, h)
					o.Chunk(answer)
					if err := o.End(""); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

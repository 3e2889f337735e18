package llm_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/cas"
)

// FuzzClassify holds the classifier to giving every request an identity whose digests are those of what it shows, the
// same one each time.
func FuzzClassify(f *testing.F) {
	for url, body := range map[string]string{
		anthropicURL: claudeCode, chatURL: chat, responsesURL: codex, geminiURL: geminiCLI,
	} {
		f.Add(url, []byte(body))
	}
	f.Add(responsesURL, []byte(`{"input":[1,null,"x",{"role":"assistant","content":7}]}`))
	f.Add(geminiURL, []byte(`{"contents":[{"parts":{}}],"generationConfig":[],"generation_config":null}`))
	f.Add(anthropicURL, []byte(`{"model":"m","messages":[[]],"system":{"a":1},"tools":"x"}`))
	f.Fuzz(func(t *testing.T, url string, body []byte) {
		c := llm.NewClassifier(nil)
		r := &exchange.Request{Method: http.MethodPost, URL: url, Body: body}
		a, err := c.Classify(r)
		if err != nil {
			return
		}
		b, err := c.Classify(r)
		if err != nil || a.Key != b.Key || a.Opening != b.Opening {
			t.Fatalf("%+v\n%+v\n%v", a, b, err)
		}
		if a.Key.Request != cas.Sum(a.Surface) {
			t.Error("the digest is not the surface's")
		}
		if a.Key.Kind == exchange.LLM && a.Key.Params != cas.Sum(a.Params) {
			t.Error("the digest is not the parameters'")
		}
	})
}

// conversation is an Anthropic request of about size bytes, in turns of 1 KB.
func conversation(size int) []byte {
	var b strings.Builder
	b.WriteString(`{"model":"claude-sonnet-4-5","max_tokens":1024,"stream":true,"system":"You are helpful.","messages":[`)
	for i := 0; b.Len() < size; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"role":%q,"content":[{"type":"text","text":"turn %d: %s"}]}`,
			[]string{"user", "assistant"}[i%2], i, strings.Repeat("lorem ipsum dolor\\n", 50))
	}
	b.WriteString(`]}`)
	return []byte(b.String())
}

func BenchmarkClassify(b *testing.B) {
	for _, size := range []int{2 << 10, 100 << 10} {
		b.Run(fmt.Sprintf("%dKB", size>>10), func(b *testing.B) {
			r := &exchange.Request{Method: http.MethodPost, URL: anthropicURL, Body: conversation(size)}
			c := llm.NewClassifier(nil)
			b.SetBytes(int64(len(r.Body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.Classify(r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

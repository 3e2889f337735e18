package llm_test

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/scrub/masks"
)

// FuzzClassify holds the classifier to giving every request an identity whose digests are those of what it shows, the
// same one each time.
func FuzzClassify(f *testing.F) {
	for url, body := range map[string]string{
		anthropicURL: claudeCode, chatURL: chat, responsesURL: codex, geminiURL: geminiCLI,
		converseURL: converse, invokeURL: bedrockClaude, codeAssistURL: codeAssist, ollamaURL: ollamaChat, openRouterURL: openRouter,
		countURL: claudeCode,
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
		if err != nil || a.Key != b.Key || talkOf(a).Opening != talkOf(b).Opening {
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

// wordBodies are bodies of each endpoint with a word in a place where words count: %s.
var wordBodies = map[string]string{
	anthropicURL:                            `{"model":"m","system":"s","messages":[{"role":"user","content":[{"type":"text","text":%s}]}]}`,
	chatURL:                                 `{"model":"m","messages":[{"role":"user","content":"hi"},{"role":"assistant","tool_calls":[{"id":"c","function":{"arguments":%s}}]}]}`,
	responsesURL:                            `{"model":"m","input":[{"type":"function_call_output","call_id":"c","output":%s}]}`,
	geminiURL:                               `{"contents":[{"parts":[{"functionCall":{"id":"c","args":{"id":%s}}}]}]}`,
	converseURL:                             `{"messages":[{"role":"user","content":[{"text":"a"}]}],"system":[{"text":%s}]}`,
	invokeURL:                               `{"anthropic_version":"v","messages":[{"role":"user","content":%s}]}`,
	codeAssistURL:                           `{"model":"m","request":{"contents":[{"parts":[{"text":%s}]}]}}`,
	ollamaURL:                               `{"model":"m","messages":[{"role":"user","content":%s}]}`,
	countURL:                                `{"model":"m","messages":[{"role":"user","content":%s}]}`,
	"http://localhost:11434/api/generate":   `{"model":"m","prompt":"p","suffix":%s}`,
	"http://localhost:11434/api/embed":      `{"model":"m","input":["a",%s]}`,
	"https://api.openai.com/v1/embeddings":  `{"model":"m","input":%s}`,
	"https://api.openai.com/v1/completions": `{"model":"m","prompt":[%s]}`,
	"https://api.cohere.com/v2/embed":       `{"model":"m","texts":[%s]}`,
	bedrockHost + "/model/amazon.nova-lite/invoke":      `{"schemaVersion":"v","messages":[{"content":[{"text":%s}]}]}`,
	bedrockHost + "/model/x/invoke":                     `{"some":{"thing":%s}}`,
	"https://api.anthropic.com/v1/messages/batches":     `{"requests":[{"custom_id":"a","params":{"model":"m","messages":[{"content":%s}]}}]}`,
	"https://x/v1beta/models/g:countTokens":             `{"generateContentRequest":{"contents":[{"parts":[{"text":%s}]}]}}`,
	"https://x/v1beta/models/g:batchEmbedContents":      `{"requests":[{"content":{"parts":[{"text":%s}]}}]}`,
	"https://x/v1/publishers/google/models/t:predict":   `{"instances":[{"content":%s}]}`,
	"https://api.example.com/anything/else/that/is/not": `{"a":%s}`,
}

// FuzzWords changes one word of a surface: two bodies that differ in it never have the same key, at any endpoint.
func FuzzWords(f *testing.F) {
	f.Add("hello", "hello ")
	f.Add("", "#1")
	f.Add("toolu_01A09q90qw90lq917835lq9", "#2")
	f.Add("x-anthropic-billing-header: a", "x-anthropic-billing-header: b")
	f.Add("é", "e\u0301")
	f.Fuzz(func(t *testing.T, a, b string) {
		if strings.ToValidUTF8(a, "\uFFFD") == strings.ToValidUTF8(b, "\uFFFD") {
			return
		}
		if strings.Contains(a+b, "td_") {
			return // placeholders of secrets are numbered
		}
		for url, body := range wordBodies {
			x, y := classify(t, url, fmt.Sprintf(body, quoted(a))), classify(t, url, fmt.Sprintf(body, quoted(b)))
			if x.Key == y.Key {
				t.Errorf("%s: %q and %q read the same:\n%s", url, a, b, x.Surface)
			}
			if x.Key.Request != cas.Sum(x.Surface) {
				t.Errorf("%s: the digest is not the surface's", url)
			}
		}
	})
}

// quoted is a string as JSON, what is not UTF-8 replaced.
func quoted(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// FuzzMultipart holds the classifier to taking any body for what it is, whatever the header says.
func FuzzMultipart(f *testing.F) {
	r := form(f, transcribeURL, "x", speech, field{name: "model", content: "whisper-1"})
	f.Add("multipart/form-data; boundary=x", r.Body)
	f.Add("multipart/form-data; boundary=x", []byte("--x\r\n\r\n\r\n--x--"))
	f.Add("multipart/related; boundary=\"\"", []byte("--\r\n"))
	f.Fuzz(func(t *testing.T, contentType string, body []byte) {
		r := &exchange.Request{Method: http.MethodPost, URL: transcribeURL, Header: http.Header{"Content-Type": {contentType}}, Body: body}
		a, b := identify(t, nil, r), identify(t, nil, r)
		if a.Key != b.Key || a.Key.Request != cas.Sum(a.Surface) {
			t.Errorf("%+v\n%+v", a.Key, b.Key)
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

// BenchmarkClassify compares the classifier, which parses, sorts, masks and hashes, with encoding/json reading and writing
// the same body. The x-json metric is the ratio.
func BenchmarkClassify(b *testing.B) {
	for _, size := range []int{2 << 10, 100 << 10} {
		body := conversation(size)
		for name, m := range map[string]*masks.Masker{"plain": nil, "masked": masks.New(nil)} {
			b.Run(fmt.Sprintf("%dKB/%s", size>>10, name), func(b *testing.B) {
				r := &exchange.Request{Method: http.MethodPost, URL: anthropicURL, Body: body}
				c := llm.NewClassifier(m)
				b.SetBytes(int64(len(r.Body)))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := c.Classify(r); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/jsonNanos(body), "x-json")
			})
		}
	}
}

// jsonNanos is how long encoding/json takes to read a body into values and to write them again, the best of three rounds.
func jsonNanos(body []byte) float64 {
	best := math.Inf(1)
	for range 3 {
		rounds := 1 + (2<<20)/len(body)
		start := time.Now()
		for range rounds {
			var v any
			if err := json.Unmarshal(body, &v); err != nil {
				panic(err)
			}
			if _, err := json.Marshal(v); err != nil {
				panic(err)
			}
		}
		best = min(best, float64(time.Since(start).Nanoseconds())/float64(rounds))
	}
	return best
}

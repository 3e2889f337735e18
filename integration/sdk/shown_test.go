//go:build linux

package sdk

import (
	"encoding/json"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"testing"

	"github.com/tapedeck-dev/tapedeck/internal/scriptedllm"
)

// A known is a path that makes a model speak or embed, and what the tape calls it. Its group "model", where it has one,
// is the model; else the body names it.
type known struct {
	path               *regexp.Regexp
	provider, endpoint string
	free               bool // its answers need not say what they used
}

const ofGemini = `^/v1beta/models/(?P<model>[^:]+):`

var knowns = []known{
	{path: regexp.MustCompile(`^/v1/messages$`), provider: "anthropic", endpoint: "messages"},
	{path: regexp.MustCompile(`^/v1/chat/completions$`), provider: "openai", endpoint: "chat.completions"},
	{path: regexp.MustCompile(`^/v1/responses$`), provider: "openai", endpoint: "responses"},
	{path: regexp.MustCompile(`^/v1/embeddings$`), provider: "openai", endpoint: "embeddings"},
	{
		path:     regexp.MustCompile(`^/openai/deployments/(?P<model>[^/]+)/chat/completions$`),
		provider: "openai", endpoint: "chat.completions",
	},
	{
		path:     regexp.MustCompile(`^/openai/deployments/(?P<model>[^/]+)/embeddings$`),
		provider: "openai", endpoint: "embeddings",
	},
	{path: regexp.MustCompile(ofGemini + `generateContent$`), provider: "gemini", endpoint: "generateContent"},
	{path: regexp.MustCompile(ofGemini + `streamGenerateContent$`), provider: "gemini", endpoint: "streamGenerateContent"},
	{path: regexp.MustCompile(ofGemini + `embedContent$`), provider: "gemini", endpoint: "embedContent", free: true},
	{path: regexp.MustCompile(ofGemini + `batchEmbedContents$`), provider: "gemini", endpoint: "batchEmbedContents", free: true},
	{path: regexp.MustCompile(`^/api/chat$`), provider: "ollama", endpoint: "chat"},
	{path: regexp.MustCompile(`^/api/embed$`), provider: "ollama", endpoint: "embed"},
	{path: regexp.MustCompile(`^/model/(?P<model>[^/]+)/converse$`), provider: "bedrock", endpoint: "converse"},
	{path: regexp.MustCompile(`^/model/(?P<model>[^/]+)/converse-stream$`), provider: "bedrock", endpoint: "converse-stream"},
	{path: regexp.MustCompile(`^/model/(?P<model>[^/]+)/invoke$`), provider: "bedrock", endpoint: "invoke"},
	{
		path:     regexp.MustCompile(`^/model/(?P<model>[^/]+)/invoke-with-response-stream$`),
		provider: "bedrock", endpoint: "invoke-with-response-stream",
	},
}

// A naming is how a call is told from others in a list.
type naming struct {
	provider, endpoint, model string
	status                    int
	used                      bool // the answer says what it used
}

// expected is what the tape has to say of a request; ok is false for one that is plain HTTP.
func expected(q *scriptedllm.Request) (n naming, ok bool) {
	u, err := url.Parse(q.URL)
	if err != nil {
		return naming{}, false
	}
	for _, k := range knowns {
		m := k.path.FindStringSubmatch(u.Path)
		if m == nil {
			continue
		}
		n = naming{provider: k.provider, endpoint: k.endpoint, status: q.Status, used: q.Status == 200 && !k.free}
		if i := k.path.SubexpIndex("model"); i > 0 {
			n.model = m[i]
			return n, true
		}
		var body struct{ Model string }
		err := json.Unmarshal(q.Body, &body)
		n.model = body.Model
		return n, err == nil
	}
	return naming{}, false
}

// checkShown wants each request that made a model speak shown as a call with its provider, endpoint, model, status and
// usage, as often as the endpoint saw it, and nothing else.
func checkShown(t *testing.T, shown []record, asked []scriptedllm.Request) {
	t.Helper()
	want, got := make(map[naming]int), make(map[naming]int)
	for i := range asked {
		if n, ok := expected(&asked[i]); ok {
			want[n]++
		}
	}
	for _, r := range shown {
		c := r.Kind
		got[naming{c.Provider, c.Endpoint, c.Model, c.Status, len(c.Usage) > 0}]++
	}
	if len(want) == 0 {
		t.Error("the program made no model speak")
	}
	for _, n := range slices.Concat(slices.Collect(maps.Keys(want)), slices.Collect(maps.Keys(got))) {
		if want[n] != got[n] {
			t.Errorf("%+v: the tape shows %d calls, the endpoint saw %d", n, got[n], want[n])
		}
	}
}

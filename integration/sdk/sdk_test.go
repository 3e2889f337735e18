//go:build linux

package sdk

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/internal/scriptedllm"
)

// The prompt of every recording and the one that must be told from it.
const (
	prompt  = "write hello.txt with the text marigold"
	changed = "write hello.txt with the text chrysanthemum"
)

// The key of every provider, in none of the shapes that real keys have: only the name of its variable gives it away.
const key = "the-key-of-this-test-0123456789"

// An sdk is one program and what it needs.
type sdk struct {
	name   string
	hosts  []string          // that the endpoint answers for
	env    map[string]string // of the program
	scenes []string          // each replayed alone with another prompt
	argv   []string          // of the program, without flags
	open   bool              // the program sends no key: it signs its requests, or its server asks for none
}

// check records the program, replays it with the endpoint gone, and replays each scene alone with another prompt.
func (s *sdk) check(t *testing.T) {
	b := newBox(t, s.env)
	options := &scriptedllm.Options{Gzip: true, Faults: true}
	if !s.open {
		options.Key = key
	}
	said, asked := b.record(options, s.hosts, s.with("--prompt", prompt)...)
	t.Logf("%d requests", len(asked))
	if found := b.holds(key); found != nil {
		t.Errorf("the key stands in %v", found)
	}
	checkShown(t, b.calls(), asked)
	if res := b.tapedeck("verify", b.recording); res.status != 0 {
		t.Errorf("verify: %v", res)
	}

	res := b.replay()
	if res.status != 0 {
		t.Fatalf("replay: %v", res)
	}
	if res.stdout != said {
		t.Errorf("the replay printed other than the recording:\n%s\nwant:\n%s", res.stdout, said)
	}
	for _, name := range s.scenes {
		res := b.replay(s.with("--prompt", changed, "--scenes", name)...)
		if res.status != 2 || !strings.Contains(res.stderr, "marigold") || !strings.Contains(res.stderr, "chrysanthemum") {
			t.Errorf("%s with another prompt, want status 2 and both words: %v", name, res)
		}
	}
}

func (s *sdk) with(flags ...string) []string {
	return append(append([]string(nil), s.argv...), flags...)
}

// TestTransport wants the SDK's connection as it is without a recorder: HTTP/2, or HTTP/1.1 where that is all that the
// program speaks, kept from call to call, the answers compressed; and the same from the tape.
func TestTransport(t *testing.T) {
	for _, tt := range []struct{ name, debug, protocol string }{
		{"HTTP 2", "", "HTTP/2.0"},
		{"HTTP 1.1", "http2client=0", "HTTP/1.1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBox(t, map[string]string{"ANTHROPIC_API_KEY": key, "GODEBUG": tt.debug})
			said, _ := b.record(&scriptedllm.Options{Gzip: true, Key: key}, []string{"api.anthropic.com"},
				filepath.Join(built, "anthropic"), "--scenes", "transport")
			for _, line := range []string{`["` + tt.protocol + `",true,false]`, `["` + tt.protocol + `",true,true]`} {
				if !strings.Contains(said, "transport: "+line+"\n") {
					t.Errorf("want transport: %s in what the program printed:\n%s", line, said)
				}
			}
			if res := b.replay(); res.status != 0 || res.stdout != said {
				t.Errorf("replay: %v\nwant status 0 and stdout: %s", res, said)
			}
		})
	}
}

func TestGo(t *testing.T) {
	list := []sdk{
		{
			name: "anthropic", hosts: []string{"api.anthropic.com"}, env: map[string]string{"ANTHROPIC_API_KEY": key},
			scenes: []string{"conversation", "side-by-side", "stream", "thinking", "count", "upload", "retry", "batch"},
		},
		{
			name: "openai", hosts: []string{"api.openai.com"}, env: map[string]string{"OPENAI_API_KEY": key},
			scenes: []string{
				"conversation", "side-by-side", "stream", "responses", "responses-stream", "count", "embed", "upload", "retry", "batch",
			},
		},
		{
			name: "azure", hosts: []string{"scripted.openai.azure.com"}, env: map[string]string{"AZURE_OPENAI_API_KEY": key},
			scenes: []string{"conversation", "stream", "embed", "retry", "batch"},
		},
		{
			name: "genai", hosts: []string{"generativelanguage.googleapis.com"}, env: map[string]string{"GEMINI_API_KEY": key},
			// Not upload: the SDK tries a refused one three times, seven seconds in all.
			scenes: []string{"conversation", "side-by-side", "stream", "thinking", "count", "embed", "retry", "batch"},
		},
		{
			name: "bedrock", hosts: []string{"bedrock-runtime.us-east-1.amazonaws.com"}, open: true,
			env:    map[string]string{"AWS_ACCESS_KEY_ID": "AKIDTHISTEST", "AWS_SECRET_ACCESS_KEY": key},
			scenes: []string{"conversation", "stream", "invoke", "invoke-stream", "embed", "retry", "batch"},
		},
	}
	for _, s := range list {
		s.argv = []string{filepath.Join(built, s.name)}
		t.Run(s.name, s.check)
	}
}

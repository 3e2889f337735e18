package fidelity

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// TestAskedBeforeCame: of two exchanges that differ, what was asked for is listed before what came of it.
func TestAskedBeforeCame(t *testing.T) {
	a, b := call("llm:a", 1, "one", "x"), call("llm:a", 1, "two", "y")
	a.Usage, b.Usage, b.URL = json.RawMessage(`{"in":1}`), json.RawMessage(`{"in":2}`), "https://api.test/v2"
	b.RequestHeaders = []tape.HeaderField{{Name: "A", Value: "b"}}
	r := mustCompare(t, Semantic, tapeOf(a), tapeOf(b))
	want := []Category{"llm_url", LLMRequestDigest, "llm_request_headers", LLMResponseHash, "llm_usage"}
	if got := categories(r); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestNearestOfAnotherKind: a call whose path changed, so that it reads as no model call any more, is held against the one in
// whose place it came; one of its own kind goes before.
func TestNearestOfAnotherKind(t *testing.T) {
	asked := get("https://api.test/v1/mesages", 1, 0)
	asked.Method, asked.Lane, asked.Error, asked.Status = "POST", laneUnmatched, "not on the tape", 400
	asked.RequestPayload = inline(`{"prompt":"hi"}`)
	model := call("llm:a", 1, `{"prompt":"hi"}`, "x")
	plain := get("https://api.test/other", 2, 200)
	for name, c := range map[string]struct {
		recorded []tape.Kind
		nearest  uint64
	}{
		"a model call alone":        {[]tape.Kind{model}, 0},
		"a plain request beside it": {[]tape.Kind{model, plain}, 1},
	} {
		r := compareLanes(t, Semantic, c.recorded, []tape.Kind{asked}, nil)
		d := r.Divergences[0]
		if d.Nearest == nil || *d.Nearest != c.nearest || d.Changes[0].Path != "method" && d.Changes[0].Path != "url" {
			t.Errorf("%s: %+v", name, d)
		}
		if text := textOf(t, r, nil); strings.Contains(text, "an extra call") {
			t.Errorf("%s: it reads as an extra call:\n%s", name, text)
		}
	}
}

// TestNearestOfAnotherModel: a model whose name the URL holds by chance, as "m" of completions, is told like any other.
func TestNearestOfAnotherModel(t *testing.T) {
	recorded := call("llm:a", 1, `{"prompt":"hi"}`, "x")
	recorded.URL, recorded.Model = "https://api.test/v1/chat/completions", "m"
	asked := call(laneUnmatched, 1, `{"prompt":"hi"}`, "")
	asked.URL, asked.Model, asked.Error, asked.Status = recorded.URL, "m2", "not on the tape", 400
	r := compareLanes(t, Semantic, []tape.Kind{recorded}, []tape.Kind{asked}, nil)
	if d := r.Divergences[0]; d.Nearest == nil || len(d.Changes) != 1 || d.Changes[0].Path != "model" || d.Changes[0].Now != `"m2"` {
		t.Errorf("%+v", d)
	}
}

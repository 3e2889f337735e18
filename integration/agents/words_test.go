//go:build agents

package agents

import (
	"bytes"
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/integration/run"
	"github.com/tapedeck-dev/tapedeck/internal/scriptedllm"
	"github.com/tapedeck-dev/tapedeck/scrub/masks"
)

// silentKeys are those below which nothing that an agent says to its model stands: names of sessions and calls, books, caches.
var silentKeys = []string{
	"client_metadata", "metadata", "prompt_cache_key", "id", "call_id", "tool_call_id", "tool_use_id", "previous_response_id", "turn_id", "cache_control",
	"encrypted_content", "signature", "thoughtSignature", "status",
}

// everyWordCounts changes words of the requests that an agent really sent, one at a time, in its prompt, its system text, its
// tools and their results: none of these may compare as the request that it was.
func everyWordCounts(t *testing.T, b *run.Box, r *Recipe, requests []scriptedllm.Request) {
	t.Helper()
	c := llm.NewClassifier(masks.New(&masks.Options{Home: b.Home, WorkTree: b.Work}))
	changed := 0
	for _, q := range requests {
		if q.Provider == "" || q.Status != 200 {
			continue
		}
		req := exchange.Request{Method: q.Method, URL: "https://" + r.Host + q.URL, Header: q.Header, Body: q.Body}
		if q.Method == http.MethodGet { // a turn over a WebSocket
			req.URL = "wss://" + r.Host + q.URL
		}
		was := keyOf(t, c, &req)
		for _, l := range leaves(t, q.Body) {
			if strings.HasPrefix(l.path, ".tools") && warmsUp(q.Body) {
				continue // the turn after it declares them all
			}
			for _, word := range someWords(l.text) {
				l.set(l.text[:word[0]] + "tangerine" + l.text[word[1]:])
				req.Body = l.encode(t)
				if keyOf(t, c, &req) == was {
					t.Errorf("%s: %q at %s may read otherwise and is not told apart", q.URL, l.text[word[0]:word[1]], l.path)
				}
				changed++
			}
			l.set(l.text)
		}
	}
	if changed < 100 {
		t.Errorf("%d words were changed, want some hundred", changed)
	}
}

// warmsUp reports whether a request over a WebSocket asks for no answer yet.
func warmsUp(body []byte) bool {
	var r struct {
		Generate *bool `json:"generate"`
	}
	return json.Unmarshal(body, &r) == nil && r.Generate != nil && !*r.Generate
}

func keyOf(t *testing.T, c *llm.Classifier, r *exchange.Request) exchange.Key {
	t.Helper()
	id, err := c.Classify(r)
	if err != nil {
		t.Fatal(err)
	}
	return id.Key
}

var wordRE = regexp.MustCompile(`[A-Za-z]{5,}`)

// someWords returns where the first, the middle and the last word of a text stand, and that which names the file's content.
func someWords(text string) [][]int {
	all := slices.DeleteFunc(wordRE.FindAllStringIndex(text, -1), func(w []int) bool { return inID(text, w[0]) })
	if len(all) == 0 {
		return nil
	}
	some := [][]int{all[0], all[len(all)/2], all[len(all)-1]}
	for _, w := range all {
		if word := text[w[0]:w[1]]; word == "marigold" || word == "gardener" {
			some = append(some, w)
		}
	}
	return some
}

// inID reports whether what stands at a place of a text is a piece of a made-up id, which another id may take the place of: letters by
// chance are no word.
func inID(text string, at int) bool {
	part := func(r rune) bool { return r != '-' && r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }
	begin := strings.LastIndexFunc(text[:at], part) + 1
	token := text[begin:]
	if end := strings.IndexFunc(token, part); end >= 0 {
		token = token[:end]
	}
	return len(token) >= 12 && strings.ContainsAny(token, "0123456789")
}

// A leaf is one string of a JSON body that can be changed.
type leaf struct {
	path, text string
	set        func(string)
	whole      any
}

func (l *leaf) encode(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(l.whole); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// leaves returns the strings of a body but for those below silentKeys.
func leaves(t *testing.T, body []byte) []*leaf {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	var whole any
	if err := dec.Decode(&whole); err != nil {
		t.Fatal(err)
	}
	var out []*leaf
	var walk func(v any, path string, set func(any))
	walk = func(v any, path string, set func(any)) {
		switch v := v.(type) {
		case string:
			out = append(out, &leaf{path: path, text: v, set: func(s string) { set(s) }, whole: whole})
		case []any:
			for i := range v {
				walk(v[i], path+"["+strconv.Itoa(i)+"]", func(x any) { v[i] = x })
			}
		case map[string]any:
			for key := range v {
				if !slices.Contains(silentKeys, key) {
					walk(v[key], path+"."+key, func(x any) { v[key] = x })
				}
			}
		}
	}
	walk(whole, "", func(any) {})
	return out
}

package foreign

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"
)

// yamlNode parses a text.
func yamlNode(text string) (*node, error) { return parseYAML([]byte(text)) }

// plain turns a node into what a YAML library would give, all scalars as texts.
func plain(n *node) any {
	switch n.kind {
	case nullNode:
		return ""
	case scalarNode:
		return string(n.text)
	case listNode:
		out := []any{}
		for _, v := range n.items {
			out = append(out, plain(v))
		}
		return out
	}
	out := map[string]any{}
	for i, k := range n.keys {
		out[k] = plain(n.items[i])
	}
	return out
}

func TestYAML(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       any
	}{
		{"plain", "a: b c\nd:\ne: ~\n", map[string]any{"a": "b c", "d": "", "e": ""}},
		{"plain lines", "a: one\n  two\n\n  three # no\nb: x#y\n", map[string]any{"a": "one two\nthree", "b": "x#y"}},
		{"list at the key", "a:\n- 1\n- b: 2\n  c: 3\n-\n  - x\nd: e\n", map[string]any{"a": []any{"1", map[string]any{"b": "2", "c": "3"}, []any{"x"}}, "d": "e"}},
		{"compact lists", "- - a\n  - b\n- c\n", []any{[]any{"a", "b"}, "c"}},
		{"single", "a: 'it''s\n\n  so \\n'\n'k: 1': v\n", map[string]any{"a": "it's\nso \\n", "k: 1": "v"}},
		{"double", `a: "x\ty\
      \ z
      end\u00e9\U0001F600\x41"` + "\n", map[string]any{"a": "x\ty z endé😀A"}},
		{"double breaks", "a: \"one \n\n   two\\n\\\n   three\"\n", map[string]any{"a": "one\ntwo\nthree"}},
		{"literal", "a: |\n  x\n   y\n\n  z\n\nb: |-\n  q\nc: |+\n  r\n\nd: e\n", map[string]any{"a": "x\n y\n\nz\n", "b": "q", "c": "r\n\n", "d": "e"}},
		{"literal with a number", "a: |2-\n    x\n  y\n", map[string]any{"a": "  x\ny"}},
		{"folded", "a: >\n  x\n  y\n\n  z\n    more\n  w\n", map[string]any{"a": "x y\nz\n  more\nw\n"}},
		{"empty literal", "a: |\nb: |+\n\nc: d\n", map[string]any{"a": "", "b": "\n", "c": "d"}},
		{"list of literals", "a:\n- |-\n  x: y\n  # no comment\n- z\n", map[string]any{"a": []any{"x: y\n# no comment", "z"}}},
		{"binary", "a: !!binary |\n  aGVs\n  bG8=\nb: !binary aGVsbG8=\nc: !!binary \"/w==\"\n", map[string]any{"a": "hello", "b": "hello", "c": "\xff"}},
		{"tags", "a: !!str\nb: !ruby/string x\nc: !!map\n  d: e\n", map[string]any{"a": "", "b": "x", "c": map[string]any{"d": "e"}}},
		{"anchors", "a: &1 text\nb: *1\nc: &x\n- y\nd: *x\n", map[string]any{"a": "text", "b": "text", "c": []any{"y"}, "d": []any{"y"}}},
		{"flow", "a: {}\nb: []\nc: [x, 'y, z', {k: v, \"q\": [1]}]\nd: {a: 'http://x/?y=1'}\n",
			map[string]any{"a": map[string]any{}, "b": []any{}, "c": []any{"x", "y, z", map[string]any{"k": "v", "q": []any{"1"}}}, "d": map[string]any{"a": "http://x/?y=1"}}},
		{"long keys", "? \"a\\\n  b\"\n: - x\n? c\n: d\ne: f\n", map[string]any{"ab": []any{"x"}, "c": "d", "e": "f"}},
		{"keys", ":authority: x\na:b: c\n\"q\\\"\": d\n", map[string]any{":authority": "x", "a:b": "c", "q\"": "d"}},
		{"CRLF", "a: |\r\n  x\r\n  y\r\nb: \"p\r\n  q\"\r\nc: r\r\n  s\r\n", map[string]any{"a": "x\ny\n", "b": "p q", "c": "r s"}},
		{"comments", "# one\na: b # two\n  # three\nc:   # four\n  d: e\n", map[string]any{"a": "b", "c": map[string]any{"d": "e"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			n, err := yamlNode(c.text)
			if err != nil {
				t.Fatal(err)
			}
			if got := plain(n); !reflect.DeepEqual(got, c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestYAMLErrors(t *testing.T) {
	for text, want := range map[string]string{
		"a: b\na: c\n":                    "stands twice",
		"a: *no\n":                        "unknown anchor 'no'",
		"<<: x\n":                         "merge key",
		"a: \"x\n":                        "end of stream",
		"a: \"\\q\"\n":                    "unknown escape",
		"a: [1\n":                         "did not find expected ','",
		"a: b\n  c: d\n":                  "",
		"a: 'b' c\n":                      "did not find expected key",
		"a: !!binary '*'\n":               "no base64",
		"? [a]\n: b\n":                    "collection as a key",
		"a:\n  b: c\n    d: e\n":          "",
		"a: |x\n":                         "did not find expected comment",
		strings.Repeat("- ", 300) + "a\n": "too deep",
		"a: " + strings.Repeat("[", 300) + strings.Repeat("]", 300): "too deep",
		"a: &x [*x]\n":      "is within what it means",
		"a: b\n---\nc: d\n": "a second one",
		"- a\n b: c\n":      "",
		"a: @b\n":           "cannot start any token",
	} {
		_, err := yamlNode(text)
		if err == nil && want != "" || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", text, err, want)
		}
	}
}

// TestAnchorsOfEarlierItems: an alias may mean what stands in an item before, as VCR's do.
func TestAnchorsOfEarlierItems(t *testing.T) {
	n, err := yamlNode("- a: &1 one\n  b: *1\n- a: *1\n  b: &2 [x, *1]\n  c: '*2'\n- a: &1 two\n  b: [*1, *2]\n- a: *1\n")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(plain(n)), "[map[a:one b:one] map[a:one b:[x one] c:*2] map[a:two b:[two [x one]]] map[a:two]]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if _, err := yamlNode("- a: &1 x\n- a: *1\n  b: *3\n"); err == nil || !strings.Contains(err.Error(), "unknown anchor '3'") {
		t.Error(err)
	}
}

// TestYAMLAsGo holds what is made of the library's tree to what go-yaml, which go-vcr uses, writes.
func TestYAMLAsGo(t *testing.T) {
	piece := rapid.SampledFrom([]string{"a", " ", "\n", "\n\n", ": ", "#", " #", "- ", "'", "\"", "\\", "\t", "é", "😀", "\u2028", "\x00", "\u0085",
		"{", "}", "[", "]", ",", "&x", "*x", "!", "|", ">", "%", "@", "`", "~", "null", "1", "true", "long words to be folded when they are many ", "\r", "\r\n", "\ufeff", "\u00a0", "\x7f", "?", "---", "..."})
	text := rapid.Custom(func(t *rapid.T) string { return strings.Join(rapid.SliceOfN(piece, 0, 40).Draw(t, "pieces"), "") })
	rapid.Check(t, func(t *rapid.T) {
		type item struct {
			Body    string              `yaml:"body"`
			Headers map[string][]string `yaml:"headers"`
			Bytes   string              `yaml:"bytes"`
			Code    int                 `yaml:"code"`
		}
		in := item{Body: text.Draw(t, "body"), Headers: map[string][]string{}, Bytes: string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")), Code: 200}
		for range rapid.IntRange(0, 3).Draw(t, "headers") {
			in.Headers[text.Draw(t, "name")] = rapid.SliceOfN(text, 1, 3).Draw(t, "values")
		}
		var b bytes.Buffer
		enc := yaml.NewEncoder(&b)
		enc.SetIndent(rapid.IntRange(2, 4).Draw(t, "indent"))
		if err := enc.Encode([]item{in}); err != nil {
			t.Fatal(err)
		}
		var back []item
		if err := yaml.Unmarshal(b.Bytes(), &back); err != nil || !reflect.DeepEqual(back[0], in) {
			t.Skip("go-yaml does not read what it wrote")
		}
		n, err := yamlNode(b.String())
		if err != nil {
			t.Fatalf("%v\n%s", err, b.String())
		}
		v := n.items[0]
		if got := v.at("body").string(); got != in.Body {
			t.Fatalf("body %q, want %q\n%s", got, in.Body, b.String())
		}
		if got := v.at("bytes").string(); got != in.Bytes {
			t.Fatalf("bytes %q, want %q\n%s", got, in.Bytes, b.String())
		}
		h := v.at("headers")
		if len(h.keys) != len(in.Headers) {
			t.Fatalf("headers %q\n%s", h.keys, b.String())
		}
		for i, k := range h.keys {
			for j, one := range h.items[i].items {
				if one.string() != in.Headers[k][j] {
					t.Fatalf("%q: %q, want %q\n%s", k, one.string(), in.Headers[k][j], b.String())
				}
			}
		}
	})
}

package sessionlog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"
)

func markdownOf(t interface{ Fatalf(string, ...any) }, log [][]byte, o *MarkdownOptions) string {
	var b bytes.Buffer
	m := NewMarkdown(&b, o)
	for _, e := range log {
		if err := m.Add(e); err != nil {
			t.Fatalf("%s: %v", e, err)
		}
	}
	if err := m.Close(); err != nil {
		t.Fatalf("%v", err)
	}
	return b.String()
}

// TestMarkdown holds what people read against testdata/session.md, which UPDATE=1 writes again.
func TestMarkdown(t *testing.T) {
	log := events(string(readFile(t, filepath.Join("testdata", "session.jsonl"))))
	got := markdownOf(t, log, &MarkdownOptions{MaxText: 200, Title: "A session_of *mine*"})
	golden := filepath.Join("testdata", "session.md")
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want := string(readFile(t, golden)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// outside returns the lines that stand in no fence, as CommonMark has it.
func outside(t interface{ Fatalf(string, ...any) }, doc string) (lines []string) {
	open := ""
	for line := range strings.Lines(doc) {
		line = strings.TrimSuffix(line, "\n")
		marks := line[:len(line)-len(strings.TrimLeft(line, "`"))]
		switch {
		case open == "" && len(marks) >= 3 && !strings.Contains(line[len(marks):], "`"):
			open = marks
		case open != "" && len(marks) >= len(open) && strings.TrimSpace(line[len(marks):]) == "":
			open = ""
		case open == "":
			lines = append(lines, line)
		}
	}
	if open != "" {
		t.Fatalf("a fence does not end:\n%s", doc)
	}
	return lines
}

// TestMarkdownHolds: whatever a log says, none of it is outside its fence or its span, and no control character passes.
func TestMarkdownHolds(t *testing.T) {
	pieces := []string{"`", "```", "````\n", "\n```\n# EVIL\n", "\n\n# EVIL", "\x1b[2J", "\u202e", "\r\n", "EVIL", " ", "|", "](http://EVIL)", "<script>EVIL", "ä"}
	text := rapid.Custom(func(t *rapid.T) string {
		s := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 8).Draw(t, "pieces"), "")
		b, _ := json.Marshal(s)
		return string(b)
	})
	rapid.Check(t, func(t *rapid.T) {
		s := func() string { return text.Draw(t, "text") }
		log := [][]byte{
			fmt.Appendf(nil, `{"kind":"run_started","run_id":%s,"goal":%s,"criteria":[%s],"agent_id":%s,"system_prompt":%s}`, s(), s(), s(), s(), s()),
			fmt.Appendf(nil, `{"kind":"llm_completed","turn":1,"message":{"content":[{"type":"text","text":%s},{"type":%s,"x":%s},%s]}}`, s(), s(), s(), s()),
			fmt.Appendf(nil, `{"kind":"tool_requested","turn":1,"calls":[{"id":%s,"name":%s,"arguments":{%q:%s}},{"id":"b","name":"x","arguments":%s}]}`, s(), s(), "k", s(), s()),
			fmt.Appendf(nil, `{"kind":"tool_completed","turn":1,"results":[{"call_id":%s,"output":%s,"is_error":true},{"call_id":"b","output":{"a":%s}}]}`, s(), s(), s()),
			fmt.Appendf(nil, `{"kind":"tool_denied","turn":1,"call_id":%s,"tool_name":%s,"reason":%s}`, s(), s(), s()),
			fmt.Appendf(nil, `{"kind":%s,"turn":1,%s:%s}`, s(), `"new"`, s()),
			fmt.Appendf(nil, `{"kind":"suspended","turn":2,"reason":%s,"pending_calls":[%s]}`, s(), s()),
			fmt.Appendf(nil, `{"kind":"run_terminal","reason":%s}`, s()),
		}
		doc := markdownOf(t, log, &MarkdownOptions{MaxText: rapid.SampledFrom([]int{-1, 8, 40}).Draw(t, "max")})
		if i := strings.IndexFunc(doc, func(r rune) bool {
			return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r))
		}); i >= 0 {
			t.Fatalf("%q is in the document", doc[i:min(len(doc), i+8)])
		}
		for _, line := range outside(t, doc) {
			if evil := strings.Index(withoutSpans(line), "EVIL"); evil >= 0 {
				t.Fatalf("%q stands outside of spans in\n%s", line, doc)
			}
		}
	})
}

// withoutSpans takes the spans of code out of a line: a run of backticks up to the next of the same length.
func withoutSpans(line string) string {
	var out strings.Builder
	for line != "" {
		i := strings.IndexByte(line, '`')
		if i < 0 {
			break
		}
		out.WriteString(line[:i])
		line = line[i:]
		n := len(line) - len(strings.TrimLeft(line, "`"))
		end := n
		for end < len(line) {
			j := strings.IndexByte(line[end:], '`')
			if j < 0 {
				end = len(line)
				break
			}
			end += j
			m := len(line[end:]) - len(strings.TrimLeft(line[end:], "`"))
			end += m
			if m == n {
				break
			}
		}
		line = line[end:]
	}
	return out.String() + line
}

func TestShorten(t *testing.T) {
	for _, tt := range []struct {
		s    string
		max  int
		head string
		left int
		tail string
	}{
		{"short", 10, "short", 0, ""},
		{"abcdefghijkl", 8, "abcdef", 4, "kl"},
		{"ääääääääää", 9, "äää", 12, "ä"},
		{"line one\nline two\nline three\nline four\nend\n", 24, "line one\nline two\n", 21, "end\n"},
		{"any length", -1, "any length", 0, ""},
	} {
		head, left, tail := shorten(tt.s, tt.max)
		if head != tt.head || left != tt.left || tail != tt.tail {
			t.Errorf("%q to %d: %q, %d, %q", tt.s, tt.max, head, left, tail)
		}
	}
}

func TestSummarize(t *testing.T) {
	for event, want := range map[string]string{
		`{"kind":"run_started","goal":"do\n  it"}`:                                                           "run_started|do it",
		`{"kind":"llm_completed","turn":1,"message":{"content":"hm","tool_calls":[{"id":"a","name":"ls"}]}}`: "llm_completed|hm · calls ls",
		`{"kind":"tool_completed","results":[{"call_id":"a","output":"no","is_error":true}]}`:                "tool_completed|a: error: no",
		`{"kind":"tool_gated","turn":2,"category":"syscall","call_id":"c1","tool":"rm","reason":""}`:         "tool_gated|call_id c1, tool rm",
		`{"kind":"new","n":1e400,"list":[1, 2],"none":null,"at":{}}`:                                         "new|n 1e400, list [1,2]",
		`[]`: "|",
	} {
		kind, text := Summarize([]byte(event))
		if got := string(kind) + "|" + text; got != want {
			t.Errorf("%s: %s, want %s", event, got, want)
		}
	}
}

package sessionlog

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// A part is one piece of a content: text, or JSON of a block that is not text.
type part struct {
	label string // what it is, where it is not what was said
	lang  string
	text  string
}

// partsOf takes a content apart: a string is one text; of a list of blocks those with a text are text, others their JSON.
func partsOf(content json.RawMessage) (parts []part) {
	if len(content) == 0 || content[0] == 'n' {
		return nil
	}
	if text, isText := jsonText(content); isText {
		if text == "" {
			return nil
		}
		return []part{{lang: "text", text: text}}
	}
	if content[0] != '[' {
		return []part{{lang: "json", text: indented(content)}}
	}
	var s jsonscan.Scanner
	s.Reset(content)
	for s.Begin('['); s.More(']'); {
		parts = append(parts, partOf(s.Raw()))
	}
	return parts
}

// partOf reads one block.
func partOf(block json.RawMessage) part {
	if text, isText := jsonText(block); isText {
		return part{lang: "text", text: text}
	}
	var b struct {
		Type     string  `json:"type"`
		Text     *string `json:"text"`
		Thinking *string `json:"thinking"`
	}
	if json.Unmarshal(block, &b) == nil {
		switch {
		case b.Thinking != nil:
			return part{"Thoughts", "text", *b.Thinking}
		case b.Text != nil && (b.Type == "thinking" || b.Type == "reasoning"):
			return part{"Thoughts", "text", *b.Text}
		case b.Text != nil:
			return part{lang: "text", text: *b.Text}
		}
	}
	return part{lang: "json", text: indented(block)}
}

// jsonText returns what a JSON string holds.
func jsonText(v json.RawMessage) (string, bool) {
	if len(v) == 0 || v[0] != '"' {
		return "", false
	}
	var s jsonscan.Scanner
	s.Reset(v)
	return s.Text(), s.Err() == nil
}

func indented(v json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, v, "", "  ") != nil {
		return string(v)
	}
	return b.String()
}

// Summarize returns an event's kind and, for people, what it says, in one line. It is text of the log: who shows it passes it
// through package visible. Of what is no event there is nothing to say.
func Summarize(event []byte) (kind Kind, text string) {
	if e, err := ParseEvent(event); err == nil {
		if text, ok := summary(e); ok {
			return KindOf(e), text
		}
	}
	var s jsonscan.Scanner
	var fields []string
	s.Reset(event)
	for s.Begin('{'); s.More('}'); {
		switch key := string(s.Key()); key {
		case "kind":
			if s.Peek() == '"' {
				kind = Kind(s.TextBytes())
			} else {
				s.Skip()
			}
		case "turn", "category", "primitive", "tape_seq":
			s.Skip()
		default:
			if v := summaryValue(s.Raw()); v != "" {
				fields = append(fields, key+" "+v)
			}
		}
	}
	return kind, strings.Join(fields, ", ")
}

// summaryValue is a field's value; nothing for one that is empty.
func summaryValue(v json.RawMessage) string {
	text, isText := jsonText(v)
	switch {
	case isText:
		return brief(text)
	case string(v) == "null" || string(v) == "[]" || string(v) == "{}":
		return ""
	}
	var b bytes.Buffer
	if json.Compact(&b, v) != nil {
		return brief(string(v))
	}
	return brief(b.String())
}

// summary is what the events of a conversation say.
func summary(e Event) (string, bool) {
	switch e := e.(type) {
	case *RunStarted:
		return brief(e.Goal), true
	case *LLMCompleted:
		return joined(contentText(e.Said().Content), callNames(e.Said().ToolCalls)), true
	case *ToolRequested:
		var all []string
		for _, c := range e.Calls {
			all = append(all, strings.TrimSpace(c.Name+" "+brief(string(c.Arguments))+" "+c.ID))
		}
		return strings.Join(all, "; "), true
	case *ToolCompleted:
		var all []string
		for _, r := range e.Results {
			failed := ""
			if r.IsError {
				failed = "error: "
			}
			all = append(all, r.CallID+": "+failed+contentText(r.Output))
		}
		return strings.Join(all, "; "), true
	case *RunTerminal:
		return e.Reason + ", " + many(e.TurnsUsed, "turn") + tokensOf(e.TotalTokens), true
	}
	return "", false
}

func callNames(calls []ToolCall) string {
	var names []string
	for _, c := range calls {
		names = append(names, c.Name)
	}
	if len(names) == 0 {
		return ""
	}
	return "calls " + strings.Join(names, ", ")
}

func contentText(content json.RawMessage) string {
	var all []string
	for _, p := range partsOf(content) {
		all = append(all, brief(p.text))
	}
	return strings.Join(all, " ")
}

func joined(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + " · " + b
}

// maxBrief is how much of one text stands in a line, in characters.
const maxBrief = 120

// brief is the beginning of a text, its white space made single spaces.
func brief(s string) string {
	if len(s) > 64*maxBrief { // no more is looked at
		s = strings.ToValidUTF8(s[:64*maxBrief], "") + "…"
	}
	s = strings.Join(strings.Fields(s), " ")
	n := 0
	for i := range s {
		if n++; n > maxBrief {
			return strings.TrimSuffix(s[:i], "…") + "…"
		}
	}
	return s
}

// tokensOf is how many tokens a run took, nothing where nobody counted them.
func tokensOf(n int64) string {
	if n == 0 {
		return ""
	}
	return ", " + many(int(n), "token")
}

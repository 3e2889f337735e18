package llm

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// A node is one object of a conversation in any provider's form: a message, an item, a part of a content, a call of a tool or what it gave.
// The providers share most names, and one that two of them use means the same or nearly so.
type node struct {
	Raw       []byte   `json:"*"`
	Kind      string   `json:"type"`
	Role      string   `json:"role"`
	Index     blockKey `json:"index"`
	ID        string   `json:"id"`
	Of        string   `json:"call_id|tool_use_id|tool_call_id|toolUseId"` // of a call and of its result
	Name      string   `json:"name|tool_name"`
	Text      []byte   `json:"text|refusal|transcript"`
	Thinking  []byte   `json:"thinking|reasoning_content|reasoning|tool_plan"`
	Thought   bool     `json:"thought"` // the text is one
	Signature []byte   `json:"signature|thoughtSignature|thought_signature"`
	Content   []byte   `json:"content|parts"`
	Calls     []byte   `json:"tool_calls"`
	Arguments []byte   `json:"arguments|args|parameters|action|operation"`
	Input     []byte   `json:"input"`
	Output    []byte   `json:"output|outputs"`
	Response  []byte   `json:"response"` // Gemini's output
	Status    string   `json:"status"`
	Failed    bool     `json:"is_error"`
	Marks     []byte   `json:"citations|annotations"`
	Summary   []byte   `json:"summary"`
	Details   []byte   `json:"reasoning_details"`
	Images    []byte   `json:"images"`

	// What stands under a key of its own.
	Call       []byte `json:"functionCall|function_call|function|custom"`
	ToolUse    []byte `json:"toolUse"`
	Result     []byte `json:"functionResponse|function_response|toolResult"`
	Reasoning  []byte `json:"reasoningContent|reasoningText"`
	CachePoint []byte `json:"cachePoint"`
}

func nodeOf(raw []byte) (n node) {
	fill(raw, &n)
	return n
}

// partOf returns the block that a part of a content, or an item, is.
func isResult(raw []byte) bool { return partOf(raw).kind == resultKind }

func partOf(raw []byte) *block {
	n := nodeOf(raw)
	return n.block()
}

// callOf returns the call that raw is.
func callOf(raw []byte) *block {
	n := nodeOf(raw)
	return n.call()
}

// block returns what a node says, told by its type or by what stands in it.
func (n *node) block() *block {
	text := textIn(n.Text)
	switch {
	case isObject(n.Call), isObject(n.ToolUse), n.Kind == "tool_use", n.Of != "" && strings.HasSuffix(n.Kind, "_call"):
		return n.call()
	case isObject(n.Result):
		inner := nodeOf(n.Result)
		inner.Of = cmp.Or(inner.Of, inner.ID)
		return inner.result()
	case n.Kind == "tool_result", n.Of != "" && strings.HasSuffix(n.Kind, "_output"):
		return n.result()
	case n.CachePoint != nil:
		return &block{kind: markKind}
	case n.Reasoning != nil:
		b := partOf(n.Reasoning)
		return &block{kind: thoughtKind, text: b.text, sign: b.sign, raw: n.Raw}
	}
	b := &block{kind: otherKind, raw: n.Raw}
	if isText(n.Signature) && len(n.Signature) > len(noText) {
		b.sign = n.Signature
	}
	switch {
	case n.Kind == "thinking", n.Kind == "redacted_thinking", n.Kind == "" && isText(n.Thinking):
		b.kind, b.text = thoughtKind, saying(textsIn(n.Thinking))
	case n.Kind == "reasoning":
		b.kind, b.text = thoughtKind, saying(cmp.Or(textsIn(n.Summary), textsIn(n.Content)))
	case n.Thought && isText(n.Text):
		b.kind, b.text = thoughtKind, saying(text)
	case n.Kind == "refusal":
		b.kind, b.text = refusalKind, saying(text)
	case n.Kind == "input_audio" && text == "":
	case isText(n.Text) && (n.Kind == "" || strings.HasSuffix(n.Kind, "text") || strings.HasSuffix(n.Kind, "audio")):
		b.kind, b.text, b.marks = textKind, saying(text), elements(n.Marks)
	}
	return b
}

// call returns the call that a node is, or wraps. One without a name is called by its type: local_shell, apply_patch. The input of a
// custom tool is no JSON, whatever it looks like.
func (n *node) call() *block {
	if wrapped := latest(n.ToolUse, n.Call); isObject(wrapped) {
		inner := nodeOf(wrapped)
		b := inner.call()
		b.key, b.id, b.free = n.Index, cmp.Or(n.ID, b.id), b.free && n.ToolUse == nil
		return b
	}
	b := &block{kind: callKind, key: n.Index, id: cmp.Or(n.Of, n.ID), name: n.Name}
	if kind, ok := strings.CutSuffix(n.Kind, "_call"); ok {
		b.name = cmp.Or(b.name, kind)
	}
	switch {
	case isText(n.Arguments):
		b.text = saying(textIn(n.Arguments))
	case n.Arguments != nil:
		b.args = objectArguments(n.Arguments)
	case isText(n.Input):
		b.free, b.text = true, saying(textIn(n.Input))
	case n.Input != nil:
		b.args = objectArguments(n.Input)
	}
	return b
}

// result returns what a tool gave, which a node holds.
func (n *node) result() *block {
	b := &block{kind: resultKind, id: n.Of, name: n.Name, failed: n.Failed || n.Status == "error" || n.Status == "failed"}
	if n.Response == nil {
		b.args = outputOf(latest(n.Content, n.Output))
		return b
	}
	// Gemini's reference gives a meaning to the one keys output and error.
	var only []byte
	keys := 0
	members(n.Response, func(key, value []byte) {
		if keys++; string(key) == "output" || string(key) == "error" {
			only, b.failed = value, string(key) == "error"
		}
	})
	switch {
	case isNull(n.Response):
		b.args = noText
	case keys == 1 && only != nil:
		b.args = outputOf(only)
	default:
		b.args, b.failed = oneLine(n.Response), false
	}
	return b
}

// ranByProvider reports whether tools of a type run at the provider.
func ranByProvider(kind string) bool {
	return slices.ContainsFunc([]string{
		"web_search", "web_fetch", "file_search", "tool_search", "code_execution", "code_interpreter", "image_generation", "mcp", "advisor",
	}, func(prefix string) bool { return strings.HasPrefix(kind, prefix) })
}

// declares reports whether an element of a list of tools declares one that the program itself runs.
func declares(raw []byte) bool {
	var t struct {
		Kind      string `json:"type"`
		Name      string `json:"name"`
		Spec      []byte `json:"toolSpec"`
		Functions []byte `json:"functionDeclarations|function_declarations"`
	}
	fill(raw, &t)
	return t.Kind+t.Name != "" && !ranByProvider(t.Kind) || t.Spec != nil || len(elements(t.Functions)) > 0
}

// argumentsOf returns the arguments that a model wrote as text: the object that they are, else the text; nothing is an object
// without members.
func argumentsOf(text []byte) json.RawMessage {
	trimmed := bytes.TrimSpace(text)
	if len(trimmed) == 0 {
		return json.RawMessage("{}")
	}
	if isObject(trimmed) && jsonscan.Valid(trimmed) == nil {
		return oneLine(trimmed)
	}
	return jsonText(string(text))
}

// objectArguments returns arguments that a protocol holds as JSON.
func objectArguments(raw []byte) json.RawMessage {
	if isNull(raw) {
		return json.RawMessage("{}")
	}
	return oneLine(raw)
}

// outputOf returns what a tool gave: a string where it is one text, a value where it is one JSON, else the list of blocks.
func outputOf(content []byte) json.RawMessage {
	if isNull(content) {
		return noText
	}
	if content[0] != '[' {
		return oneLine(content)
	}
	switch blocks := elements(content); len(blocks) {
	case 0:
		return noText
	case 1:
		if only := onlyValue(blocks[0]); only != nil {
			return oneLine(only)
		}
	}
	return oneLine(content)
}

// onlyValue returns what a block holds, where that is one text or one JSON and nothing else; nil for any other.
func onlyValue(block []byte) (only []byte) {
	more := false
	whole := members(block, func(key, value []byte) {
		switch {
		case string(key) == "text" && isText(value), string(key) == "json":
			more, only = more || only != nil, value
		case string(key) != "type" && string(key) != "cache_control":
			more = true
		}
	})
	if !whole || more {
		return nil
	}
	return only
}

// What nobody knows is stepped over: a conversation with something in it that is new is read as far as it is known. See jsonscan.Into.

// fill reads a value that was cut out before into a struct; nil fills nothing.
func fill(raw []byte, to any) {
	if raw != nil {
		var s jsonscan.Scanner
		s.Reset(raw)
		jsonscan.Into(&s, to)
	}
}

// fillWhole is fill of a message; false where it is no JSON object, whatever its opcode: Gemini's servers send theirs as binary.
func fillWhole(message []byte, to any) bool {
	if head := bytes.TrimLeft(message, " \t\r\n"); !isObject(head) {
		return false
	}
	var s jsonscan.Scanner
	s.Reset(message)
	jsonscan.Into(&s, to)
	return s.End() == nil
}

// members reads the members of a JSON object; false where b is none, or is none that holds. The values are parts of b, a key is valid
// during the call.
func members(b []byte, each func(key, value []byte)) bool {
	var s jsonscan.Scanner
	s.Reset(b)
	if s.Peek() != '{' {
		return false
	}
	for s.Begin('{'); s.More('}'); {
		key := s.Key()
		each(key, s.Raw())
	}
	return s.End() == nil
}

// elements returns the elements of a JSON list, which are parts of it; anything else has none.
func elements(list []byte) (out [][]byte) {
	var s jsonscan.Scanner
	s.Reset(list)
	if s.Peek() != '[' {
		return nil
	}
	for s.Begin('['); s.More(']'); {
		if raw := s.Raw(); raw != nil {
			out = append(out, raw)
		}
	}
	return out
}

// A saying is a text that comes in pieces.
type saying []byte

// ReadJSON implements jsonscan.Value: it appends the string that comes next.
func (t *saying) ReadJSON(s *jsonscan.Scanner) {
	if s.Peek() != '"' {
		s.Skip()
		return
	}
	*t = append(*t, s.TextBytes()...)
}

// A blockKey is what a stream calls a block by: an index or an id; "" for none.
type blockKey string

// further reports whether a choice with such an index is none but the first.
func (k blockKey) further() bool { return k != "" && k != "0" && k != noIndex }

// noIndex is an index that is none.
const noIndex blockKey = "-1"

// ReadJSON implements jsonscan.Value.
func (k *blockKey) ReadJSON(s *jsonscan.Scanner) {
	raw := s.Raw()
	for _, c := range raw {
		if c < '0' || c > '9' || len(raw) > 7 {
			*k = noIndex
			return
		}
	}
	*k = blockKey(raw)
}

// textsIn returns the text that raw is; of a list of blocks their texts.
func textsIn(raw []byte) string {
	if len(raw) == 0 || raw[0] != '[' {
		return textIn(raw)
	}
	var texts []string
	for _, block := range elements(raw) {
		var b struct {
			Text []byte `json:"text"`
		}
		if fill(block, &b); b.Text != nil {
			if text := textIn(b.Text); !strings.HasPrefix(text, claudeBilling) {
				texts = append(texts, text)
			}
		}
	}
	return strings.Join(texts, "\n")
}

// textIn returns the string that raw is; "" for anything else.
func textIn(raw []byte) string {
	if !isText(raw) {
		return ""
	}
	var s jsonscan.Scanner
	s.Reset(raw)
	return s.Text()
}

// isText reports whether raw is a string.
func isText(raw []byte) bool { return len(raw) > 0 && raw[0] == '"' }

// isObject reports whether raw is an object.
func isObject(raw []byte) bool { return len(raw) > 0 && raw[0] == '{' }

// isNull reports whether raw is nothing.
func isNull(raw []byte) bool { return len(raw) == 0 || string(raw) == "null" }

// oneLine returns a JSON value without line breaks, which stand in white space alone.
func oneLine(raw []byte) []byte {
	if bytes.IndexByte(raw, '\n') < 0 {
		return raw
	}
	return jsonscan.AppendLine(nil, raw)
}

// noText is the JSON of an empty text.
var noText = []byte(`""`)

// jsonText is a JSON string that leaves <, > and & alone.
func jsonText(s string) json.RawMessage { return marshal(s) }

// latest returns now, or was where now is nil.
func latest(was, now []byte) []byte {
	if now == nil {
		return was
	}
	return now
}

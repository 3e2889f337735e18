// Package mcptext says in a few words what a message between an agent and its tool server holds, for people: the tool and its
// arguments, the first words of an answer, the code of an error.
//
// It reads JSON-RPC messages as they stand on a tape, and never fails: of a message that ends too early (the first bytes of a
// long one), or that is none, it says what there is. Time and memory are of the order of the bytes that it is given; the caller
// bounds those. The text is one line as long as Max allows, with the control characters of others still in it: whoever writes it
// to a terminal escapes them (package visible).
//
// Not goals: what a message means to a server, checking it, finding messages that are equal.
package mcptext

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// Shown is how many bytes of a message are enough to say what it holds.
const Shown = 64 << 10

// Subject names what a request is about: the tool that is called, the prompt, the URI of the resource; "" for any other.
func Subject(method string, message []byte) string {
	return subject(method, inside(value(message), "params"))
}

// inside is what a message holds under a key. Of a producer that keeps the params or the result alone it is all of it.
func inside(m value, key string) value {
	if v := m.at(key); v != nil || m.at("jsonrpc") != nil || m.at("method") != nil || m.at("id") != nil {
		return v
	}
	return m
}

func subject(method string, params value) string {
	switch method {
	case "tools/call", "prompts/get":
		return params.at("name").text()
	case "resources/read", "resources/subscribe", "resources/unsubscribe", "notifications/resources/updated":
		return params.at("uri").text()
	}
	return ""
}

// Request says what a request or notification of a method holds, without the method, in at most max characters:
//
//	read_file {path: "notes.txt"}
//
// "" for one that holds nothing.
func Request(method string, message []byte, max int) string {
	params := inside(value(message), "params")
	var said string
	switch method {
	case "tools/call", "prompts/get":
		said = joined(params.at("name").text(), unlessEmpty(params.at("arguments"), max))
	case "initialize":
		said = joined(implementation(params.at("clientInfo")), protocol(params))
	case "sampling/createMessage":
		said = lastMessage(params, max)
	case "elicitation/create":
		said = joined(quoted(params.at("message").text(), max), params.at("url").text())
	case "notifications/progress":
		said = progress(params, max)
	case "notifications/message":
		said = joined(params.at("level").text(), params.at("logger").text(), unlessEmpty(params.at("data"), max))
	case "notifications/cancelled":
		said = joined("request "+params.at("requestId").text(), params.at("reason").text())
	case "logging/setLevel":
		said = params.at("level").text()
	case "session/prompt":
		said = content(params.at("prompt"), max)
	case "session/update":
		update := params.at("update")
		said = joined(update.at("sessionUpdate").text(), update.at("title").text(), content(update.at("content"), max))
	default:
		said = joined(subject(method, params), unlessEmpty(without(params, "_meta", "uri"), max))
	}
	return clip(said, max)
}

// progress says how far something has come: 2 of 5 "reading".
func progress(params value, max int) string {
	said := params.at("progress").text()
	if total := params.at("total").text(); total != "" {
		said += " of " + total
	}
	if m := params.at("message"); m != nil {
		said = joined(said, quoted(m.text(), max))
	}
	return said
}

// lastMessage says what the last message for a model holds.
func lastMessage(params value, max int) string {
	messages, n := params.at("messages").elements(1000)
	if n == 0 {
		return ""
	}
	last := messages[len(messages)-1]
	return joined(last.at("role").text(), content(last.at("content"), max))
}

// An Outcome is what an answer says.
type Outcome struct {
	Text   string // one line; "" for an answer that says nothing
	Failed bool   // it is an error of JSON-RPC, or of the tool
}

// Answer says what the answer to a request of a method holds, in at most max characters: of an error its code and message, of a
// tool its first words, of a list how many and which.
func Answer(method string, message []byte, max int) Outcome {
	if message = bytes.TrimSpace(message); !value(message).is('{') { // a batch, or what is no JSON
		return Outcome{Text: clip(string(message), max)}
	}
	m := value(message)
	if e := m.at("error"); e != nil && string(e) != "null" {
		said := joined("error "+e.at("code").text()+":", e.at("message").text())
		if e.at("code") == nil {
			said = "error " + compact(e, max)
		}
		return Outcome{clip(said, max), true}
	}
	result := inside(m, "result")
	failed := string(result.at("isError")) == "true"
	said := resultOf(method, result, max)
	if failed {
		said = joined("failed:", said)
	}
	return Outcome{clip(said, max), failed}
}

func resultOf(method string, result value, max int) string {
	if result.at("resultType").text() == "input_required" {
		return joined("asks for input:", inputs(result.at("inputRequests")))
	}
	switch method {
	case "initialize":
		return joined(implementation(result.at("serverInfo")), implementation(result.at("agentInfo")), protocol(result))
	case "server/discover":
		return joined(implementation(result.at("_meta", "io.modelcontextprotocol/serverInfo")), unlessEmpty(result.at("supportedVersions"), max))
	case "tools/call":
		if c := result.at("content"); !c.empty() {
			return content(c, max)
		}
		if c := result.at("structuredContent"); !c.empty() {
			return compact(c, max)
		}
		return unlessEmpty(without(result, "content", "structuredContent", "isError", "_meta"), max)
	case "resources/read":
		return content(result.at("contents"), max)
	case "prompts/get":
		return lastMessage(result, max)
	case "sampling/createMessage":
		return joined(content(result.at("content"), max), result.at("model").text())
	case "elicitation/create":
		return joined(result.at("action").text(), unlessEmpty(result.at("content"), max))
	case "completion/complete":
		return unlessEmpty(result.at("completion", "values"), max)
	}
	for _, kind := range lists {
		if l := result.at(kind.key); l != nil {
			return listed(l, kind, max)
		}
	}
	return unlessEmpty(result, max)
}

// inputs names what a server wants to know before it goes on.
func inputs(requests value) string {
	var methods []string
	requests.members(func(_ string, m value) bool {
		methods = append(methods, m.at("method").text())
		return len(methods) < 5
	})
	return strings.Join(methods, ", ")
}

// A list is a result that names things.
type list struct{ key, one, many, name string }

var lists = []list{
	{"tools", "tool", "tools", "name"},
	{"prompts", "prompt", "prompts", "name"},
	{"resources", "resource", "resources", "uri"},
	{"resourceTemplates", "template", "templates", "uriTemplate"},
	{"roots", "root", "roots", "uri"},
}

func listed(l value, kind list, max int) string {
	elements, n := l.elements(50)
	what := kind.many
	if n == 1 {
		what = kind.one
	}
	said := fmt.Sprintf("%d %s", n, what)
	for i, e := range elements {
		if len(said) > max {
			break
		}
		said += map[bool]string{true: ": ", false: ", "}[i == 0] + e.at(kind.name).text()
	}
	if n > len(elements) {
		said += ", …"
	}
	return said
}

// content says what a block of content holds, or the first one of a list and how many follow.
func content(v value, max int) string {
	blocks, n := []value{v}, 1
	if v.is('[') {
		blocks, n = v.elements(1)
	}
	if n == 0 || len(v) == 0 {
		return ""
	}
	said := block(blocks[0], max)
	if n > 1 {
		said = fmt.Sprintf("%s and %d more", clip(said, max-12), n-1)
	}
	return said
}

func block(b value, max int) string {
	switch {
	case b.at("text") != nil:
		return quoted(b.at("text").text(), max)
	case b.at("resource") != nil:
		r := b.at("resource")
		return joined(r.at("uri").text(), block(r, max))
	case b.at("data") != nil || b.at("blob") != nil:
		return joined(b.at("uri").text(), b.at("mimeType").text(), "in base64")
	case b.at("uri") != nil:
		return b.at("uri").text()
	}
	return unlessEmpty(b, max)
}

// implementation is the name and the version of a program.
func implementation(v value) string { return joined(v.at("name").text(), v.at("version").text()) }

// protocol is the version that the protocol has, or shall have.
func protocol(v value) string {
	if version := v.at("protocolVersion").text(); version != "" {
		return "protocol " + version
	}
	return ""
}

// unlessEmpty is a value for people; "" where it holds nothing.
func unlessEmpty(v value, max int) string {
	if v.empty() {
		return ""
	}
	return compact(v, max)
}

// without is an object without some of its members.
func without(v value, keys ...string) value {
	if !v.is('{') {
		return v
	}
	out, last := value("{"), value(nil)
	v.members(func(name string, m value) bool {
		last = m
		if slices.Contains(keys, name) {
			return true
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(out, encoded(name)...), ':')
		out = append(out, m...)
		return true
	})
	if last != nil && v.endsWith(last) {
		return out
	}
	return append(out, '}')
}

// joined puts what is not empty behind each other.
func joined(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), " ")
}

// Member is the text of a member of a message that is an object, such as its "type"; "" where it has none.
func Member(message []byte, key string) string { return value(message).at(key).text() }

// Message says what a message of any protocol holds, in at most max characters, the text of its "type" first; it is not ok for
// one that is no JSON object.
func Message(message []byte, max int) (text string, ok bool) {
	if message = bytes.TrimSpace(message); !value(message).is('{') {
		return "", false
	}
	v := value(message)
	kind := v.at("type")
	if !kind.is('"') {
		return compact(v, max), true
	}
	return clip(joined(kind.text(), unlessEmpty(without(v, "type"), max)), max), true
}

// Words are the first words of a text in quotes, as JSON writes it, in at most max characters.
func Words(s string, max int) string { return quoted(s, max) }

// compact is a value for people in at most about max characters: keys that are plain words stand without quotes, white space
// between tokens is gone.
func compact(v value, max int) string {
	w := writer{room: max}
	w.value(v, 0)
	return clip(w.b.String(), max)
}

// A writer writes a value until its room is used up.
type writer struct {
	b    strings.Builder
	room int // bytes, about
}

// maxNested is how deep values are shown; what is deeper stands as {…}.
const maxNested = 6

func (w *writer) full() bool { return w.b.Len() > w.room }

func (w *writer) value(v value, depth int) {
	switch {
	case w.full():
	case v.is('{'):
		w.object(v, depth)
	case v.is('['):
		w.list(v, depth)
	case v.is('"'):
		w.b.WriteString(quoted(v.text(), max(w.room-w.b.Len(), 20)))
	default: // a number or a word, or what is no JSON
		w.b.WriteString(clip(string(v), max(w.room-w.b.Len(), 20)))
	}
}

func (w *writer) object(v value, depth int) {
	if depth == maxNested {
		w.b.WriteString("{…}")
		return
	}
	w.b.WriteByte('{')
	first := true
	v.members(func(name string, m value) bool {
		if !first {
			w.b.WriteString(", ")
		}
		first = false
		if !plainWord(name) {
			name = string(encoded(name))
		}
		w.b.WriteString(name + ": ")
		w.value(m, depth+1)
		return !w.full()
	})
	w.b.WriteByte('}')
}

func (w *writer) list(v value, depth int) {
	if depth == maxNested {
		w.b.WriteString("[…]")
		return
	}
	w.b.WriteByte('[')
	first, n := v.elements(w.room)
	for i, e := range first {
		if i > 0 {
			w.b.WriteString(", ")
		}
		if w.full() {
			break
		}
		w.value(e, depth+1)
	}
	if n > len(first) {
		w.b.WriteString(", …")
	}
	w.b.WriteByte(']')
}

// plainWord reports whether a key reads well without quotes.
func plainWord(s string) bool {
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && c != '_' && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != "" && len(s) <= 60
}

package llm

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A Conversation is what a model is asked, in no provider's form. Package fixture says which forms are taken for one.
type Conversation struct {
	System                  canonjson.Value // a text, or a list where something else stands among texts; null for none
	Turns                   []Turn
	Tools, Choice, Thinking canonjson.Value // null for none
}

// A Turn is one message of it. What a tool gave is a turn of its own.
type Turn struct {
	Role   string            // RoleSystem, …
	Parts  []canonjson.Value // texts as strings, others as they stood
	Calls  []TurnCall
	Of     string // of a result: the id of its call
	Failed bool   // the result is an error
	Extra  []canonjson.Member
}

// A TurnCall is a call of a tool.
type TurnCall struct {
	ID, Name  string
	Arguments canonjson.Value
}

// NewConversation brings JSON of any form, under the keys of Surface, into the one; null values are absent. The error names the value
// that does not hold.
func NewConversation(asked *canonjson.Value) (*Conversation, error) {
	none := new(canonjson.Value)
	under := func(key string) *canonjson.Value { return cmp.Or(get(asked, key), none) }
	messages := under("messages")
	c := &Conversation{Tools: toolsOf(under("tools")), Choice: choiceOf(under("tool_choice")), Thinking: thinkingOf(under("thinking"))}
	switch messages.Kind {
	case canonjson.Null:
	case canonjson.String, canonjson.Object:
		if err := c.message(messages, "messages"); err != nil {
			return nil, err
		}
	case canonjson.Array:
		for i := range messages.Elems {
			if err := c.message(&messages.Elems[i], "messages["+strconv.Itoa(i)+"]"); err != nil {
				return nil, err
			}
		}
	default:
		return nil, fmt.Errorf("messages: expected a list of messages or a string, got a %s", messages.Kind)
	}
	c.begin(under("system"))
	return c, nil
}

// ReadConversation reads a call as it went over the wire: what was asked, and what the model said (ReadCall).
func ReadConversation(call *tape.LLMCall, request, response []byte) (*Conversation, *Said, error) {
	said, err := ReadCall(call, request, response)
	if err != nil {
		return nil, nil, err
	}
	request, err = exchange.Decode(encodingOf(call.RequestHeaders), request, MaxSaid)
	if err != nil {
		return nil, nil, fmt.Errorf("its request: %w", err)
	}
	body, err := canonjson.Parse(request)
	if err != nil {
		return nil, nil, fmt.Errorf("its request: %w", err)
	}
	if inner := get(&body, "request"); inner != nil && inner.Kind == canonjson.Object { // Code Assist's
		body = *inner
	}
	thinking := firstAt(&body, "thinking", "reasoning_effort", "reasoning", "think",
		"generationConfig.thinkingConfig", "generation_config.thinking_config")
	tools, choice := firstAt(&body, "tools", "toolConfig.tools"), wireChoice(&body)
	c := &Conversation{Tools: toolsOf(&tools), Choice: choiceOf(&choice), Thinking: thinkingOf(&thinking)}
	for i := range said.New {
		if err := c.hear(&said.New[i]); err != nil {
			return nil, nil, fmt.Errorf("its request: %w", err)
		}
	}
	given := canonjson.Value{}
	if said.System != said.leadingSystem() { // else it stands in the messages
		given = text(said.System)
	}
	c.begin(&given)
	return c, said, nil
}

// hear adds a message that a provider was sent.
func (c *Conversation) hear(h *Heard) error {
	for _, r := range h.Results {
		output, err := canonjson.Parse(r.Output)
		if err != nil {
			return err
		}
		result := Turn{Role: RoleTool, Of: r.CallID, Failed: r.IsError}
		c.content(&result, &output)
		c.add(result)
	}
	now := Turn{Role: h.Role}
	if !slices.Contains(roles, h.Role) {
		return fmt.Errorf("a message: expected user, assistant, tool or system, got %q", h.Role)
	}
	if h.Role == RoleTool {
		if len(h.Texts)+len(h.Attachments)+len(h.Calls) == 0 {
			return nil
		}
		now.Role = RoleUser // texts beside results are the user's
	}
	for _, s := range h.Texts {
		v := text(s)
		now.Parts = append(now.Parts, partsOf(&v)...)
	}
	for _, raw := range h.Attachments {
		v, err := canonjson.Parse(raw)
		if err != nil {
			return err
		}
		c.part(&now, &v)
	}
	for _, call := range h.Calls {
		args, err := canonjson.Parse(call.Arguments)
		if err != nil {
			return err
		}
		now.Calls = append(now.Calls, TurnCall{ID: call.ID, Name: call.Name, Arguments: ArgumentsOf(args)})
	}
	c.end(&now)
	return nil
}

// message reads one message; place names it in errors.
func (c *Conversation) message(v *canonjson.Value, place string) error {
	switch {
	case v.Kind == canonjson.String:
		c.add(Turn{Role: RoleUser, Parts: partsOf(v)})
		return nil
	case v.Kind != canonjson.Object:
		return fmt.Errorf("%s: expected a message such as {\"role\": \"user\", \"content\": \"…\"}, got a %s", place, v.Kind)
	}
	now := Turn{Role: RoleUser}
	var content *canonjson.Value
	for i := range v.Members {
		switch m := &v.Members[i]; m.Key {
		case "role":
			role, err := roleOf(&m.Value)
			if err != nil {
				return fmt.Errorf("%s.role: %w", place, err)
			}
			now.Role = role
		case "content", "parts":
			content = &m.Value
		case "tool_calls":
			calls, err := CallsOf(&m.Value)
			if err != nil {
				return fmt.Errorf("%s.tool_calls%w", place, err)
			}
			now.Calls = append(now.Calls, calls...)
		case "tool_call_id", "tool_use_id", "call_id":
			now.Of = m.Value.Text()
		case "is_error":
			now.Failed = m.Value.Bool
		case "cache_control":
		default:
			if m.Value.Kind != canonjson.Null {
				now.Extra = append(now.Extra, *m)
			}
		}
	}
	if content == nil && member(v, "type") != "" { // a part that stands in the place of a message
		content, now.Extra = v, nil
	}
	if content != nil {
		c.content(&now, content)
	}
	c.end(&now)
	return nil
}

// end adds a message, unless the results of tools in it stood for all of it.
func (c *Conversation) end(now *Turn) {
	took := now.Role == RoleUser && len(c.Turns) > 0 && c.Turns[len(c.Turns)-1].Role == RoleTool
	if len(now.Parts) > 0 || len(now.Calls) > 0 || len(now.Extra) > 0 || !took {
		c.add(*now)
	}
}

// add adds a message. What the model said and the calls that it made in one answer are one message, whether they came in one
// (Anthropic, OpenAI's chat) or in several (OpenAI's responses).
func (c *Conversation) add(now Turn) {
	if n := len(c.Turns); n > 0 && now.goesOn(&c.Turns[n-1]) {
		last := &c.Turns[n-1]
		last.Parts, last.Calls = append(last.Parts, now.Parts...), append(last.Calls, now.Calls...)
		return
	}
	c.Turns = append(c.Turns, now)
}

// goesOn reports whether a message is of the same answer as the one before it.
func (m *Turn) goesOn(before *Turn) bool {
	return m.Role == RoleAssistant && before.Role == RoleAssistant && len(m.Extra) == 0 && len(before.Extra) == 0 &&
		len(m.Calls) > 0
}

// content reads the content of a message. Results of tools in it become messages of their own, before it.
func (c *Conversation) content(now *Turn, v *canonjson.Value) {
	if v.Kind != canonjson.Array {
		c.part(now, v)
		return
	}
	each(v, func(part *canonjson.Value) { c.part(now, part) })
}

// part reads one part of a content.
func (c *Conversation) part(now *Turn, v *canonjson.Value) {
	switch member(v, "type") {
	case "tool_use":
		args, _ := v.Get("input")
		now.Calls = append(now.Calls, TurnCall{ID: member(v, "id"), Name: member(v, "name"), Arguments: ArgumentsOf(args)})
	case "tool_result":
		failed, _ := v.Get("is_error")
		result := Turn{Role: RoleTool, Of: member(v, "tool_use_id"), Failed: failed.Bool}
		at(v, "content", func(content *canonjson.Value) { c.content(&result, content) })
		c.add(result)
	case "thinking", "redacted_thinking":
	default:
		now.Parts = append(now.Parts, partsOf(v)...)
	}
}

// begin takes the system text: what is given as such, and the messages of the system's that begin the history.
func (c *Conversation) begin(given *canonjson.Value) {
	var parts []canonjson.Value
	if given.Kind == canonjson.Array {
		each(given, func(part *canonjson.Value) { parts = append(parts, partsOf(part)...) })
	} else {
		parts = partsOf(given)
	}
	n := 0
	for ; n < len(c.Turns) && c.Turns[n].Role == RoleSystem; n++ {
		parts = append(parts, c.Turns[n].Parts...)
	}
	c.Turns = c.Turns[n:]
	texts := textsOf(parts)
	switch {
	case len(texts) < len(parts):
		c.System = array(parts...)
	case len(parts) > 0:
		c.System = text(strings.Join(texts, "\n"))
	}
}

// textsOf returns those parts that are texts.
func textsOf(parts []canonjson.Value) (texts []string) {
	for i := range parts {
		if parts[i].Kind == canonjson.String {
			texts = append(texts, parts[i].Str)
		}
	}
	return texts
}

// Texts are the texts of a message.
func (m *Turn) Texts() []string { return textsOf(m.Parts) }

// LastUser returns the text of the user's last message; "" for none.
func (c *Conversation) LastUser() string {
	for _, m := range slices.Backward(c.Turns) {
		if m.Role == RoleUser {
			return strings.Join(m.Texts(), "\n")
		}
	}
	return ""
}

// Calls counts the calls of tools in the history.
func (c *Conversation) Calls() (n int) {
	for i := range c.Turns {
		n += len(c.Turns[i].Calls)
	}
	return n
}

// partsOf returns a part as a turn holds it; none of an empty text or null.
func partsOf(v *canonjson.Value) []canonjson.Value {
	if v.Kind == canonjson.Null {
		return nil
	}
	s, ok := textOf(v)
	switch {
	case ok && s == "":
		return nil
	case ok:
		return []canonjson.Value{text(strings.ToValidUTF8(s, "\uFFFD"))}
	}
	return []canonjson.Value{unmarked(v)}
}

// textOf returns the text that a part is, and false for another part.
func textOf(v *canonjson.Value) (string, bool) {
	if v.Kind == canonjson.String {
		return v.Str, true
	}
	words := get(v, "text")
	if words == nil || words.Kind != canonjson.String {
		return "", false
	}
	for i := range v.Members {
		switch m := &v.Members[i]; m.Key {
		case "text", "cache_control", "annotations":
		case "type":
			if !slices.Contains([]string{"text", "input_text", "output_text"}, m.Value.Text()) {
				return "", false
			}
		default:
			return "", false
		}
	}
	return words.Str, true
}

// unmarked returns a value without the mark of a cached prefix. v stays as it is.
func unmarked(v *canonjson.Value) canonjson.Value {
	out := *v
	out.Members = slices.Clone(v.Members)
	dropCacheControl(&out)
	return out
}

var roles = []string{RoleSystem, RoleUser, RoleAssistant, RoleTool}

// roleOf reads a role.
func roleOf(v *canonjson.Value) (string, error) {
	role := roleNamed(v.Text())
	switch {
	case v.Kind != canonjson.Null && v.Kind != canonjson.String:
		return "", fmt.Errorf("expected a string, got a %s", v.Kind)
	case !slices.Contains(roles, role) || v.Kind == canonjson.String && v.Str == "":
		return "", fmt.Errorf("expected user, assistant, tool or system, got %q", role)
	}
	return role, nil
}

// roleNamed returns the role that a provider calls so.
func roleNamed(name string) string {
	switch name {
	case "developer":
		return RoleSystem
	case "model":
		return RoleAssistant
	case "function":
		return RoleTool
	case "":
		return RoleUser
	}
	return name
}

// firstAt returns the value at the first of some paths that a body has; null for none.
func firstAt(body *canonjson.Value, paths ...string) canonjson.Value {
	for _, path := range paths {
		if v, ok := valueAt(body, path); ok {
			return v
		}
	}
	return canonjson.Value{}
}

// valueAt returns the value at a path of keys with dots between them.
func valueAt(v *canonjson.Value, path string) (canonjson.Value, bool) {
	return v.Path(strings.Split(path, ".")...)
}

// Surface returns what of a conversation is matched: an object with the keys messages, system, tools, tool_choice and thinking, those
// absent left out. Ids of calls are numbered.
func (c *Conversation) Surface() canonjson.Value {
	out := object()
	if len(c.Turns) > 0 {
		ids := newCallNumbers()
		messages := array()
		for i := range c.Turns {
			messages.Elems = append(messages.Elems, c.Turns[i].value(ids))
		}
		put(&out, "messages", messages)
	}
	for _, m := range []canonjson.Member{
		field("system", c.System), field("tools", c.Tools), field("tool_choice", c.Choice), field("thinking", c.Thinking),
	} {
		if m.Value.Kind != canonjson.Null {
			out.Members = append(out.Members, m)
		}
	}
	return out
}

// value returns a message.
func (m *Turn) value(ids *callNumbers) canonjson.Value {
	out := object(field("role", text(m.Role)), field("content", contentValue(m.Parts)))
	if len(m.Calls) > 0 {
		calls := array()
		for _, c := range m.Calls {
			call := object(field("id", validText(ids.call(c.ID))), field("name", validText(c.Name)), field("arguments", c.Arguments))
			calls.Elems = append(calls.Elems, call)
		}
		put(&out, "tool_calls", calls)
	}
	if m.Role == RoleTool {
		put(&out, "tool_call_id", validText(ids.result(m.Of)))
	}
	if m.Failed {
		put(&out, "is_error", canonjson.Value{Kind: canonjson.Bool, Bool: true})
	}
	out.Members = append(out.Members, m.Extra...)
	return out
}

func validText(s string) canonjson.Value { return text(strings.ToValidUTF8(s, "\uFFFD")) }

// contentValue returns the content of a message: a string where it is one text or none.
func contentValue(parts []canonjson.Value) canonjson.Value {
	switch {
	case len(parts) == 0:
		return text("")
	case len(parts) == 1 && parts[0].Kind == canonjson.String:
		return parts[0]
	}
	return array(blocksOf(parts)...)
}

// blocksOf returns parts with the texts among them as blocks.
func blocksOf(parts []canonjson.Value) []canonjson.Value {
	out := slices.Clone(parts)
	for i := range out {
		if out[i].Kind == canonjson.String {
			out[i] = textBlock("text", out[i])
		}
	}
	return out
}

// callNumbers gives ids of calls their place among the calls.
type callNumbers struct {
	now  map[string]string // what an id stands for: the call that had it last
	open []string          // calls without a result, in order
	n    int
}

func newCallNumbers() *callNumbers { return &callNumbers{now: make(map[string]string)} }

// callPrefix begins the ids that calls are given.
const callPrefix = "call_"

// CallID is the id of the n-th call of a conversation, from 1.
func CallID(n int) string { return callPrefix + strconv.Itoa(n) }

// call numbers a call.
func (x *callNumbers) call(id string) string {
	x.n++
	out := CallID(x.n)
	if id != "" {
		x.now[id] = out
	}
	x.open = append(x.open, out)
	return out
}

// result returns the number of the call that a result belongs to: the one with its id; without an id the first that has none yet.
// A result of no call keeps its id, unless that reads like a number of ours.
func (x *callNumbers) result(id string) string {
	out, ok := x.now[id]
	if !ok && id == "" && len(x.open) > 0 {
		out, ok = x.open[0], true
	}
	if !ok && strings.HasPrefix(id, callPrefix) {
		return "no_" + id
	}
	if !ok {
		return id
	}
	if i := slices.Index(x.open, out); i >= 0 {
		x.open = slices.Delete(x.open, i, i+1)
	}
	return out
}

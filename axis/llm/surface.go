package llm

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
)

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

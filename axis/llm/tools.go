package llm

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
)

// The functions below bring declarations, calls and choices of tools, and the wish to think, into one form.

// CallsOf reads calls of tools: {"id","name","arguments"}, or as OpenAI has them, under function. The error says behind the value's own
// place what does not hold.
func CallsOf(v *canonjson.Value) ([]TurnCall, error) {
	if v.Kind != canonjson.Array && v.Kind != canonjson.Null {
		return nil, fmt.Errorf(": expected a list of calls, got a %s", v.Kind)
	}
	var out []TurnCall
	for i := range v.Elems {
		e := &v.Elems[i]
		if e.Kind != canonjson.Object {
			return nil, fmt.Errorf("[%d]: expected {\"id\", \"name\", \"arguments\"}, got a %s", i, e.Kind)
		}
		id := member(e, "id")
		e = unwrapped(e)
		args, _ := e.Get("arguments")
		out = append(out, TurnCall{ID: id, Name: member(e, "name"), Arguments: ArgumentsOf(args)})
	}
	return out, nil
}

// ArgumentsOf returns arguments as an object, where they are one or a text of one; an object without members for none.
func ArgumentsOf(v canonjson.Value) canonjson.Value {
	if v.Kind == canonjson.Null || v.Kind == canonjson.String && strings.TrimSpace(v.Str) == "" {
		return object()
	}
	if v.Kind == canonjson.String {
		if inner, err := canonjson.Parse([]byte(v.Str)); err == nil && inner.Kind == canonjson.Object {
			return inner
		}
	}
	return v
}

// toolsOf returns declarations of tools in one form; null for none.
func toolsOf(v *canonjson.Value) canonjson.Value {
	if v.Kind == canonjson.Object {
		v = &canonjson.Value{Kind: canonjson.Array, Elems: []canonjson.Value{*v}}
	}
	if v.Kind != canonjson.Array {
		return *v
	}
	out := array()
	each(v, func(tool *canonjson.Value) { out.Elems = append(out.Elems, toolOf(tool)...) })
	if len(out.Elems) == 0 {
		return canonjson.Value{}
	}
	return out
}

// schemaKeys are what the providers call the schema of a tool's arguments.
var schemaKeys = []string{"input_schema", "parameters", "inputSchema", "parametersJsonSchema", "parameters_json_schema"}

// toolOf returns the tools that an element of a list declares: Gemini's holds several. What is no such declaration (a search that
// the provider runs) stays as it is.
func toolOf(v *canonjson.Value) (out []canonjson.Value) {
	for _, key := range []string{"functionDeclarations", "function_declarations"} {
		if functions := list(v, key); functions != nil {
			each(functions, func(tool *canonjson.Value) { out = append(out, toolOf(tool)...) })
			return out
		}
	}
	v = unwrapped(v)
	if name := get(v, "name"); name == nil || name.Kind != canonjson.String {
		return []canonjson.Value{unmarked(v)}
	}
	kind, schema := member(v, "type"), false
	tool := object()
	for _, m := range v.Members {
		switch {
		case m.Value.Kind == canonjson.Null, m.Key == "cache_control", m.Key == "description" && m.Value.Text() == "":
		case m.Key == "type" && (kind == "function" || kind == "custom"):
		case slices.Contains(schemaKeys, m.Key) && schema: // the first has it
		case slices.Contains(schemaKeys, m.Key):
			schema = true
			if inner := get(&m.Value, "json"); inner != nil && len(m.Value.Members) == 1 && m.Key == "inputSchema" { // Bedrock's
				m.Value = *inner
			}
			put(&tool, "input_schema", m.Value)
		default:
			tool.Members = append(tool.Members, m)
		}
	}
	return []canonjson.Value{tool}
}

// unwrapped returns the declaration or the call that stands in another object: in OpenAI's under function, in Bedrock's under toolSpec.
func unwrapped(v *canonjson.Value) *canonjson.Value {
	for _, key := range []string{"function", "toolSpec"} {
		if inner := get(v, key); inner != nil && inner.Kind == canonjson.Object {
			return unwrapped(inner)
		}
	}
	return v
}

// choiceOf returns a choice of tools in one form: "auto", "any", "none", {"type":"tool","name":…}, or what else it was.
func choiceOf(v *canonjson.Value) canonjson.Value {
	word := v.Text()
	if v.Kind == canonjson.Object {
		word = member(v, "type")
	}
	name, _ := v.Get("name")
	if inner := get(v, "function"); inner != nil {
		name, _ = inner.Get("name")
	}
	switch {
	case v.Kind == canonjson.Object && name.Kind == canonjson.String && (word == "function" || word == "tool"):
		return toolNamed(name)
	case v.Kind == canonjson.Object && len(v.Members) > 1:
		return *v
	case word == "required" || word == "any":
		return text("any")
	case word == "auto" || word == "none":
		return text(word)
	}
	return *v
}

func toolNamed(name canonjson.Value) canonjson.Value {
	return object(field("type", text("tool")), field("name", name))
}

// wireChoice returns a request's choice of tools; null for none. Gemini's is a mode, and the names that it is among; Bedrock's has the
// mode as a key.
func wireChoice(body *canonjson.Value) canonjson.Value {
	if v := get(body, "tool_choice"); v != nil {
		return *v
	}
	if v, ok := body.Path("toolConfig", "toolChoice"); ok && len(v.Members) == 1 {
		if name, ok := v.Path("tool", "name"); ok {
			return toolNamed(name)
		}
		return text(v.Members[0].Key)
	}
	v := firstAt(body, "toolConfig.functionCallingConfig", "tool_config.function_calling_config")
	names := firstAt(&v, "allowedFunctionNames", "allowed_function_names")
	switch mode := member(&v, "mode"); {
	case len(names.Elems) == 1:
		return toolNamed(names.Elems[0])
	case len(names.Elems) == 0 && mode != "":
		return text(strings.ToLower(mode))
	}
	return v
}

// thinkingOf returns what is said of thinking in one form: a word for how much, {"type":"enabled","budget_tokens":N}, or what else it
// was; null where it is off.
func thinkingOf(v *canonjson.Value) canonjson.Value {
	budget := canonjson.Value{}
	switch v.Kind {
	case canonjson.Bool:
		if !v.Bool {
			return canonjson.Value{}
		}
	case canonjson.String:
		if v.Str == "none" || v.Str == "" {
			return canonjson.Value{}
		}
	case canonjson.Number:
		budget = *v
	case canonjson.Object:
		if member(v, "type") == "disabled" || len(v.Members) == 0 {
			return canonjson.Value{}
		}
		if effort := get(v, "effort"); effort != nil && len(v.Members) == 1 {
			return thinkingOf(effort)
		}
		if n := firstAt(v, "thinking_budget", "thinkingBudget"); n.Kind == canonjson.Number {
			budget = n
		}
	}
	switch {
	case budget.Kind == canonjson.Null:
		return *v
	case budget.Num == 0 && budget.Str == "":
		return canonjson.Value{}
	}
	return object(field("type", text("enabled")), field("budget_tokens", budget))
}

// openCalls are the calls of the last answer, whose results may come without their ids.
type openCalls struct {
	calls  []*openCall
	given  bool                   // some of the ids are ours
	byID   map[string]*openCall   // by id, and by the id that the program gave it in its history
	byName map[string][]*openCall // by the tool's name, and "" for all: in order, those whose result may still come
}

// An openCall is one of them.
type openCall struct {
	name, id string
	given    bool // id is ours
	done     bool // its result came
}

// give returns the id of the next call that has none.
func (l *Listener) give() string {
	l.given++
	return CallID(l.given)
}

// answered notes the calls of an answer, and gives ids to those without.
func (l *Listener) answered(calls []sessionlog.ToolCall) {
	l.open = openCalls{byID: make(map[string]*openCall, len(calls)), byName: make(map[string][]*openCall)}
	o := &l.open
	for i := range calls {
		c := &openCall{name: calls[i].Name, id: calls[i].ID}
		if c.id == "" {
			c.id, c.given, o.given = l.give(), true, true
			calls[i].ID = c.id
		}
		o.calls, o.byID[c.id] = append(o.calls, c), c
		o.byName[c.name] = append(o.byName[c.name], c)
		if c.name != "" {
			o.byName[""] = append(o.byName[""], c)
		}
	}
}

// pair gives the calls and results of new messages the ids that they lack.
func (l *Listener) pair(heard []Heard) {
	last := -1
	for i := range heard {
		if len(heard[i].Calls) > 0 {
			last = i
		}
	}
	for i := range heard {
		m := &heard[i]
		if i == last && l.open.repeats(m.Calls) {
			l.open.rename(m.Calls)
		} else if len(m.Calls) > 0 {
			l.answered(m.Calls)
		}
		for j := range m.Results {
			m.Results[j].CallID = l.resultOf(m.Results[j].CallID, m.names[j])
		}
	}
}

// repeats reports whether calls of a history are those of the last answer, of which some had no id.
func (o *openCalls) repeats(calls []sessionlog.ToolCall) bool {
	return o.given && slices.EqualFunc(calls, o.calls, func(a sessionlog.ToolCall, b *openCall) bool { return a.Name == b.name })
}

// rename gives the calls of a history the ids that the last answer's got.
func (o *openCalls) rename(calls []sessionlog.ToolCall) {
	for i, c := range o.calls {
		if !c.given {
			continue
		}
		if alias := calls[i].ID; alias != "" {
			o.byID[alias] = c
		}
		calls[i].ID = c.id
	}
}

// resultOf returns the id of the call that a result belongs to.
func (l *Listener) resultOf(id, name string) string {
	c := l.open.byID[id]
	if c == nil && (l.open.given || id == "") {
		c = l.open.next(name, id != "")
	}
	switch {
	case c != nil:
		c.done = true
		return c.id
	case id == "":
		return l.give()
	}
	return id
}

// next returns the first call of a name whose result may still come, nil for none: of those whose id is ours alone, where the
// result has one that is not known.
func (o *openCalls) next(name string, given bool) *openCall {
	for queue := o.byName[name]; len(queue) > 0; {
		c := queue[0]
		queue = queue[1:]
		o.byName[name] = queue
		if !c.done && (c.given || !given) {
			return c
		}
	}
	return nil
}

package llm

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A Change is what a call of a model says in the place of what it says. The zero Change changes nothing.
type Change struct {
	Model   string            // "" leaves it
	System  *string           // the system text; nil leaves it
	Results map[string]string // what tools gave, by the ids of their calls
}

// ErrSigned is returned for a request whose signature a change would break.
var ErrSigned = errors.New("the request is signed (AWS SigV4), and a changed one would have to be signed anew with a key that only the program has")

// ErrNoCall is returned for a request that is no call with messages: it has nothing that a Change changes.
var ErrNoCall = errors.New("no call of a model with messages")

// Apply returns r, a call that id is of, as c has it, and what of it is changed: "model", "system", "tool ID". The order of a body's keys
// stays. A body in a Content-Encoding leaves without it. Errors: ErrSigned, ErrNoCall, or what of the request does not hold.
func (c *Change) Apply(r *exchange.Request, id *exchange.Identity) (*exchange.Request, []string, error) {
	e, u, err := c.endpoint(r, id)
	if err != nil {
		return nil, nil, err
	}
	plain, err := exchange.Decode(r.Header.Get("Content-Encoding"), r.Body, MaxSaid)
	if err != nil {
		return nil, nil, err
	}
	body, err := canonjson.Parse(plain)
	if err != nil {
		return nil, nil, err
	}
	changed := c.model(e, u, &body)
	call := &tape.LLMCall{Provider: e.provider, Endpoint: e.name}
	call.URL = r.URL
	if c.System != nil || len(c.Results) > 0 {
		p := protocolOf(call, plain)
		if p == nil || p.putSystem == nil {
			return nil, nil, fmt.Errorf("of %s %s the model alone can be changed", e.provider, e.name)
		}
		changed = append(changed, c.said(p, &body, resultIDs(call, plain))...)
	}
	if len(changed) == 0 {
		return r, nil, nil
	}
	if strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-") {
		return nil, nil, ErrSigned
	}
	out := *r
	out.URL, out.Body, out.Header = u.String(), appendInOrder(nil, &body), r.Header.Clone()
	out.Header.Del("Content-Encoding")
	return &out, changed, nil
}

// endpoint finds whose call r is.
func (c *Change) endpoint(r *exchange.Request, id *exchange.Identity) (*endpoint, *url.URL, error) {
	u, err := url.Parse(r.URL)
	if err != nil {
		return nil, nil, err
	}
	for e := range endpointsAt(u.Path, false) {
		if e.provider == id.Key.Provider && e.name == id.Key.Endpoint && r.Method == http.MethodPost && e.keys.messages != "" {
			return e, u, nil
		}
	}
	return nil, nil, ErrNoCall
}

// model puts the model where it stands: in the path, in the body, or in both.
func (c *Change) model(e *endpoint, u *url.URL, body *canonjson.Value) (changed []string) {
	if c.Model == "" {
		return nil
	}
	inPath := slices.ContainsFunc(e.paths, func(p pattern) bool {
		path, ok := p.with(u.Path, c.Model)
		if ok {
			u.Path, u.RawPath = path, ""
		}
		return ok
	})
	if at := get(body, modelKey); at != nil || !inPath {
		put(body, modelKey, text(c.Model))
	}
	return []string{"model"}
}

// with is a path of the pattern that names another model; false where it is of another, or names none.
func (p *pattern) with(path, model string) (string, bool) {
	was, ok := p.match(path)
	if !ok || p.before == "" {
		return "", false
	}
	was = strings.TrimPrefix(was, p.collection)
	return strings.TrimSuffix(path, was+p.after) + model + p.after, true
}

// resultIDs are the ids of the calls that the results of a request belong to, in order.
func resultIDs(call *tape.LLMCall, body []byte) (ids []string) {
	said, err := ReadCall(call, body, nil)
	if err != nil {
		return nil
	}
	for i := range said.New {
		for _, r := range said.New[i].Results {
			ids = append(ids, r.CallID)
		}
	}
	return ids
}

// said changes what is said. ids are those of resultIDs.
func (c *Change) said(p *protocol, body *canonjson.Value, ids []string) (changed []string) {
	if inner := get(body, p.wrapped); p.wrapped != "" && inner != nil {
		body = inner
	}
	if c.System != nil {
		p.putSystem(body, *c.System)
		changed = append(changed, "system")
	}
	if len(c.Results) == 0 {
		return changed
	}
	result := func(v *canonjson.Value) {
		of, shape := resultOf(v)
		if of == nil || get(of, shape.content) == nil {
			return
		}
		id := member(of, shape.id)
		if id == "" && len(ids) > 0 { // Ollama's and Gemini's may have none
			id = ids[0]
		}
		ids = ids[min(1, len(ids)):]
		if to, ok := c.Results[id]; ok {
			put(of, shape.content, shape.as(to))
			changed = append(changed, "tool "+id)
		}
	}
	at(body, p.messages, func(messages *canonjson.Value) {
		each(messages, func(m *canonjson.Value) {
			result(m)
			at(m, "content", func(content *canonjson.Value) { each(content, result) })
			at(m, "parts", func(parts *canonjson.Value) { each(parts, result) })
		})
	})
	return changed
}

// put sets the value under key.
func put(v *canonjson.Value, key string, to canonjson.Value) {
	if at := get(v, key); at != nil {
		*at = to
		return
	}
	v.Members = append(v.Members, field(key, to))
}

// appendInOrder appends v as JSON whose keys stand in their order: models read the properties of a tool in it.
func appendInOrder(b []byte, v *canonjson.Value) []byte {
	switch v.Kind {
	case canonjson.Object:
		b = append(b, '{')
		for i := range v.Members {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(canonjson.AppendString(b, v.Members[i].Key), ':')
			b = appendInOrder(b, &v.Members[i].Value)
		}
		return append(b, '}')
	case canonjson.Array:
		b = append(b, '[')
		for i := range v.Elems {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendInOrder(b, &v.Elems[i])
		}
		return append(b, ']')
	}
	return v.Append(b)
}

// putSystemMessage sets the system text that begins the messages, or puts one before them.
func putSystemMessage(body *canonjson.Value, s string) {
	messages := list(body, "messages")
	if messages == nil {
		return
	}
	if putLeading(messages, s) {
		return
	}
	first := object(field("role", text("system")), field("content", text(s)))
	messages.Elems = slices.Insert(messages.Elems, 0, first)
}

// putLeading sets the system text of the messages that begin a list, which becomes one; false where none does.
func putLeading(messages *canonjson.Value, s string) bool {
	n := 0
	for n < len(messages.Elems) && slices.Contains([]string{"system", "developer"}, member(&messages.Elems[n], "role")) {
		n++
	}
	if n == 0 {
		return false
	}
	put(&messages.Elems[0], "content", text(s))
	messages.Elems = slices.Delete(messages.Elems, 1, n)
	return true
}

// InCallOrder returns a request to a model in which the results of calls that were made in one turn stand in the order of these calls,
// which their ids tell: a program that runs them side by side may have appended them as they came. nil where no two results follow each
// other.
func InCallOrder(body []byte) []byte {
	v, err := canonjson.Parse(body)
	if err != nil || v.Kind != canonjson.Object {
		return nil
	}
	o := callOrder{rank: make(map[string]int)}
	o.walk(&v)
	if !o.several {
		return nil
	}
	return v.Append(nil)
}

// A callOrder sorts results.
type callOrder struct {
	rank    map[string]int // of ids of calls, by their first appearance
	several bool           // two results followed each other
}

// walk sorts the results below a value. A call stands before its result.
func (o *callOrder) walk(v *canonjson.Value) {
	for i := range v.Members {
		o.walk(&v.Members[i].Value)
	}
	for i := range v.Elems {
		o.walk(&v.Elems[i])
		id := callID(&v.Elems[i])
		if _, known := o.rank[id]; !known && id != "" {
			o.rank[id] = len(o.rank)
		}
	}
	for from := 0; from < len(v.Elems); {
		to := from
		for to < len(v.Elems) && o.isResult(&v.Elems[to]) {
			to++
		}
		if to-from > 1 {
			o.several = true
			slices.SortStableFunc(v.Elems[from:to], func(a, b canonjson.Value) int { return o.rank[resultID(&a)] - o.rank[resultID(&b)] })
		}
		from = max(to, from+1)
	}
}

func (o *callOrder) isResult(v *canonjson.Value) bool {
	_, known := o.rank[resultID(v)]
	return known
}

// callID is the id of the call that an element of a list is: a block, an item, a part, or one of a message's tool_calls; "" for none.
func callID(v *canonjson.Value) string {
	kind := member(v, "type")
	switch {
	case strings.HasSuffix(kind, "tool_use"), kind == "function":
		return member(v, "id")
	case strings.HasSuffix(kind, "_call"):
		return member(v, "call_id")
	}
	for _, wrapped := range []struct{ key, id string }{{"functionCall", "id"}, {"function_call", "id"}, {"toolUse", "toolUseId"}} {
		if inner := get(v, wrapped.key); inner != nil {
			return member(inner, wrapped.id)
		}
	}
	return ""
}

// A resultShape is how a provider writes what a tool gave: where the id of its call stands, where what it gave, and how a text stands there.
type resultShape struct {
	id, content string
	as          func(string) canonjson.Value
}

var (
	blockResult    = resultShape{"tool_use_id", "content", text}
	messageResult  = resultShape{"tool_call_id", "content", text}
	itemResult     = resultShape{"call_id", "output", text}
	functionResult = resultShape{"id", "response", func(s string) canonjson.Value {
		return object(field("output", text(s)))
	}}
	converseShape = resultShape{"toolUseId", "content", converseText}
)

// resultOf returns the object of what a tool gave that an element of a list is or wraps, and its shape; nil for none.
func resultOf(v *canonjson.Value) (*canonjson.Value, *resultShape) {
	kind := member(v, "type")
	switch {
	case strings.HasSuffix(kind, "tool_result"):
		return v, &blockResult
	case member(v, "role") == "tool":
		return v, &messageResult
	case strings.HasSuffix(kind, "_output"):
		return v, &itemResult
	}
	for _, key := range []string{"functionResponse", "function_response"} {
		if inner := get(v, key); inner != nil {
			return inner, &functionResult
		}
	}
	return get(v, "toolResult"), &converseShape
}

// resultID is the id of the call that an element of a list is the result of; "" for none.
func resultID(v *canonjson.Value) string {
	of, shape := resultOf(v)
	if of == nil {
		return ""
	}
	return member(of, shape.id)
}

package llm

import (
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
)

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

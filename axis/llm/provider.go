package llm

import (
	"slices"

	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
)

// A Provider knows one protocol for calling models. Its methods may be called by several goroutines at once.
type Provider interface {
	// Name is the provider as it stands on the tape: "anthropic", "openai", "gemini".
	Name() string
	// Endpoint names the endpoint that a POST to path calls, with the model where the path holds it. ok is false where the
	// path is none of the provider's.
	Endpoint(path string) (endpoint, model string, ok bool)
	// Read takes the body of a call apart. ok is false where it is not of the provider's shape.
	Read(body canonjson.Value) (c Call, ok bool)
	// Usage returns the usage object of a whole answer, streamed or not; nil for none.
	Usage(answer []byte) []byte
	// ErrorBody is the provider's error object for an HTTP status and a message, as JSON.
	ErrorBody(status int, message string) []byte
}

// A Call is what a Provider reads out of the body of a request.
type Call struct {
	Model    string             // "" where only the path names it
	Surface  []canonjson.Member // what is matched as content, but for the messages
	Messages canonjson.Member   // the list of messages, under the key that it has in the body
	Params   []canonjson.Member // everything else that counts
	// Where the opening of the conversation stands: the key of the system text in Surface ("" for none), the indices of
	// the messages that hold system text, and of the first one of the user (-1 for none).
	SystemKey      string
	SystemMessages []int
	User           int
}

// Providers returns the providers that this package knows.
func Providers() []Provider {
	return []Provider{Anthropic{}, OpenAIChat{}, OpenAIResponses{}, Gemini{}}
}

// keys sorts the top level of a body. What is in neither list is a parameter.
type keys struct {
	surface, ignored []string
}

// split returns the members of body that are surface and those that are parameters, without the keys of taken.
func (k keys) split(body canonjson.Value, taken ...string) (surface, params []canonjson.Member) {
	for _, m := range body.Members {
		switch {
		case slices.Contains(taken, m.Key), slices.Contains(k.ignored, m.Key):
		case slices.Contains(k.surface, m.Key):
			surface = append(surface, m)
		default:
			params = append(params, m)
		}
	}
	return surface, params
}

// object builds an object.
func object(members ...canonjson.Member) canonjson.Value {
	return canonjson.Value{Kind: canonjson.Object, Members: members}
}

// array builds an array.
func array(elems ...canonjson.Value) canonjson.Value {
	return canonjson.Value{Kind: canonjson.Array, Elems: elems}
}

// text builds a string.
func text(s string) canonjson.Value { return canonjson.Value{Kind: canonjson.String, Str: s} }

// textBlock builds {"type":kind,"text":s}.
func textBlock(kind string, s canonjson.Value) canonjson.Value {
	return object(canonjson.Member{Key: "type", Value: text(kind)}, canonjson.Member{Key: "text", Value: s})
}

// without returns an object without some of its keys; any other value as it is.
func without(v canonjson.Value, keys ...string) canonjson.Value {
	if v.Kind != canonjson.Object {
		return v
	}
	drop := func(m canonjson.Member) bool { return slices.Contains(keys, m.Key) }
	if slices.ContainsFunc(v.Members, drop) {
		v.Members = slices.DeleteFunc(slices.Clone(v.Members), drop)
	}
	return v
}

// with returns an object in which the value of key, where it is there, is what edit makes of it.
func with(v canonjson.Value, key string, edit func(canonjson.Value) canonjson.Value) canonjson.Value {
	i := slices.IndexFunc(v.Members, func(m canonjson.Member) bool { return m.Key == key })
	if i < 0 {
		return v
	}
	v.Members = slices.Clone(v.Members)
	v.Members[i].Value = edit(v.Members[i].Value)
	return v
}

// each returns an array of what edit makes of every element; any other value as it is.
func each(v canonjson.Value, edit func(canonjson.Value) canonjson.Value) canonjson.Value {
	if v.Kind != canonjson.Array {
		return v
	}
	elems := make([]canonjson.Value, len(v.Elems))
	for i, e := range v.Elems {
		elems[i] = edit(e)
	}
	v.Elems = elems
	return v
}

// blocks returns the content of a message as a list: a bare string is one text block of the given type.
func blocks(content canonjson.Value, kind string, edit func(canonjson.Value) canonjson.Value) canonjson.Value {
	if content.Kind == canonjson.String {
		content = array(textBlock(kind, content))
	}
	return each(content, edit)
}

// member returns the string under key, "" where there is none.
func member(v canonjson.Value, key string) string {
	s, _ := v.Get(key)
	return s.Text()
}

// list returns the array under key.
func list(v canonjson.Value, key string) (canonjson.Value, bool) {
	a, ok := v.Get(key)
	return a, ok && a.Kind == canonjson.Array
}

// firstRole returns the index of the first element whose role is one of roles, -1 for none.
func firstRole(messages canonjson.Value, roles ...string) int {
	return slices.IndexFunc(messages.Elems, func(m canonjson.Value) bool {
		return slices.Contains(roles, member(m, "role"))
	})
}

// withRole returns the indices of the messages whose role is one of roles.
func withRole(messages canonjson.Value, roles ...string) []int {
	var found []int
	for i, m := range messages.Elems {
		if slices.Contains(roles, member(m, "role")) {
			found = append(found, i)
		}
	}
	return found
}

package llm

import (
	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// Usage is what a call used, in tokens, in one form for all providers, so that sums are comparable.
//
// InputTokens is all that the model was given, what came out of a cache and what was written to one included; where a
// provider counts these apart (Anthropic, Bedrock) they are added. OutputTokens is all that it generated, reasoning
// included; where a provider counts that apart (Gemini, xAI) it is added. The other fields say how much of these two it
// was, 0 where the provider does not say.
type Usage struct {
	InputTokens        int64
	OutputTokens       int64
	CacheReadTokens    int64 // of InputTokens: read from a cache
	CacheWriteTokens   int64 // of InputTokens: written to a cache
	CacheWrite1hTokens int64 // of CacheWriteTokens: written to stay for an hour instead of five minutes
	ReasoningTokens    int64 // of OutputTokens: reasoning
}

// Add returns the sum of two usages.
func (u Usage) Add(v Usage) Usage {
	u.InputTokens += v.InputTokens
	u.OutputTokens += v.OutputTokens
	u.CacheReadTokens += v.CacheReadTokens
	u.CacheWriteTokens += v.CacheWriteTokens
	u.CacheWrite1hTokens += v.CacheWrite1hTokens
	u.ReasoningTokens += v.ReasoningTokens
	return u
}

// UsageOf returns what a call used; false where its record does not say. It reads the record's usage, which is the
// provider's own object. A record of a testbench, or of another producer, has none: there an inline response counts that is
// a JSON object with input_tokens and output_tokens, in its usage as those of a testbench, or at its top as Harn's. A
// testbench writes zeros where its fixture says nothing.
func UsageOf(call *tape.LLMCall) (Usage, bool) {
	if len(call.Usage) > 0 {
		return readUsage(call.Provider, call.Usage)
	}
	response := foreignResponse(call)
	where := response
	usage, inner := response.Get("usage")
	if inner && usage.Kind == canonjson.Object {
		where = usage
	}
	o := counts{v: &where}
	u := countedByMessages(member(&response, "provider"), &o)
	return u, o.found && (!inner || u != Usage{})
}

// ModelOf returns the provider and the model that a record names, each "" where it names none. A record of another producer
// may name them in its response, beside its usage: see UsageOf.
func ModelOf(call *tape.LLMCall) (provider, model string) {
	if call.Provider != "" || call.Model != "" {
		return call.Provider, call.Model
	}
	response := foreignResponse(call)
	return member(&response, "provider"), member(&response, modelKey)
}

// foreignResponse returns the response of a record that another producer wrote; null where there is none that is a JSON
// object and inline.
func foreignResponse(call *tape.LLMCall) canonjson.Value {
	if call.Provider != "" || call.Response == nil || !call.Response.Inline {
		return canonjson.Value{}
	}
	v, err := canonjson.Parse([]byte(call.Response.Text))
	if err != nil || v.Kind != canonjson.Object {
		return canonjson.Value{}
	}
	return v
}

// A dialect is one way of counting.
type dialect struct {
	marks []string // any of these keys tells the dialect
	read  func(provider string, o *counts) Usage
}

// dialects are told apart by their keys, so that one object reads the same whoever passed it on. The first that fits has
// it.
var dialects = []dialect{
	{[]string{"promptTokenCount", "candidatesTokenCount", "totalTokenCount"}, countedByGemini},
	{[]string{"prompt_eval_count", "eval_count"}, countedByOllama},
	{[]string{"inputTokens", "outputTokens"}, countedByConverse},
	{[]string{"inputTokenCount", "outputTokenCount"}, countedByBedrock},
	{[]string{"prompt_token_count", "generation_token_count", "inputTextTokenCount"}, countedByInvoke},
	{[]string{"tokens", "billed_units"}, countedByCohere},
	{[]string{"prompt_tokens", "completion_tokens"}, countedByChat},
	{[]string{"input_tokens", "output_tokens"}, countedByMessages},
}

// readUsage reads a provider's usage object.
func readUsage(provider string, object []byte) (Usage, bool) {
	v, err := canonjson.Parse(object)
	if err != nil || v.Kind != canonjson.Object {
		return Usage{}, false
	}
	for _, d := range dialects {
		for _, key := range d.marks {
			if get(&v, key) == nil {
				continue
			}
			o := counts{v: &v}
			u := d.read(provider, &o)
			return u, o.found
		}
	}
	return Usage{}, false
}

// counts reads numbers of tokens out of an object.
type counts struct {
	v     *canonjson.Value
	found bool // that there was any
}

// maxTokens bounds what is taken for a number of tokens: integers up to here are exact.
const maxTokens = 1 << 53

// at returns the number at the first of the paths that has one, 0 for none.
func (o *counts) at(paths ...[]string) int64 {
	for _, path := range paths {
		v, ok := o.v.Path(path...)
		if ok && v.Kind == canonjson.Number && v.Num >= 0 && v.Num <= maxTokens {
			o.found = true
			return int64(v.Num)
		}
	}
	return 0
}

// keyPath is a path of keys.
func keyPath(keys ...string) []string { return keys }

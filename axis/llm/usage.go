package llm

import (
	"encoding/json"
	"slices"

	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
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
		v, err := canonjson.Parse(call.Usage)
		if err != nil {
			return Usage{}, false
		}
		return usageIn(call.Provider, &v)
	}
	response := foreignResponse(call)
	if response.Kind == canonjson.Null {
		return Usage{}, false
	}
	where := &response
	inner := get(&response, "usage")
	if inner != nil && inner.Kind == canonjson.Object {
		where = inner
	}
	provider := member(&response, "provider")
	u, ok := usageIn(provider, where)
	return u, ok && (inner == nil || u != Usage{})
}

// ModelOf returns the provider and the model that a record names, each "" where it names none. A record of another producer
// may name them in its response, beside its usage: see UsageOf. Of a call that a fork sent to another model it is that one.
func ModelOf(call *tape.LLMCall) (provider, model string) {
	if sent := tape.SentOf(call); sent != nil && sent.Model != "" {
		return call.Provider, sent.Model
	}
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

// Where the usage objects of all providers have their numbers, by paths of keys with dots: the first that has a number counts. They are told
// apart by their keys, so that one object reads the same whoever passed it on. Older servers of Ollama leave prompt_eval_count out where the
// whole prompt was cached: the input then reads 0. Cohere says what the model saw, else what was billed.
var (
	inputCounts = []string{
		"promptTokenCount", "prompt_eval_count", "inputTokens", "inputTokenCount", "prompt_token_count", "inputTextTokenCount",
		"tokens.input_tokens", "billed_units.input_tokens", "prompt_tokens", "input_tokens",
	}
	outputCounts = []string{
		"candidatesTokenCount", "responseTokenCount", "eval_count", "outputTokens", "outputTokenCount", "generation_token_count",
		"tokens.output_tokens", "billed_units.output_tokens", "completion_tokens", "output_tokens",
	}
	cacheReadCounts = []string{
		"cachedContentTokenCount", "cacheReadInputTokens", "cacheReadInputTokenCount", "prompt_tokens_details.cached_tokens",
		"prompt_cache_hit_tokens", "cached_tokens", "cache_read_input_tokens", "input_tokens_details.cached_tokens",
		"input_token_details.cached_tokens", "cache_read_tokens",
	}
	cacheWriteCounts = []string{
		"cacheWriteInputTokens", "cacheWriteInputTokenCount", "prompt_tokens_details.cache_write_tokens",
		"prompt_tokens_details.cache_creation_tokens", "cache_creation_input_tokens", "input_tokens_details.cache_write_tokens",
		"cache_write_tokens",
	}
	reasoningCounts = []string{
		"thoughtsTokenCount", "completion_tokens_details.reasoning_tokens", "output_tokens_details.reasoning_tokens",
		"output_tokens_details.thinking_tokens",
	}
	// apartCounts are of providers whose input leaves out what a cache was read or written for: Anthropic and Bedrock.
	apartCounts = []string{
		"cache_read_input_tokens", "cache_creation_input_tokens", "cacheReadInputTokens", "cacheWriteInputTokens",
		"cacheReadInputTokenCount", "cacheWriteInputTokenCount",
	}
)

// usageIn reads a usage object; false where it has no number of input or output.
func usageIn(provider string, v *canonjson.Value) (u Usage, found bool) {
	count := func(paths ...string) int64 {
		n, _ := tokensAt(v, paths...)
		return n
	}
	input, hasInput := tokensAt(v, inputCounts...)
	output, hasOutput := tokensAt(v, outputCounts...)
	u = Usage{
		InputTokens: input, OutputTokens: output, ReasoningTokens: count(reasoningCounts...),
		CacheReadTokens: count(cacheReadCounts...), CacheWriteTokens: count(cacheWriteCounts...),
		CacheWrite1hTokens: count("cache_creation.ephemeral_1h_input_tokens"),
	}
	apart := provider == anthropic || provider == bedrock || slices.ContainsFunc(apartCounts, func(key string) bool { return get(v, key) != nil })
	if apart && get(v, "prompt_tokens") == nil { // which holds them
		u.InputTokens += u.CacheReadTokens + u.CacheWriteTokens
	}
	at(v, "cacheDetails", func(details *canonjson.Value) { // of Converse
		each(details, func(d *canonjson.Value) {
			if n, _ := tokensAt(d, "inputTokens"); member(d, "ttl") == "1h" {
				u.CacheWrite1hTokens += n
			}
		})
	})
	// Gemini counts beside its prompt and its candidates what tools put into the prompt, and thoughts. xAI, and Gemini behind OpenAI's
	// protocol, count reasoning beside the rest too, which their total shows.
	u.InputTokens += count("toolUsePromptTokenCount")
	if count("thoughtsTokenCount") > 0 || count("total_tokens") == u.InputTokens+u.OutputTokens+u.ReasoningTokens {
		u.OutputTokens += u.ReasoningTokens
	}
	return u, hasInput || hasOutput
}

// maxTokens bounds what is taken for a number of tokens: integers up to here are exact.
const maxTokens = 1 << 53

// tokensAt returns the number at the first of some paths that has one.
func tokensAt(v *canonjson.Value, paths ...string) (int64, bool) {
	for _, path := range paths {
		n, ok := valueAt(v, path)
		if ok && n.Kind == canonjson.Number && n.Num >= 0 && n.Num <= maxTokens {
			return int64(n.Num), true
		}
	}
	return 0, false
}

// A usageEvent is what of an answer, or of one event of it, says what was used, wherever a provider has that. A stream of Anthropic's
// counts its input in message_start (message.usage) and its output at the end. Groq puts it under x_groq too. Bedrock's own count of an
// invoked model (the metrics) is for answers that have none of the model's.
type usageEvent struct {
	usages
	Message  usages     `json:"message"`
	Response usages     `json:"response"`
	Groq     usages     `json:"x_groq"`
	Delta    usages     `json:"delta"`
	Metrics  onlyObject `json:"amazon-bedrock-invocationMetrics"`
	Results  []byte     `json:"results"` // Titan counts what it wrote in them, one by one
	plainCounts
}

type usages struct {
	Usage    onlyObject `json:"usage"`
	Metadata onlyObject `json:"usageMetadata"`
	Meta     onlyObject `json:"meta"`
}

// plainCounts are counts that stand beside an answer, in no object: of Ollama, Llama, and Titan's embeddings.
type plainCounts struct {
	Eval       onlyNumber `json:"eval_count,omitempty"`
	Generation onlyNumber `json:"generation_token_count,omitempty"`
	InputText  onlyNumber `json:"inputTextTokenCount,omitempty"`
	PromptEval onlyNumber `json:"prompt_eval_count,omitempty"`
	Prompt     onlyNumber `json:"prompt_token_count,omitempty"`
}

// An onlyNumber is a number as it stood; "" where there is another thing.
type onlyNumber string

// ReadJSON implements jsonscan.Value.
func (n *onlyNumber) ReadJSON(s *jsonscan.Scanner) {
	if c := s.Peek(); c == '-' || c >= '0' && c <= '9' {
		*n = onlyNumber(s.Raw())
		return
	}
	s.Skip()
}

// MarshalJSON returns the number.
func (n onlyNumber) MarshalJSON() ([]byte, error) { return []byte(n), nil }

// An onlyObject is an object as it stood; nil where there is another thing.
type onlyObject []byte

// ReadJSON implements jsonscan.Value.
func (o *onlyObject) ReadJSON(s *jsonscan.Scanner) {
	if *o = nil; s.Peek() == '{' {
		*o = s.Raw()
		return
	}
	s.Skip()
}

// FindUsage finds the usage object of a whole answer, streamed or not, as it stood; nil for none. What comes later in a stream stands.
func FindUsage(answer []byte) []byte {
	var start, own, metrics, counts []byte
	for text := range answers(answer) {
		var e usageEvent
		if !fillWhole(invokeEvent(text), &e) {
			continue
		}
		start, metrics = latest(start, e.Message.Usage), latest(metrics, e.Metrics)
		for _, at := range []onlyObject{
			e.Meta, e.Response.Meta, e.Response.Metadata, e.Metadata, e.Delta.Usage, e.Groq.Usage, e.Response.Usage, e.Usage,
		} {
			own = latest(own, at)
		}
		if e.Results == nil && e.plainCounts != (plainCounts{}) {
			counts = marshal(&e.plainCounts)
		}
	}
	if start != nil && own != nil {
		return merged(start, own)
	}
	return latest(latest(latest(counts, metrics), start), own)
}

// objectAt returns the JSON object under a key, as it stood; nil where there is none.
func objectAt(text []byte, key string) (value []byte) {
	if !members(text, func(name, v []byte) {
		if string(name) == key {
			value = v
		}
	}) || !isObject(value) {
		return nil
	}
	return value
}

// merged returns an object with the keys of two, sorted; the later one's value wins unless it is null.
func merged(objects ...[]byte) []byte {
	all := make(map[string]json.RawMessage)
	for _, object := range objects {
		members(object, func(key, value []byte) {
			if all[string(key)] == nil || !isNull(value) {
				all[string(key)] = value
			}
		})
	}
	return marshal(all)
}

// marshal returns v as JSON that leaves <, > and & alone; nil where v has no JSON form.
func marshal(v any) []byte {
	b, err := jsonscan.Marshal(v)
	if err != nil {
		return nil
	}
	return b
}

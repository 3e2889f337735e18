package llm

// The providers' ways of counting, as their references describe them. docs/providers.md says the same for people.

// countedByMessages reads the usage of Anthropic messages, of OpenAI's Responses, images and transcriptions, and of Harn.
// They share two names, but Anthropic's input_tokens leaves out what a cache was read or written for, OpenAI's holds it.
func countedByMessages(provider string, o *counts) Usage {
	u := Usage{
		InputTokens:  o.at(key("input_tokens")),
		OutputTokens: o.at(key("output_tokens")),
		CacheReadTokens: o.at(key("cache_read_input_tokens"), key("input_tokens_details", "cached_tokens"),
			key("cache_read_tokens")),
		CacheWriteTokens: o.at(key("cache_creation_input_tokens"), key("input_tokens_details", "cache_write_tokens"),
			key("cache_write_tokens")),
		CacheWrite1hTokens: o.at(key("cache_creation", "ephemeral_1h_input_tokens")),
		ReasoningTokens: o.at(key("output_tokens_details", "reasoning_tokens"),
			key("output_tokens_details", "thinking_tokens")),
	}
	if countsCachesApart(provider, o) {
		u.InputTokens += u.CacheReadTokens + u.CacheWriteTokens
	}
	return u
}

// countsCachesApart reports whether input_tokens leaves out what a cache was read or written for.
func countsCachesApart(provider string, o *counts) bool {
	for _, key := range []string{"cache_read_input_tokens", "cache_creation_input_tokens"} {
		if get(o.v, key) != nil {
			return true
		}
	}
	return provider == anthropic || provider == bedrock
}

// countedByChat reads the usage of Chat Completions, completions and embeddings, of OpenAI and of those that speak its
// protocols. prompt_tokens holds what came out of a cache, completion_tokens the reasoning; but xAI and Gemini behind
// this protocol count reasoning beside it, which their total shows.
func countedByChat(_ string, o *counts) Usage {
	u := Usage{
		InputTokens:  o.at(key("prompt_tokens")),
		OutputTokens: o.at(key("completion_tokens")),
		CacheReadTokens: o.at(key("prompt_tokens_details", "cached_tokens"), key("prompt_cache_hit_tokens"),
			key("cached_tokens")),
		CacheWriteTokens: o.at(key("prompt_tokens_details", "cache_write_tokens"),
			key("prompt_tokens_details", "cache_creation_tokens")),
		ReasoningTokens: o.at(key("completion_tokens_details", "reasoning_tokens")),
	}
	if total := o.at(key("total_tokens")); total == u.InputTokens+u.OutputTokens+u.ReasoningTokens {
		u.OutputTokens += u.ReasoningTokens
	}
	return u
}

// countedByGemini reads usageMetadata. promptTokenCount holds what came out of a cache; thoughts and what tools put into
// the prompt are counted beside it and the candidates.
func countedByGemini(_ string, o *counts) Usage {
	u := Usage{
		InputTokens:     o.at(key("promptTokenCount")) + o.at(key("toolUsePromptTokenCount")),
		OutputTokens:    o.at(key("candidatesTokenCount"), key("responseTokenCount")),
		CacheReadTokens: o.at(key("cachedContentTokenCount")),
		ReasoningTokens: o.at(key("thoughtsTokenCount")),
	}
	u.OutputTokens += u.ReasoningTokens
	return u
}

// countedByConverse reads Bedrock's TokenUsage, which counts caches beside inputTokens.
func countedByConverse(_ string, o *counts) Usage {
	u := Usage{
		InputTokens:      o.at(key("inputTokens")),
		OutputTokens:     o.at(key("outputTokens")),
		CacheReadTokens:  o.at(key("cacheReadInputTokens"), key("cacheReadInputTokenCount")),
		CacheWriteTokens: o.at(key("cacheWriteInputTokens"), key("cacheWriteInputTokenCount")),
	}
	if details := list(o.v, "cacheDetails"); details != nil {
		for i := range details.Elems {
			if d := &details.Elems[i]; member(d, "ttl") == "1h" {
				u.CacheWrite1hTokens += (&counts{v: d}).at(key("inputTokens"))
			}
		}
	}
	u.InputTokens += u.CacheReadTokens + u.CacheWriteTokens
	return u
}

// countedByBedrock reads the metrics at the end of an invoke stream, which count caches beside the input.
func countedByBedrock(_ string, o *counts) Usage {
	u := Usage{
		InputTokens:      o.at(key("inputTokenCount")),
		OutputTokens:     o.at(key("outputTokenCount")),
		CacheReadTokens:  o.at(key("cacheReadInputTokenCount")),
		CacheWriteTokens: o.at(key("cacheWriteInputTokenCount")),
	}
	u.InputTokens += u.CacheReadTokens + u.CacheWriteTokens
	return u
}

// countedByInvoke reads the counts of Llama and of Titan's embeddings, which know no caches.
func countedByInvoke(_ string, o *counts) Usage {
	return Usage{
		InputTokens:  o.at(key("prompt_token_count"), key("inputTextTokenCount")),
		OutputTokens: o.at(key("generation_token_count")),
	}
}

// countedByOllama reads the counts of a local server. Older ones leave prompt_eval_count out where the whole prompt was
// cached: the input then reads 0.
func countedByOllama(_ string, o *counts) Usage {
	return Usage{InputTokens: o.at(key("prompt_eval_count")), OutputTokens: o.at(key("eval_count"))}
}

// countedByCohere reads usage or meta: what the model saw, else what was billed.
func countedByCohere(_ string, o *counts) Usage {
	return Usage{
		InputTokens:     o.at(key("tokens", "input_tokens"), key("billed_units", "input_tokens")),
		OutputTokens:    o.at(key("tokens", "output_tokens"), key("billed_units", "output_tokens")),
		CacheReadTokens: o.at(key("cached_tokens")),
	}
}

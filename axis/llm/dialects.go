package llm

// The providers' ways of counting, as their references describe them. docs/providers.md says the same for people.

// countedByMessages reads the usage of Anthropic messages, of OpenAI's Responses, images and transcriptions, and of Harn.
// They share two names, but Anthropic's input_tokens leaves out what a cache was read or written for, OpenAI's holds it.
func countedByMessages(provider string, o *counts) Usage {
	u := Usage{
		InputTokens:  o.at(keyPath("input_tokens")),
		OutputTokens: o.at(keyPath("output_tokens")),
		CacheReadTokens: o.at(keyPath("cache_read_input_tokens"), keyPath("input_tokens_details", "cached_tokens"),
			keyPath("input_token_details", "cached_tokens"), keyPath("cache_read_tokens")),
		CacheWriteTokens: o.at(keyPath("cache_creation_input_tokens"), keyPath("input_tokens_details", "cache_write_tokens"),
			keyPath("cache_write_tokens")),
		CacheWrite1hTokens: o.at(keyPath("cache_creation", "ephemeral_1h_input_tokens")),
		ReasoningTokens: o.at(keyPath("output_tokens_details", "reasoning_tokens"),
			keyPath("output_tokens_details", "thinking_tokens")),
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
		InputTokens:  o.at(keyPath("prompt_tokens")),
		OutputTokens: o.at(keyPath("completion_tokens")),
		CacheReadTokens: o.at(keyPath("prompt_tokens_details", "cached_tokens"), keyPath("prompt_cache_hit_tokens"),
			keyPath("cached_tokens")),
		CacheWriteTokens: o.at(keyPath("prompt_tokens_details", "cache_write_tokens"),
			keyPath("prompt_tokens_details", "cache_creation_tokens")),
		ReasoningTokens: o.at(keyPath("completion_tokens_details", "reasoning_tokens")),
	}
	if total := o.at(keyPath("total_tokens")); total == u.InputTokens+u.OutputTokens+u.ReasoningTokens {
		u.OutputTokens += u.ReasoningTokens
	}
	return u
}

// countedByGemini reads usageMetadata. promptTokenCount holds what came out of a cache; thoughts and what tools put into
// the prompt are counted beside it and the candidates.
func countedByGemini(_ string, o *counts) Usage {
	u := Usage{
		InputTokens:     o.at(keyPath("promptTokenCount")) + o.at(keyPath("toolUsePromptTokenCount")),
		OutputTokens:    o.at(keyPath("candidatesTokenCount"), keyPath("responseTokenCount")),
		CacheReadTokens: o.at(keyPath("cachedContentTokenCount")),
		ReasoningTokens: o.at(keyPath("thoughtsTokenCount")),
	}
	u.OutputTokens += u.ReasoningTokens
	return u
}

// countedByConverse reads Bedrock's TokenUsage, which counts caches beside inputTokens.
func countedByConverse(_ string, o *counts) Usage {
	u := Usage{
		InputTokens:      o.at(keyPath("inputTokens")),
		OutputTokens:     o.at(keyPath("outputTokens")),
		CacheReadTokens:  o.at(keyPath("cacheReadInputTokens"), keyPath("cacheReadInputTokenCount")),
		CacheWriteTokens: o.at(keyPath("cacheWriteInputTokens"), keyPath("cacheWriteInputTokenCount")),
	}
	if details := list(o.v, "cacheDetails"); details != nil {
		for i := range details.Elems {
			if d := &details.Elems[i]; member(d, "ttl") == "1h" {
				u.CacheWrite1hTokens += (&counts{v: d}).at(keyPath("inputTokens"))
			}
		}
	}
	u.InputTokens += u.CacheReadTokens + u.CacheWriteTokens
	return u
}

// countedByBedrock reads the metrics at the end of an invoke stream, which count caches beside the input.
func countedByBedrock(_ string, o *counts) Usage {
	u := Usage{
		InputTokens:      o.at(keyPath("inputTokenCount")),
		OutputTokens:     o.at(keyPath("outputTokenCount")),
		CacheReadTokens:  o.at(keyPath("cacheReadInputTokenCount")),
		CacheWriteTokens: o.at(keyPath("cacheWriteInputTokenCount")),
	}
	u.InputTokens += u.CacheReadTokens + u.CacheWriteTokens
	return u
}

// countedByInvoke reads the counts of Llama and of Titan's embeddings, which know no caches.
func countedByInvoke(_ string, o *counts) Usage {
	return Usage{
		InputTokens:  o.at(keyPath("prompt_token_count"), keyPath("inputTextTokenCount")),
		OutputTokens: o.at(keyPath("generation_token_count")),
	}
}

// countedByOllama reads the counts of a local server. Older ones leave prompt_eval_count out where the whole prompt was
// cached: the input then reads 0.
func countedByOllama(_ string, o *counts) Usage {
	return Usage{InputTokens: o.at(keyPath("prompt_eval_count")), OutputTokens: o.at(keyPath("eval_count"))}
}

// countedByCohere reads usage or meta: what the model saw, else what was billed.
func countedByCohere(_ string, o *counts) Usage {
	return Usage{
		InputTokens:     o.at(keyPath("tokens", "input_tokens"), keyPath("billed_units", "input_tokens")),
		OutputTokens:    o.at(keyPath("tokens", "output_tokens"), keyPath("billed_units", "output_tokens")),
		CacheReadTokens: o.at(keyPath("cached_tokens")),
	}
}

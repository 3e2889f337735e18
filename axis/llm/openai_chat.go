package llm

import "github.com/tapedeck-dev/tapedeck/internal/canonjson"

var chatKeys = &keys{
	messages: "messages",
	surface: []string{
		"tools", "tool_choice", "functions", "function_call", "reasoning", "reasoning_effort", "thinking",
	},
	ignored: openAIIgnored,
	omitted: []exempt{
		{"cache_control, copilot_cache_control of messages, parts and tools", "agents move the marks at every turn"},
		{"id, signature, data of reasoning_details; reasoning_opaque", "opaque echoes of OpenRouter and GitHub Copilot"},
		{"extra_content.google.thought_signature, provider_specific_fields.thought_signature(s) of messages and tool calls",
			"opaque echoes of Gemini behind this protocol"},
		{"id of a tool call and tool_call_id of its result", "numbered by first appearance: the pairing counts, the name does not"},
		{"a bare string as content", "read as the list of one text part that it is short for"},
	},
}

// readChat takes a body apart that has a list of messages; the model may stand in the path, as Azure has it.
func readChat(body *canonjson.Value, k *keys) (call, bool) {
	messages := list(body, "messages")
	if messages == nil {
		return call{}, false
	}
	var ids pairs
	each(messages, func(m *canonjson.Value) { chatMessage(m, &ids) })
	at(body, "tools", func(tools *canonjson.Value) { each(tools, dropCacheMarks) })
	c := call{
		model:          member(body, "model"),
		messages:       canonjson.Member{Key: "messages", Value: *messages},
		systemMessages: withRole(messages, "system", "developer"),
		user:           firstRole(messages, "user"),
	}
	c.surface, c.params = k.split(body, "messages", "model")
	return c, true
}

// chatMessage takes off a message what does not count.
func chatMessage(m *canonjson.Value, ids *pairs) {
	dropCacheMarks(m)
	drop(m, "reasoning_opaque")
	dropThoughtSignatures(m)
	ids.number(m, "tool_call_id")
	at(m, "content", func(content *canonjson.Value) {
		listed(content, "text")
		each(content, dropCacheMarks)
	})
	at(m, "reasoning_details", func(details *canonjson.Value) {
		each(details, func(d *canonjson.Value) { drop(d, "id", "signature", "data") })
	})
	at(m, "tool_calls", func(calls *canonjson.Value) {
		each(calls, func(call *canonjson.Value) {
			ids.number(call, "id")
			dropThoughtSignatures(call)
		})
	})
}

func dropCacheMarks(v *canonjson.Value) { drop(v, "cache_control", "copilot_cache_control") }

// dropThoughtSignatures takes off what Gemini adds behind this protocol, as Google and LiteLLM spell it.
func dropThoughtSignatures(v *canonjson.Value) {
	at(v, "extra_content", func(extra *canonjson.Value) {
		at(extra, "google", func(google *canonjson.Value) { drop(google, "thought_signature") })
	})
	at(v, "provider_specific_fields", func(fields *canonjson.Value) {
		drop(fields, "thought_signature", "thought_signatures")
	})
}

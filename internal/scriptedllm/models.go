package scriptedllm

import (
	"net/http"
	"time"
)

// The lists of models, a few each, in the shape of the provider.

// modelsTime is when a model was made.
var modelsTime = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func anthropicModels(*http.Request, string, []byte) (object, error) {
	const id = "claude-sonnet-4-5"
	return object{
		"data": []object{{
			"type": "model", "id": id, "display_name": "Claude Sonnet 4.5", "created_at": "2025-09-29T00:00:00Z",
		}},
		"has_more": false, "first_id": id, "last_id": id,
	}, nil
}

func openaiModels(*http.Request, string, []byte) (object, error) {
	var data []object
	for _, id := range []string{"gpt-4o", "gpt-5", "gpt-5-codex"} {
		data = append(data, object{"id": id, "object": "model", "created": modelsTime.Unix(), "owned_by": "openai"})
	}
	return object{"object": "list", "data": data}, nil
}

func geminiModels(*http.Request, string, []byte) (object, error) {
	return object{"models": []object{{
		"name": "models/gemini-2.5-flash", "version": "001", "displayName": "Gemini 2.5 Flash",
		"inputTokenLimit": 1 << 20, "outputTokenLimit": 1 << 16,
		"supportedGenerationMethods": []string{"generateContent", "streamGenerateContent"},
	}}}, nil
}

func ollamaModels(*http.Request, string, []byte) (object, error) {
	return object{"models": []object{{
		"name": "qwen3:4b", "model": "qwen3:4b", "modified_at": modelsTime.Format(time.RFC3339Nano), "size": 2_497_293_931,
		"digest": "359d7dd4bcdab3d86b87d73ac27966f4dbb9f5efdfcc75d34a8764a09474fae7",
		"details": object{
			"parent_model": "", "format": "gguf", "family": "qwen3", "families": []string{"qwen3"}, "parameter_size": "4.0B",
			"quantization_level": "Q4_K_M",
		},
	}}}, nil
}

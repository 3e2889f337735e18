package scriptedllm

import "net/http"

// tokens is the length of a request in tokens, as far as anyone looks.
func tokens(body []byte) int { return len(body)/4 + 1 }

// anthropicCount is https://docs.anthropic.com/en/api/messages-count-tokens.
func anthropicCount(r *http.Request, body []byte) (object, error) {
	_, err := anthropic{}.parse(r, body)
	return object{"input_tokens": tokens(body)}, err
}

// responsesCount is https://platform.openai.com/docs/api-reference/responses/input-tokens.
func responsesCount(r *http.Request, body []byte) (object, error) {
	_, err := responses{}.parse(r, body)
	return object{"object": "response.input_tokens", "input_tokens": tokens(body)}, err
}

// geminiCount is https://ai.google.dev/api/tokens.
func geminiCount(_ *http.Request, body []byte) (object, error) {
	n := tokens(body)
	return object{
		"totalTokens": n, "promptTokensDetails": []object{{"modality": "TEXT", "tokenCount": n}},
	}, nil
}

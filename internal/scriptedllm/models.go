package scriptedllm

import "net/http"

// models lists a few models in the shape of the provider that the request is for: Anthropic and OpenAI share a path and
// are told apart by the header that every Anthropic client sends.
func (e *Endpoint) models(w http.ResponseWriter, r *http.Request) {
	s := newSink(w, r, &e.opts)
	defer s.end()
	d, list := e.listing(r)
	d.header(w.Header(), e.ids)
	if !e.admits(d.key(r)) {
		e.fail(d, s, r, nil, http.StatusUnauthorized, "invalid API key")
		return
	}
	e.log(e.request(r, nil, d.provider(), http.StatusOK))
	s.json(http.StatusOK, list)
}

func (e *Endpoint) listing(r *http.Request) (dialect, object) {
	switch {
	case r.URL.Path == "/v1beta/models":
		return gemini{}, geminiModels()
	case r.Header.Get("Anthropic-Version") != "":
		return anthropic{}, anthropicModels()
	}
	return chat{}, openaiModels()
}

func anthropicModels() object {
	const id = "claude-sonnet-4-5"
	return object{
		"data": []object{{
			"type": "model", "id": id, "display_name": "Claude Sonnet 4.5", "created_at": "2025-09-29T00:00:00Z",
		}},
		"has_more": false, "first_id": id, "last_id": id,
	}
}

func openaiModels() object {
	var data []object
	for _, id := range []string{"gpt-4o", "gpt-5", "gpt-5-codex"} {
		data = append(data, object{"id": id, "object": "model", "created": seededTime.Unix(), "owned_by": "openai"})
	}
	return object{"object": "list", "data": data}
}

func geminiModels() object {
	return object{"models": []object{{
		"name": "models/gemini-2.5-flash", "version": "001", "displayName": "Gemini 2.5 Flash",
		"inputTokenLimit": 1 << 20, "outputTokenLimit": 1 << 16,
		"supportedGenerationMethods": []string{"generateContent", "streamGenerateContent"},
	}}}
}

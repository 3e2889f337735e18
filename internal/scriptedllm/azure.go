package scriptedllm

import (
	"encoding/json"
	"net/http"
)

// azure is OpenAI's format under Azure's paths: https://learn.microsoft.com/azure/ai-services/openai/reference.
type azure struct{ dialect }

func (azure) provider() string { return "azure" }

func (azure) key(r *http.Request) string {
	if key := r.Header.Get("Api-Key"); key != "" {
		return key
	}
	return bearer(r)
}

func (azure) header(h http.Header, ids *ids) {
	h.Set("Apim-Request-Id", ids.fresh("", hexits, 32))
	h.Set("X-Ms-Region", "East US")
}

// parse takes the model from the path where the body does not name it.
func (a azure) parse(r *http.Request, body []byte) (*turn, error) {
	return a.dialect.parse(r, withModel(body, r.PathValue("deployment")))
}

// withModel returns a body that names a model. What is not an object stays as it is: reading it says what is wrong.
func withModel(body []byte, model string) []byte {
	var o map[string]json.RawMessage
	if json.Unmarshal(body, &o) != nil || o == nil || o["model"] != nil || model == "" {
		return body
	}
	o["model"] = encode(model)
	return encode(o)
}

package scriptedllm

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"net/http"
	"strings"
)

// dimensions is the length of every embedding.
const dimensions = 8

// inputs are one text or a list of them.
type inputs []string

// UnmarshalJSON takes both forms.
func (in *inputs) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) == nil {
		*in = inputs{text}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(in))
}

// vector is the embedding of a text: any two texts have different ones, and a text the same one always.
func vector(text string) []float32 {
	h := fnv.New64a()
	h.Write([]byte(text))
	rng := rand.New(rand.NewPCG(h.Sum64(), dimensions))
	v := make([]float32, dimensions)
	for i := range v {
		v[i] = rng.Float32()*2 - 1
	}
	return v
}

// plains are the operations that make no model speak.
var plains = map[string]plain{
	"anthropic count_tokens":        countAs("input_tokens"),
	"openai responses.input_tokens": countAs("input_tokens"),
	"gemini countTokens":            countAs("totalTokens"),
	"openai embeddings":             openaiEmbed,
	"gemini embedContent":           geminiEmbed,
	"gemini batchEmbedContents":     geminiEmbedBatch,
	"ollama embed":                  ollamaEmbed,
}

// countAs answers with the length of the request in tokens.
func countAs(key string) plain {
	return func(_ *http.Request, _ string, body []byte) (object, error) {
		return object{key: tokens(len(body))}, nil
	}
}

// openaiEmbed is https://platform.openai.com/docs/api-reference/embeddings.
func openaiEmbed(_ *http.Request, model string, body []byte) (object, error) {
	var q struct {
		Model  string `json:"model"`
		Input  inputs `json:"input"`
		Format string `json:"encoding_format"`
	}
	if err := json.Unmarshal(body, &q); err != nil {
		return nil, err
	}
	if len(q.Input) == 0 {
		return nil, errors.New("input: field required")
	}
	var data []object
	for i, text := range q.Input {
		embedding := any(vector(text))
		if q.Format == "base64" {
			embedding = packed(vector(text))
		}
		data = append(data, object{"object": "embedding", "index": i, "embedding": embedding})
	}
	n := tokens(len(strings.Join(q.Input, "")))
	return object{
		"object": "list", "data": data, "model": cmp.Or(model, q.Model), "usage": object{"prompt_tokens": n, "total_tokens": n},
	}, nil
}

// packed is a vector as base64 of its little-endian floats.
func packed(v []float32) string {
	var b []byte
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return base64.StdEncoding.EncodeToString(b)
}

type geminiEmbedRequest struct {
	Content struct {
		Parts []struct {
			Text string `json:"text"`
		} `json:"parts"`
	} `json:"content"`
}

func (q geminiEmbedRequest) values() (object, error) {
	if len(q.Content.Parts) == 0 {
		return nil, errors.New("content is required")
	}
	var texts []string
	for _, p := range q.Content.Parts {
		texts = append(texts, p.Text)
	}
	return object{"values": vector(strings.Join(texts, "\n"))}, nil
}

// geminiEmbed is https://ai.google.dev/api/embeddings.
func geminiEmbed(_ *http.Request, _ string, body []byte) (object, error) {
	var q geminiEmbedRequest
	if err := json.Unmarshal(body, &q); err != nil {
		return nil, err
	}
	values, err := q.values()
	return object{"embedding": values}, err
}

// geminiEmbedBatch is several at once.
func geminiEmbedBatch(_ *http.Request, _ string, body []byte) (object, error) {
	var q struct {
		Requests []geminiEmbedRequest `json:"requests"`
	}
	if err := json.Unmarshal(body, &q); err != nil {
		return nil, err
	}
	list := []object{}
	for _, one := range q.Requests {
		values, err := one.values()
		if err != nil {
			return nil, err
		}
		list = append(list, values)
	}
	return object{"embeddings": list}, nil
}

// ollamaEmbed is https://github.com/ollama/ollama/blob/main/docs/api.md, "Generate Embeddings".
func ollamaEmbed(_ *http.Request, _ string, body []byte) (object, error) {
	var q struct {
		Model string `json:"model"`
		Input inputs `json:"input"`
	}
	if err := json.Unmarshal(body, &q); err != nil {
		return nil, err
	}
	var list [][]float32
	for _, text := range q.Input {
		list = append(list, vector(text))
	}
	return object{
		"model": q.Model, "embeddings": list, "total_duration": 14_143_917, "load_duration": 1_019_500,
		"prompt_eval_count": tokens(len(strings.Join(q.Input, ""))),
	}, nil
}

func titanEmbeds(model string) bool { return strings.Contains(model, "titan-embed") }

// titanEmbed is Amazon's own embedding model on Bedrock.
func titanEmbed(_ *http.Request, _ string, body []byte) (object, error) {
	var q struct {
		InputText string `json:"inputText"`
	}
	if err := json.Unmarshal(body, &q); err != nil {
		return nil, err
	}
	return object{"embedding": vector(q.InputText), "inputTextTokenCount": tokens(len(q.InputText))}, nil
}

package scriptedllm

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"mime"
	"mime/multipart"
	"net/http"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/llm"
)

// A plain answers a request that makes no model speak: a list, a count, an embedding, an upload. model is that of the path, "" for none.
type plain func(r *http.Request, model string, body []byte) (object, error)

// plains are those that are told by their operation.
var plains = map[string]plain{
	"anthropic count_tokens":        countAs("input_tokens"),
	"openai responses.input_tokens": countAs("input_tokens"),
	"gemini countTokens":            countAs("totalTokens"),
	"openai embeddings":             embedding(openaiEmbed),
	"gemini embedContent":           embedding(geminiEmbed),
	"gemini batchEmbedContents":     embedding(geminiEmbed),
	"ollama embed":                  embedding(ollamaEmbed),
}

// countAs answers with the length of the request in tokens.
func countAs(key string) plain {
	return func(_ *http.Request, _ string, body []byte) (object, error) {
		return object{key: tokens(len(body))}, nil
	}
}

// list answers with what is listed, always.
func list(text string) plain {
	return func(*http.Request, string, []byte) (out object, err error) {
		return out, json.Unmarshal([]byte(text), &out)
	}
}

// The lists of models, a few each, in the shape of the provider.
var (
	anthropicModels = list(`{"data":[{"type":"model","id":"claude-sonnet-4-5","display_name":"Claude Sonnet 4.5",
		"created_at":"2025-09-29T00:00:00Z"}],"has_more":false,"first_id":"claude-sonnet-4-5","last_id":"claude-sonnet-4-5"}`)
	openaiModels = list(`{"object":"list","data":[{"id":"gpt-4o","object":"model","created":1767225600,"owned_by":"openai"},
		{"id":"gpt-5","object":"model","created":1767225600,"owned_by":"openai"},
		{"id":"gpt-5-codex","object":"model","created":1767225600,"owned_by":"openai"}]}`)
	geminiModels = list(`{"models":[{"name":"models/gemini-2.5-flash","version":"001","displayName":"Gemini 2.5 Flash",
		"inputTokenLimit":1048576,"outputTokenLimit":65536,"supportedGenerationMethods":["generateContent","streamGenerateContent"]}]}`)
	ollamaModels = list(`{"models":[{"name":"qwen3:4b","model":"qwen3:4b","modified_at":"2026-01-01T00:00:00Z","size":2497293931,
		"digest":"359d7dd4bcdab3d86b87d73ac27966f4dbb9f5efdfcc75d34a8764a09474fae7","details":{"parent_model":"","format":"gguf",
		"family":"qwen3","families":["qwen3"],"parameter_size":"4.0B","quantization_level":"Q4_K_M"}}]}`)
)

// dimensions is the length of every embedding.
const dimensions = 8

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

// packed is a vector as base64 of its little-endian floats.
func packed(v []float32) string {
	var b []byte
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return base64.StdEncoding.EncodeToString(b)
}

// An embedRequest is what is to be embedded, as any of the providers has it.
type embedRequest struct {
	Model     string          `json:"model"`
	Input     inputs          `json:"input"`           // of OpenAI and Ollama
	Format    string          `json:"encoding_format"` // of OpenAI
	InputText string          `json:"inputText"`       // of Titan
	Requests  []geminiContent `json:"requests"`        // of Gemini, as one or several
	geminiContent
}

type geminiContent struct {
	Content struct {
		Parts []struct {
			Text string `json:"text"`
		} `json:"parts"`
	} `json:"content"`
}

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

// embedding answers a request to embed, whose tokens are n.
func embedding(answer func(q *embedRequest, n int64) (object, error)) plain {
	return func(_ *http.Request, model string, body []byte) (object, error) {
		var q embedRequest
		if err := json.Unmarshal(body, &q); err != nil {
			return nil, err
		}
		q.Model = cmp.Or(model, q.Model)
		return answer(&q, tokens(len(strings.Join(q.Input, ""))+len(q.InputText)))
	}
}

// openaiEmbed is https://platform.openai.com/docs/api-reference/embeddings.
func openaiEmbed(q *embedRequest, n int64) (object, error) {
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
	return object{"object": "list", "data": data, "model": q.Model, "usage": object{"prompt_tokens": n, "total_tokens": n}}, nil
}

// geminiEmbed is https://ai.google.dev/api/embeddings.
func geminiEmbed(q *embedRequest, _ int64) (object, error) {
	values := func(c *geminiContent) object {
		text := ""
		for _, p := range c.Content.Parts {
			text += p.Text + "\n"
		}
		return object{"values": vector(text)}
	}
	if q.Requests == nil && len(q.Content.Parts) == 0 {
		return nil, errors.New("content is required")
	}
	if q.Requests == nil {
		return object{"embedding": values(&q.geminiContent)}, nil
	}
	all := []object{}
	for i := range q.Requests {
		all = append(all, values(&q.Requests[i]))
	}
	return object{"embeddings": all}, nil
}

// ollamaEmbed is https://github.com/ollama/ollama/blob/main/docs/api.md, "Generate Embeddings".
func ollamaEmbed(q *embedRequest, n int64) (object, error) {
	var all [][]float32
	for _, text := range q.Input {
		all = append(all, vector(text))
	}
	return object{
		"model": q.Model, "embeddings": all, "total_duration": 14_143_917, "load_duration": 1_019_500, "prompt_eval_count": n,
	}, nil
}

func titanEmbeds(model string) bool { return strings.Contains(model, "titan-embed") }

// titanEmbed is Amazon's own embedding model on Bedrock.
func titanEmbed(q *embedRequest, n int64) (object, error) {
	return object{"embedding": vector(q.InputText), "inputTextTokenCount": n}, nil
}

// An upload is a file that came as multipart/form-data, with the form around it.
type upload struct {
	*multipart.FileHeader
	form *multipart.Form
}

// uploadOf reads the file of a form.
func uploadOf(r *http.Request, body []byte) (*upload, error) {
	_, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		return nil, err
	}
	form, err := multipart.NewReader(bytes.NewReader(body), params["boundary"]).ReadForm(maxBody)
	if err != nil {
		return nil, err
	}
	if len(form.File["file"]) == 0 {
		return nil, errors.New("file: field required")
	}
	return &upload{form.File["file"][0], form}, nil
}

// anthropicFile is https://docs.anthropic.com/en/api/files-create.
func (e *Endpoint) anthropicFile(r *http.Request, _ string, body []byte) (object, error) {
	u, err := uploadOf(r, body)
	if err != nil {
		return nil, err
	}
	return object{
		"type": "file", "id": e.ids.Fresh("file_011C", llm.Base62, 20), "filename": u.Filename, "mime_type": u.Header.Get("Content-Type"),
		"size_bytes": u.Size, "created_at": e.ids.Now().UTC().Format(time.RFC3339Nano), "downloadable": false,
	}, nil
}

// openaiFile is https://platform.openai.com/docs/api-reference/files/create.
func (e *Endpoint) openaiFile(r *http.Request, _ string, body []byte) (object, error) {
	u, err := uploadOf(r, body)
	if err != nil {
		return nil, err
	}
	return object{
		"object": "file", "id": e.ids.Fresh("file-", llm.Base62, 22), "purpose": strings.Join(u.form.Value["purpose"], ""), "filename": u.Filename,
		"bytes": u.Size, "created_at": e.ids.Now().Unix(), "expires_at": nil, "status": "processed",
		"status_details": nil,
	}, nil
}

// geminiUpload is the resumable upload of https://ai.google.dev/api/files: a first request names the file and gets the
// URL for the bytes, a second one sends them all.
func (e *Endpoint) geminiUpload(w http.ResponseWriter, r *http.Request) {
	e.plain(w, r, "gemini", "", func(r *http.Request, _ string, body []byte) (object, error) {
		command := r.Header.Get("X-Goog-Upload-Command")
		switch {
		case command == "start":
			url := "https://" + r.Host + r.URL.Path + "?upload_id=" + e.ids.Fresh("A", llm.Base62, 40) + "&upload_protocol=resumable"
			w.Header().Set("X-Goog-Upload-Status", "active")
			w.Header().Set("X-Goog-Upload-Url", url)
			return object{}, nil
		case strings.Contains(command, "finalize"):
			w.Header().Set("X-Goog-Upload-Status", "final")
			return object{"file": e.geminiFile(r, body)}, nil
		}
		return nil, fmt.Errorf("upload command %q: want start, or upload with finalize", command)
	})
}

func (e *Endpoint) geminiFile(r *http.Request, content []byte) object {
	name := "files/" + e.ids.Fresh("", "0123456789abcdefghijklmnopqrstuvwxyz", 12)
	now := e.ids.Now().UTC()
	sum := sha256.Sum256(content)
	return object{
		"name": name, "mimeType": "text/plain", "sizeBytes": fmt.Sprint(len(content)),
		"createTime": now.Format(time.RFC3339Nano), "updateTime": now.Format(time.RFC3339Nano),
		"expirationTime": now.Add(48 * time.Hour).Format(time.RFC3339Nano),
		"sha256Hash":     base64.StdEncoding.EncodeToString([]byte(hex.EncodeToString(sum[:]))),
		"uri":            "https://" + r.Host + "/v1beta/" + name, "state": "ACTIVE", "source": "UPLOADED",
	}
}

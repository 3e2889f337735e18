//go:build linux

package sdk

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
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/internal/scriptedllm"
)

type object = map[string]any

// maxForm bounds the form of an upload, in bytes.
const maxForm = 64 << 20

// embeddings and uploads are what the SDKs ask for beside what a scripted model says.
func embeddingsAndUploads() func(w http.ResponseWriter, r *http.Request) (string, scriptedllm.Plain) {
	f := &files{ids: llm.NewIDs(0)}
	return func(w http.ResponseWriter, r *http.Request) (string, scriptedllm.Plain) {
		provider, endpoint, model := llm.Locate(r.URL.Path)
		switch {
		case r.Method != http.MethodPost:
		case r.URL.Path == "/v1/files" && r.Header.Get("Anthropic-Version") != "":
			return "anthropic", func(body []byte) (object, error) { return f.anthropic(r, body) }
		case r.URL.Path == "/v1/files":
			return "openai", func(body []byte) (object, error) { return f.openai(r, body) }
		case r.URL.Path == "/upload/v1beta/files":
			return "gemini", func(body []byte) (object, error) { return f.geminiUpload(w, r, body) }
		case provider == "bedrock" && strings.Contains(model, "titan-embed"):
			return provider, embedding(model, titanEmbed)
		case embeds[provider+" "+endpoint] != nil:
			return provider, embedding(model, embeds[provider+" "+endpoint])
		}
		return "", nil
	}
}

// embeds are told by their operation.
var embeds = map[string]func(q *embedRequest, n int64) (object, error){
	"openai embeddings":         openaiEmbed,
	"gemini embedContent":       geminiEmbed,
	"gemini batchEmbedContents": geminiEmbed,
	"ollama embed":              ollamaEmbed,
}

func tokens(bytes int) int64 { return int64(bytes/4 + 1) }

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
func embedding(model string, answer func(q *embedRequest, n int64) (object, error)) scriptedllm.Plain {
	return func(body []byte) (object, error) {
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
	form, err := multipart.NewReader(bytes.NewReader(body), params["boundary"]).ReadForm(maxForm)
	if err != nil {
		return nil, err
	}
	if len(form.File["file"]) == 0 {
		return nil, errors.New("file: field required")
	}
	return &upload{form.File["file"][0], form}, nil
}

// files answers uploads.
type files struct{ ids *llm.IDs }

// anthropic is https://docs.anthropic.com/en/api/files-create.
func (e *files) anthropic(r *http.Request, body []byte) (object, error) {
	u, err := uploadOf(r, body)
	if err != nil {
		return nil, err
	}
	return object{
		"type": "file", "id": e.ids.Fresh("file_011C", llm.Base62, 20), "filename": u.Filename, "mime_type": u.Header.Get("Content-Type"),
		"size_bytes": u.Size, "created_at": e.ids.Now().UTC().Format(time.RFC3339Nano), "downloadable": false,
	}, nil
}

// openai is https://platform.openai.com/docs/api-reference/files/create.
func (e *files) openai(r *http.Request, body []byte) (object, error) {
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
func (e *files) geminiUpload(w http.ResponseWriter, r *http.Request, body []byte) (object, error) {
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
}

func (e *files) geminiFile(r *http.Request, content []byte) object {
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

// TestEmbeddingsAndUploads holds what is answered here to the providers' shapes.
func TestEmbeddingsAndUploads(t *testing.T) {
	answer := func(path, kind string, body []byte, headers ...string) (http.Header, string) {
		r := httptest.NewRequest(http.MethodPost, path, bytes.NewReader(body))
		r.Header.Set("Content-Type", kind)
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		w := httptest.NewRecorder()
		scriptedllm.New(&scriptedllm.Options{More: embeddingsAndUploads()}).ServeHTTP(w, r)
		return w.Header(), w.Body.String()
	}
	has := func(got string, parts ...string) {
		for _, part := range parts {
			if !strings.Contains(got, part) {
				t.Errorf("%s: want %s", got, part)
			}
		}
	}
	for path, body := range map[string]string{
		"/v1/embeddings": `{"model":"m","input":["a","b"]}`, "/v1beta/models/m:embedContent": `{"content":{"parts":[{"text":"a"}]}}`,
		"/v1beta/models/m:batchEmbedContents": `{"requests":[{"content":{"parts":[{"text":"a"}]}}]}`, "/api/embed": `{"model":"m","input":"a"}`,
		"/model/amazon.titan-embed-text-v2:0/invoke": `{"inputText":"hi"}`,
	} {
		_, got := answer(path, "application/json", []byte(body))
		has(got, `"embedding`)
	}
	_, got := answer("/v1/embeddings", "application/json", []byte(`{"model":"m","input":"a","encoding_format":"base64"}`))
	has(got, packed(vector("a")))
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	part, err := w.CreateFormFile("file", "a.txt")
	if err != nil {
		t.Fatal(err)
	}
	part.Write([]byte("hello"))
	w.WriteField("purpose", "user_data")
	w.Close()
	_, got = answer("/v1/files", w.FormDataContentType(), form.Bytes())
	has(got, `"filename":"a.txt"`, `"bytes":5`, `"purpose":"user_data"`)
	_, got = answer("/v1/files", w.FormDataContentType(), form.Bytes(), "Anthropic-Version", "2023-06-01")
	has(got, `"filename":"a.txt"`, `"size_bytes":5`)
	header, _ := answer("/upload/v1beta/files", "", nil, "X-Goog-Upload-Command", "start")
	has(header.Get("X-Goog-Upload-Url"), "/upload/v1beta/files?upload_id=")
	header, got = answer("/upload/v1beta/files?upload_id=1", "", []byte("x"), "X-Goog-Upload-Command", "upload, finalize")
	has(header.Get("X-Goog-Upload-Status")+got, "final", "ACTIVE")
}

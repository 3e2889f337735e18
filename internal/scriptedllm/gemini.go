package scriptedllm

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// gemini is generateContent and streamGenerateContent: https://ai.google.dev/api/generate-content.
type gemini struct{}

func (gemini) provider() string { return "gemini" }

func (gemini) key(r *http.Request) string {
	if key := r.Header.Get("X-Goog-Api-Key"); key != "" {
		return key
	}
	return r.URL.Query().Get("key")
}

func (gemini) header(h http.Header, _ *ids) {
	h.Set("Server", "scaffolding on HTTPServer2")
	h.Add("Vary", "Origin")
	h.Add("Vary", "X-Origin")
	h.Add("Vary", "Referer")
}

type geminiRequest struct {
	Contents []struct {
		Role  string       `json:"role"`
		Parts []geminiPart `json:"parts"`
	} `json:"contents"`
	SystemInstruction struct {
		Parts []geminiPart `json:"parts"`
	} `json:"systemInstruction"`
	Tools []struct {
		FunctionDeclarations []struct {
			Name                 string  `json:"name"`
			Parameters           *schema `json:"parameters"`
			ParametersJSONSchema *schema `json:"parametersJsonSchema"`
		} `json:"functionDeclarations"`
	} `json:"tools"`
	GenerationConfig struct {
		ResponseSchema     *schema `json:"responseSchema"`
		ResponseJSONSchema *schema `json:"responseJsonSchema"`
		ThinkingConfig     struct {
			IncludeThoughts bool `json:"includeThoughts"`
		} `json:"thinkingConfig"`
	} `json:"generationConfig"`
}

type geminiPart struct {
	Text             string `json:"text"`
	FunctionResponse *struct {
		Response map[string]any `json:"response"` // by convention "output" or "error"
	} `json:"functionResponse"`
}

// geminiCall is the model and the method of a path.
func geminiCall(r *http.Request) (model, method string) {
	model, method, _ = strings.Cut(r.PathValue("call"), ":")
	return model, method
}

func (d gemini) parse(r *http.Request, body []byte) (*turn, error) {
	model, method := geminiCall(r)
	if method != "generateContent" && method != "streamGenerateContent" {
		return nil, fmt.Errorf("method %q is not supported for model %q", method, model)
	}
	var q geminiRequest
	if err := json.Unmarshal(body, &q); err != nil {
		return nil, err
	}
	t := d.turn(&q)
	t.model = model
	t.stream = method == "streamGenerateContent"
	t.array = t.stream && r.URL.Query().Get("alt") != "sse"
	return t, t.check()
}

// turn is what a request asks, but for the model.
func (d gemini) turn(q *geminiRequest) *turn {
	t := &turn{}
	t.format = firstSchema(q.GenerationConfig.ResponseJSONSchema, q.GenerationConfig.ResponseSchema)
	t.think = q.GenerationConfig.ThinkingConfig.IncludeThoughts
	t.system = d.message(q.SystemInstruction.Parts, false).joined()
	for _, c := range q.Contents {
		t.messages = append(t.messages, d.message(c.Parts, c.Role == "model"))
	}
	for _, x := range q.Tools {
		for _, f := range x.FunctionDeclarations {
			t.tools = append(t.tools, tool{name: f.Name, schema: firstSchema(f.ParametersJSONSchema, f.Parameters, &schema{})})
		}
	}
	return t
}

// firstSchema returns the first that is there.
func firstSchema(list ...*schema) *schema {
	for _, s := range list {
		if s != nil {
			return s
		}
	}
	return nil
}

func (gemini) message(parts []geminiPart, model bool) message {
	m := message{model: model}
	for _, p := range parts {
		switch {
		case p.FunctionResponse != nil:
			m.results = append(m.results, geminiResult(p.FunctionResponse.Response))
		case p.Text != "":
			m.texts = append(m.texts, p.Text)
		}
	}
	return m
}

func geminiResult(response map[string]any) result {
	if text, ok := response["error"].(string); ok {
		return result{text: text, failed: true}
	}
	if text, ok := response["output"].(string); ok {
		return result{text: text}
	}
	return result{text: string(encode(response))}
}

func (d gemini) whole(re *reply) object {
	id := re.ids.fresh("", base62, 22)
	parts := []object{}
	for _, p := range d.parts(re, []string{re.answer.thought}, []string{re.answer.text}) {
		parts = append(parts, p.part)
	}
	return d.chunk(re, id, parts, true)
}

// A geminiOut is a part of an answer, and which pieces of the text it is: those that are empty make no part of their own.
type geminiOut struct {
	part   object
	pieces []int
}

// parts are the thoughts, the texts, and then the calls, each one part.
func (gemini) parts(re *reply, thoughts, texts []string) (out []geminiOut) {
	for _, thought := range thoughts {
		if thought != "" {
			out = append(out, geminiOut{part: object{"text": thought, "thought": true}})
		}
	}
	var pieces []int
	for i, text := range texts {
		if pieces = append(pieces, i); text != "" {
			out = append(out, geminiOut{object{"text": text}, pieces})
			pieces = nil
		}
	}
	for _, c := range re.answer.calls {
		out = append(out, geminiOut{object{"functionCall": object{
			"id": re.callID(c, "", base62, 16), "name": c.name, "args": c.args,
		}}, pieces})
		pieces = nil
	}
	return out
}

// chunk is one GenerateContentResponse. The last one has the reason why the model stopped, STOP after a call as well.
func (gemini) chunk(re *reply, id string, parts []object, last bool) object {
	candidate := object{"index": 0, "content": object{"role": "model", "parts": parts}}
	usage := object{
		"promptTokenCount": re.inTokens, "totalTokenCount": re.inTokens,
		"promptTokensDetails": []object{{"modality": "TEXT", "tokenCount": re.inTokens}},
	}
	if last {
		candidate["finishReason"] = geminiStop(re.stop())
		usage["candidatesTokenCount"] = re.outTokens()
		usage["totalTokenCount"] = re.inTokens + re.outTokens()
	}
	return object{
		"candidates": []object{candidate}, "usageMetadata": usage, "modelVersion": re.turn.model, "responseId": id,
	}
}

// geminiStop is why the model stopped in Gemini's words.
func geminiStop(stop string) string {
	switch stop {
	case StopEnd, StopTool:
		return "STOP"
	case StopLength:
		return "MAX_TOKENS"
	}
	return stop
}

// stream sends a part a chunk: a call is never cut into pieces.
func (d gemini) stream(re *reply, s *sink) {
	if re.turn.array {
		s.begin("application/json; charset=UTF-8")
	} else {
		s.begin("text/event-stream")
	}
	id := re.ids.fresh("", base62, 22)
	parts := d.parts(re, re.pieces(re.answer.thought), re.texts())
	if len(parts) == 0 {
		parts = []geminiOut{{part: object{"text": ""}}}
	}
	for i, p := range parts {
		for _, n := range p.pieces {
			re.tell(n)
		}
		last := i == len(parts)-1
		d.send(s, re.turn.array, string(encode(d.chunk(re, id, []object{p.part}, last))), i == 0, last)
	}
}

// send puts one chunk on the wire: as an event, which ends in CR LF here, or as an element of an array that is open
// until the last.
func (gemini) send(s *sink, array bool, chunk string, first, last bool) {
	switch {
	case !array:
		s.send("data: " + chunk + "\r\n\r\n")
	case first && last:
		s.send("[" + chunk + "]\n")
	case first:
		s.send("[" + chunk)
	case last:
		s.send("\n,\r\n" + chunk + "\n]\n")
	default:
		s.send("\n,\r\n" + chunk)
	}
}

func (gemini) failure(status int, message string) object {
	return object{"error": object{"code": status, "message": message, "status": geminiStatus(status)}}
}

func geminiStatus(status int) string {
	switch {
	case status == http.StatusUnauthorized:
		return "UNAUTHENTICATED"
	case status == http.StatusTooManyRequests:
		return "RESOURCE_EXHAUSTED"
	case status >= http.StatusInternalServerError:
		return "INTERNAL"
	}
	return "INVALID_ARGUMENT"
}

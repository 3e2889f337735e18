package llm

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"iter"
	"mime"
	"mime/multipart"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
)

// An endpoint is one operation of one provider: where it is found and what of its requests counts.
type endpoint struct {
	provider, name string // as on the tape
	paths          []pattern
	// plain says why a request is no llm_call but plain HTTP; such a one is matched by method, URL and what keys and read
	// leave of its body. "" for an llm_call.
	plain string
	keys  *keys
	// read takes a JSON body apart and may change it; false where it is not of the endpoint's shape, and then it has changed
	// nothing. nil takes none.
	read func(body *canonjson.Value, k *keys) (call, bool)
	// form takes the parts of a multipart body apart. nil takes none.
	form func(parts []part, k *keys) (call, bool)
	// turns follows the messages of a WebSocket, whose turns are what read is given: GET requests of ws:// and wss://, folded. nil for
	// an endpoint that is spoken to by POST.
	turns func(s *socket) exchange.Turns
	talk  *protocol // how its conversation is written; nil where it has none. Bedrock's follows from the request
}

// A call is what an endpoint reads out of the body of a request.
type call struct {
	model    string             // "" where only the path names it
	surface  []canonjson.Member // what is matched as content, but for the messages
	messages canonjson.Member   // the list of messages, under the key that it has in the body; no key for none
	params   []canonjson.Member // everything else that counts
	// Where the opening of the conversation stands: the key of the system text in surface ("" for none), the indices of
	// the messages that hold system text, and of the first one of the user (-1 for none). Without messages all of the
	// surface is the opening.
	systemKey      string
	systemMessages []int
	user           int
}

// keys sorts the top level of a body. A key that is in no list is a parameter, so that nothing is ignored silently. What is left out or
// rewritten inside the surface the reading code says, and docs/reference/providers.md.
type keys struct {
	messages string // the list of messages; "" for none
	surface  []string
	ignored  []exempt // top-level keys
}

// An exempt is what does not count, and why.
type exempt struct {
	what, why string
}

// modelKey is what names the model in most bodies. One that is no string counts as a parameter.
const modelKey = "model"

// Why an endpoint of a provider is plain HTTP.
const (
	countsTokens = "it counts tokens and generates nothing"
	ordersWork   = "it orders calls whose answers a later GET brings"
)

// ignoring returns a list of exempts with more of them.
func ignoring(list []exempt, more ...exempt) []exempt { return slices.Concat(list, more) }

// ignores reports whether a top-level key does not count.
func (k *keys) ignores(key string) bool {
	return slices.ContainsFunc(k.ignored, func(e exempt) bool { return e.what == key })
}

// whole returns a call as one object, in which everything stands that counts.
func (c *call) whole() canonjson.Value {
	members := slices.Concat(c.surface, c.params)
	if c.messages.Key != "" {
		members = append(members, c.messages)
	}
	if c.model != "" {
		members = append(members, field(modelKey, text(c.model)))
	}
	return object(members...)
}

// split returns the members of body that are surface and those that are parameters, without the keys of taken.
func (k *keys) split(body *canonjson.Value, taken ...string) (surface, params []canonjson.Member) {
	for _, m := range body.Members {
		switch {
		case slices.Contains(taken, m.Key) && (m.Key != modelKey || m.Value.Kind == canonjson.String), k.ignores(m.Key):
		case slices.Contains(k.surface, m.Key):
			surface = append(surface, m)
		default:
			params = append(params, m)
		}
	}
	return surface, params
}

// take fills a call with what else of a body counts: its model, its messages, nil for none, and its other keys.
func (k *keys) take(body, messages *canonjson.Value, c call) (call, bool) {
	c.model = member(body, modelKey)
	taken := []string{modelKey}
	if messages != nil {
		c.messages = field(k.messages, *messages)
		taken = append(taken, k.messages)
	}
	c.surface, c.params = k.split(body, taken...)
	return c, true
}

// endpoints are all that this package knows. The first one whose path and shape fit a request has it.
var endpoints = slices.Concat(
	of(anthropic, anthropicEndpoints), of(bedrock, bedrockEndpoints), of(gemini, geminiEndpoints),
	of(ollama, ollamaEndpoints), of(cohere, cohereEndpoints), of(openAI, openAIEndpoints),
)

// of returns the endpoints of a provider with its name.
func of(provider string, list []endpoint) []endpoint {
	for i := range list {
		list[i].provider = provider
	}
	return list
}

// A provider is what all of its endpoints have.
type provider struct {
	fail   func(status int, message string) []byte // the error object of its API
	header func(h http.Header, ids *IDs)           // sets what it sends with every answer; nil sets nothing
}

// wordedError is the fail of a provider that calls a failure by its status, or by a word for those of the server's and one for the others.
func wordedError(words map[int]string, ofServer, other string, write func(status int, word string, message []byte) []byte) func(int, string) []byte {
	return func(status int, message string) []byte {
		word := words[status]
		if word == "" && status >= http.StatusInternalServerError {
			word = ofServer
		}
		return write(status, cmp.Or(word, other), jsonText(message))
	}
}

var providers = map[string]provider{
	anthropic: anthropicProvider,
	bedrock:   bedrockProvider,
	cohere:    {fail: func(_ int, message string) []byte { return marshal(wireObject{"message": message}) }},
	gemini:    geminiProvider,
	ollama:    {fail: func(_ int, message string) []byte { return marshal(wireObject{"error": message}) }},
	openAI:    openAIProvider,
}

// A pattern is a shape of paths, under any base path:
//
//	*/v1/messages                  ends so
//	*/models/{model}:embedContent  ends so, and names the model, which has no slash
//	*/model/{model+}/invoke        the same, and the model may have slashes, as ARNs do
//	*/{tunedModels/model}:predict  the model is named together with its collection: tunedModels/x
type pattern struct {
	text          string
	before, after string // what stands around the model; before is "" where the path names none
	collection    string // of the model, with its slash
	slashes       bool
}

// paths reads patterns.
func paths(texts ...string) []pattern {
	patterns := make([]pattern, len(texts))
	for i, t := range texts {
		patterns[i] = pathPattern(t)
	}
	return patterns
}

func pathPattern(text string) pattern {
	p := pattern{text: text}
	rest := strings.TrimPrefix(text, "*")
	before, rest, named := strings.Cut(rest, "{")
	if !named {
		p.after = before
		return p
	}
	name, after, _ := strings.Cut(rest, "}")
	if i := strings.LastIndex(name, "/"); i >= 0 {
		p.collection = name[:i+1]
	}
	p.before, p.after, p.slashes = before+p.collection, after, strings.HasSuffix(name, "+")
	return p
}

// match reports whether a path, decoded, is of the pattern, and the model that it names.
func (p *pattern) match(path string) (model string, ok bool) {
	path, ok = strings.CutSuffix(path, p.after)
	if !ok || p.before == "" {
		return "", ok
	}
	if p.slashes {
		_, model, ok = strings.Cut(path, p.before)
	} else if i := strings.LastIndex(path, p.before); i >= 0 {
		model = path[i+len(p.before):]
		ok = !strings.Contains(model, "/")
	} else {
		ok = false
	}
	return p.collection + model, ok && model != ""
}

// match reports whether a path is the endpoint's, and the model that it names.
func (e *endpoint) match(path string) (model string, ok bool) {
	for i := range e.paths {
		if model, ok := e.paths[i].match(path); ok {
			return model, true
		}
	}
	return "", false
}

// endpointsAt yields the endpoints that a path may be of, over a socket or not, each with the model that the path names.
func endpointsAt(path string, socket bool) iter.Seq2[*endpoint, string] {
	return func(yield func(*endpoint, string) bool) {
		for i := range endpoints {
			e := &endpoints[i]
			if (e.turns != nil) != socket {
				continue
			}
			if model, ok := e.match(path); ok && !yield(e, model) {
				return
			}
		}
	}
}

// Locate returns which operation a POST to a path asks for, and the model that the path names: "" for none.
func Locate(path string) (provider, endpoint, model string) {
	for e, model := range endpointsAt(path, false) {
		return e.provider, e.name, model
	}
	return "", "", ""
}

// single returns a read function for a body without messages: one that has all of the required keys, or any one of those
// that stand in one string with bars between.
func single(required ...string) func(*canonjson.Value, *keys) (call, bool) {
	return func(body *canonjson.Value, k *keys) (call, bool) {
		for _, names := range required {
			if !slices.ContainsFunc(strings.Split(names, "|"), func(key string) bool { return get(body, key) != nil }) {
				return call{}, false
			}
		}
		return k.take(body, nil, call{})
	}
}

// maxField is the length in bytes of the longest field of a form that stands in the surface as it is, so that a
// difference can be shown; longer ones and files stand there by their digest.
const maxField = 4096

// A part is one part of a multipart body.
type part struct {
	name, file, kind string // of Content-Disposition and Content-Type; "" for none
	content          []byte
	digest           bool // the content is a digest
}

// readParts reads a multipart body; false where the header does not announce one or the body is none. The boundary, which
// is made up for each request, is not kept.
func readParts(contentType string, body []byte) ([]part, bool) {
	kind, params, err := mime.ParseMediaType(contentType)
	if err != nil || !strings.HasPrefix(kind, "multipart/") || params["boundary"] == "" {
		return nil, false
	}
	r := multipart.NewReader(bytes.NewReader(body), params["boundary"])
	var parts []part
	for {
		p, err := r.NextRawPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, false
		}
		content, err := io.ReadAll(p)
		if err != nil {
			return nil, false
		}
		parts = append(parts, part{p.FormName(), fileName(p), p.Header.Get("Content-Type"), content, false})
	}
	// Fields of different names have no order among themselves; those of one name have.
	slices.SortStableFunc(parts, func(a, b part) int { return strings.Compare(a.name, b.name) })
	return parts, len(parts) > 0
}

// fileName returns the name of the file that a part is, all of it: multipart.Part.FileName keeps its last element alone.
func fileName(p *multipart.Part) string {
	_, params, err := mime.ParseMediaType(p.Header.Get("Content-Disposition"))
	if err != nil {
		return p.FileName()
	}
	return params["filename"]
}

// compare makes of the content what is compared: a short field as it stands, for it is masked with the whole, else the
// digest of what mask makes of it.
func (p *part) compare(mask func([]byte) []byte) {
	if p.file == "" && len(p.content) <= maxField && utf8.Valid(p.content) {
		return
	}
	content := p.content
	if utf8.Valid(content) {
		content = mask(content)
	}
	p.content, p.digest = []byte(cas.Sum(content).String()), true
}

// value returns the part as it stands in a surface.
func (p *part) value() canonjson.Value {
	key := "text"
	if p.digest {
		key = "digest"
	}
	v := object(field(key, text(string(p.content))))
	for _, m := range []struct{ key, value string }{{"name", p.name}, {"filename", p.file}, {"type", p.kind}} {
		if m.value != "" {
			put(&v, m.key, text(m.value))
		}
	}
	return v
}

// partsValue returns a multipart body as it compares.
func partsValue(parts []part) canonjson.Value {
	list := array()
	for i := range parts {
		list.Elems = append(list.Elems, parts[i].value())
	}
	return object(field("multipart", list))
}

// formCall reads a form of fields, each one a key of the body, into a call. One without a model is not of its shape, but
// where the path names it.
func formCall(parts []part, k *keys) (call, bool) {
	body := object()
	for i := range parts {
		p := &parts[i]
		if field := get(&body, p.name); field != nil {
			if field.Kind != canonjson.Array {
				*field = array(*field)
			}
			field.Elems = append(field.Elems, p.value())
			continue
		}
		value := p.value()
		if p.name == modelKey && !p.digest {
			value = text(string(p.content))
		}
		put(&body, p.name, value)
	}
	c := call{model: member(&body, modelKey)}
	c.surface, c.params = k.split(&body, modelKey)
	return c, len(c.surface) > 0
}

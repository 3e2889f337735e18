// Package scriptedllm is an LLM endpoint that follows a script: it speaks the wire formats of the real providers,
// streaming included, and needs neither a key nor a network.
//
// It speaks Anthropic messages, OpenAI chat completions and responses, Gemini generateContent and streamGenerateContent,
// Ollama's chat, OpenAI's formats under Azure's paths, Bedrock's Converse and InvokeModel, and responses over WebSockets, as their public
// references describe them; and beside them lists of models and token counts where the provider has them. Tests put real agents and SDKs in
// front of it, and the quickstart records its own small agent against it.
//
// The script: a turn that declares tools and carries no tool result yet is answered with one tool call, its arguments
// built from the declared schema, so that the agent writes the file which the prompt names ("write hello.txt"), by the tool that it
// names, if any ("write hello.txt by mcp_files_write_file"). A turn that carries results is answered with a text that mentions
// the outcome. A turn that declares no tools, as requests for a title do, gets a short text, or an object of the wanted schema.
//
// Answers depend on the request alone, but for what real providers vary: ids and times. Options.Seed fixes those too.
//
// Non-goals: it has no state between requests (but for Options.Faults, which fail a request once, and for what was said on one
// WebSocket), refuses no odd parameter, and counts tokens by the length of the text.
package scriptedllm

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/internal/lazyregexp"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// maxBody bounds a request's body, in bytes.
const maxBody = 64 << 20

// Options are the knobs of an Endpoint. A nil pointer and the zero value work.
type Options struct {
	// Seed, when not 0, makes ids and times repeat from run to run, given the same order of requests. With 0 they
	// differ in every run, as a provider's do.
	Seed uint64
	// Delay is waited before every streamed event but the first.
	Delay time.Duration
	// Before, when set, says how long an answer waits before it begins, given whether its turn declares tools: what agents ask
	// on the side, as for a title, declares none. The request stands in Requests by then.
	Before func(tools bool) time.Duration
	// Gzip compresses the answers to clients that accept it; a stream is flushed after every event.
	Gzip bool
	// CutAfter, when not 0, breaks the connection in the middle of every answer whose body has that many bytes on the
	// wire.
	CutAfter int
	// Key, when set, is the API key that a request must carry; without it the answer is the provider's 401.
	Key string
	// Text, when set, is every answer that would be a text, word for word.
	Text string
	// Shell, when set, is the command that the tool call runs, of a tool that runs commands, in the place of writing a file.
	Shell string
	// Calls, when set, are the tool calls of the script, one a turn, in place of writing a file: a turn whose conversation holds n
	// results of tools is answered with the call of that place, and with a text where there is none left.
	Calls []Call
	// Faults makes a request whose body holds the words "fail once with 429", or another status from 400 to 599, fail with
	// that status the first time that this very body comes, and succeed from then on, as clients with retries expect.
	Faults bool
	// More, when set, is asked first: the provider of a request that it answers, and the answer; nil for one that it leaves to the endpoint.
	More func(w http.ResponseWriter, r *http.Request) (provider string, answer Plain)
}

// A Call is a tool call of the script.
type Call struct {
	// Tool is the tool's name, or what that ends in without regard to case, "_" and "-": agents write their servers' names before it.
	Tool string
	Args map[string]any // nil for none
}

// A Request is one request as the endpoint got it.
type Request struct {
	Method   string
	URL      string // path and query
	Header   http.Header
	Body     []byte
	Provider string // "anthropic", "openai", "gemini", "ollama", "bedrock"; "" where no endpoint has that path
	Status   int    // of the answer
	Stream   bool   // the answer is a stream
	Tool     string // the tool that the answer calls, the first where it calls several; "" for a text
}

// An Endpoint is the scripted LLM endpoint, an http.Handler. It may be used by several goroutines at once.
type Endpoint struct {
	opts       Options
	mux        *http.ServeMux
	classifier *llm.Classifier
	ids        *llm.IDs

	mu       sync.Mutex // guards what follows
	requests []Request
	failed   map[[sha256.Size]byte]bool // bodies that failed once
}

// New returns an endpoint; nil options are the zero ones.
func New(opts *Options) *Endpoint {
	e := &Endpoint{mux: http.NewServeMux(), classifier: llm.NewClassifier(nil), failed: make(map[[sha256.Size]byte]bool)}
	if opts != nil {
		e.opts = *opts
	}
	e.ids = llm.NewIDs(e.opts.Seed)
	e.routes()
	return e
}

// ServeHTTP answers one request.
func (e *Endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if e.opts.More != nil {
		if provider, answer := e.opts.More(w, r); answer != nil {
			e.plain(w, r, provider, answer)
			return
		}
	}
	e.mux.ServeHTTP(w, r)
}

// Requests returns the requests so far, in order of arrival. Each stands there before its answer begins.
func (e *Endpoint) Requests() []Request {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.requests)
}

// Unknown returns how many requests went to a path that no provider has.
func (e *Endpoint) Unknown() int {
	n := 0
	for _, r := range e.Requests() {
		if r.Provider == "" {
			n++
		}
	}
	return n
}

// routes registers what is not told by the path of a call: a socket, and lists of models. Anthropic and OpenAI keep theirs under one name,
// and a header that every Anthropic client sends picks between them.
func (e *Endpoint) routes() {
	handle := e.mux.HandleFunc
	handle("GET /v1/responses", e.talk)
	handle("GET /v1/models", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Anthropic-Version") != "" {
			e.plain(w, r, "anthropic", anthropicModels)
		} else {
			e.plain(w, r, "openai", openaiModels)
		}
	})
	handle("GET /v1beta/models", func(w http.ResponseWriter, r *http.Request) { e.plain(w, r, "gemini", geminiModels) })
	handle("GET /api/tags", func(w http.ResponseWriter, r *http.Request) { e.plain(w, r, "ollama", ollamaModels) })
	handle("/", e.post)
}

// plain answers a request that makes no model speak.
func (e *Endpoint) plain(w http.ResponseWriter, r *http.Request, provider string, answer Plain) {
	s := newSink(w, r, &e.opts)
	defer s.end()
	body, ok := e.admit(provider, s)
	if !ok {
		return
	}
	out, err := answer(body)
	if err != nil {
		e.fail(provider, s, body, http.StatusBadRequest, err.Error())
		return
	}
	e.log(e.request(r, body, provider, http.StatusOK))
	s.json(http.StatusOK, encode(out))
}

// post answers a call of a model, whose path says which it is.
func (e *Endpoint) post(w http.ResponseWriter, r *http.Request) {
	provider, endpoint, model := llm.Locate(r.URL.Path)
	call := &tape.LLMCall{Provider: provider, Endpoint: endpoint, Model: model}
	answer := plains[provider+" "+endpoint]
	switch {
	case r.Method != http.MethodPost:
		e.unknown(w, r)
	case answer != nil:
		e.plain(w, r, provider, answer)
	case llm.Speaks(call):
		call.URL = "https://" + r.Host + r.URL.RequestURI()
		e.speak(w, r, call)
	default:
		e.unknown(w, r)
	}
}

// speak answers a request that makes a model speak.
func (e *Endpoint) speak(w http.ResponseWriter, r *http.Request, call *tape.LLMCall) {
	s := newSink(w, r, &e.opts)
	defer s.end()
	body, ok := e.admit(call.Provider, s)
	if !ok {
		return
	}
	q, err := llm.ReadQuestion(call, body)
	if err != nil {
		e.fail(call.Provider, s, body, http.StatusBadRequest, err.Error())
		return
	}
	re := e.reply(s, body, q)
	if q.Stream {
		re.Frames(s.begin, s.send)
		return
	}
	s.json(http.StatusOK, re.Whole())
}

// question reads a turn over a WebSocket.
func (e *Endpoint) question(r *exchange.Request) (*llm.Question, *exchange.Identity, error) {
	id, err := e.classifier.Classify(r)
	if err != nil {
		return nil, nil, err
	}
	call := &tape.LLMCall{Provider: id.Key.Provider, Endpoint: strings.TrimSuffix(id.Key.Endpoint, ".warmup"), Model: id.Key.Model}
	q, err := llm.ReadQuestion(call, r.Body)
	return q, id, err
}

// reply is the script's answer to a request, which it logs and for which it waits. body is what is logged.
func (e *Endpoint) reply(s *sink, body []byte, q *llm.Question) *llm.Reply {
	t := turnOf(q)
	c := &llm.Completion{OutputTokens: tokens(0)}
	if !q.Silent {
		c = e.plan(t)
	}
	c.InputTokens = tokens(len(body))
	logged := e.request(s.r, body, q.Provider, http.StatusOK)
	logged.Stream = q.Stream
	if len(c.Calls) > 0 {
		logged.Tool = c.Calls[0].Name
	}
	e.log(logged)
	if e.opts.Before != nil && !q.Silent {
		s.wait(e.opts.Before(len(t.tools) > 0))
	}
	return &llm.Reply{Completion: c, Question: q, IDs: e.ids}
}

// admit reads a request's body and refuses what the provider would refuse before it looks into it.
func (e *Endpoint) admit(provider string, s *sink) (body []byte, ok bool) {
	llm.Header(s.w.Header(), provider, e.ids)
	body, err := io.ReadAll(http.MaxBytesReader(s.w, s.r.Body, maxBody))
	if err != nil {
		e.fail(provider, s, body, http.StatusRequestEntityTooLarge, "request body: "+err.Error())
		return body, false
	}
	if !e.admits(s.r) {
		e.fail(provider, s, body, http.StatusUnauthorized, "invalid API key")
		return body, false
	}
	if status := e.fault(body); status != 0 {
		s.w.Header().Set("Retry-After-Ms", "10")
		s.w.Header().Set("Retry-After", "1")
		e.fail(provider, s, body, status, "the script wants this to fail once")
		return body, false
	}
	return body, true
}

var faultWish = lazyregexp.New(`fail once with ([45][0-9][0-9])\b`)

// fault is the status that a request has to fail with this time, 0 for none.
func (e *Endpoint) fault(body []byte) int {
	m := faultWish.FindSubmatch(body)
	if !e.opts.Faults || m == nil {
		return 0
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	sum := sha256.Sum256(body)
	if e.failed[sum] {
		return 0
	}
	e.failed[sum] = true
	status, _ := strconv.Atoi(string(m[1])) // three digits
	return status
}

// admits tells whether a request's API key, wherever its provider has it, is the right one.
func (e *Endpoint) admits(r *http.Request) bool {
	bearer, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	key := cmp.Or(r.Header.Get("X-Api-Key"), r.Header.Get("Api-Key"), r.Header.Get("X-Goog-Api-Key"), bearer, r.URL.Query().Get("key"))
	return e.opts.Key == "" || subtle.ConstantTimeCompare([]byte(key), []byte(e.opts.Key)) == 1
}

// fail answers with an error in the provider's own shape.
func (e *Endpoint) fail(provider string, s *sink, body []byte, status int, message string) {
	e.log(e.request(s.r, body, provider, status))
	s.json(status, llm.Failure(provider, status, message))
}

// unknown answers a path that no provider has.
func (e *Endpoint) unknown(w http.ResponseWriter, r *http.Request) {
	s := newSink(w, r, &e.opts)
	defer s.end()
	body, _ := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody)) // what came of it is kept for the log
	e.log(e.request(r, body, "", http.StatusNotFound))
	s.json(http.StatusNotFound, llm.Failure("anthropic", http.StatusNotFound, fmt.Sprintf("the scripted endpoint has no %s %s", r.Method, r.URL.Path)))
}

// request is a Request of what came; its body is a copy.
func (e *Endpoint) request(r *http.Request, body []byte, provider string, status int) Request {
	return Request{
		Method: r.Method, URL: r.URL.RequestURI(), Header: r.Header.Clone(), Body: bytes.Clone(body),
		Provider: provider, Status: status,
	}
}

func (e *Endpoint) log(q Request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.requests = append(e.requests, q)
}

// A Plain answers the body of a request that makes no model speak: a list, a count, an upload.
type Plain = func(body []byte) (map[string]any, error)

// plains are those that are told by their operation.
var plains = map[string]Plain{
	"anthropic count_tokens":        countAs("input_tokens"),
	"openai responses.input_tokens": countAs("input_tokens"),
	"gemini countTokens":            countAs("totalTokens"),
}

// countAs answers with the length of the request in tokens.
func countAs(key string) Plain {
	return func(body []byte) (object, error) { return object{key: tokens(len(body))}, nil }
}

// list answers with what is listed, always.
func list(text string) Plain {
	return func([]byte) (out object, err error) { return out, json.Unmarshal([]byte(text), &out) }
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

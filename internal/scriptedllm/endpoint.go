package scriptedllm

import (
	"bytes"
	"crypto/subtle"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"
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
	// Chunk is the number of runes in one streamed delta; 0 is 8.
	Chunk int
	// Gzip compresses the answers to clients that accept it; a stream is flushed after every event.
	Gzip bool
	// CutAfter, when not 0, breaks the connection in the middle of every answer whose body has that many bytes on the
	// wire.
	CutAfter int
	// Key, when set, is the API key that a request must carry; without it the answer is the provider's 401.
	Key string
	// Text, when set, is every answer that would be a text, word for word.
	Text string
}

// A Request is one request as the endpoint got it.
type Request struct {
	Method   string
	URL      string // path and query
	Header   http.Header
	Body     []byte
	Provider string // "anthropic", "openai", "gemini"; "" where no endpoint has that path
	Status   int    // of the answer
	Stream   bool   // the answer is a stream
	Tool     string // the tool that the answer calls; "" for a text
}

// An Endpoint is the scripted LLM endpoint, an http.Handler. It may be used by several goroutines at once.
type Endpoint struct {
	opts Options
	mux  *http.ServeMux
	ids  *ids

	mu       sync.Mutex // guards requests
	requests []Request
}

// New returns an endpoint; nil options are the zero ones.
func New(opts *Options) *Endpoint {
	e := &Endpoint{mux: http.NewServeMux()}
	if opts != nil {
		e.opts = *opts
	}
	if e.opts.Chunk <= 0 {
		e.opts.Chunk = 8
	}
	e.ids = newIDs(e.opts.Seed)
	e.mux.HandleFunc("POST /v1/messages", e.converse(anthropic{}))
	e.mux.HandleFunc("POST /v1/chat/completions", e.converse(chat{}))
	e.mux.HandleFunc("POST /v1/responses", e.converse(responses{}))
	e.mux.HandleFunc("POST /v1beta/models/{call}", e.converse(gemini{}))
	e.mux.HandleFunc("GET /v1/models", e.models)
	e.mux.HandleFunc("GET /v1beta/models", e.models)
	e.mux.HandleFunc("/", e.unknown)
	return e
}

// ServeHTTP answers one request.
func (e *Endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) { e.mux.ServeHTTP(w, r) }

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

// converse returns the handler of one provider's generating endpoint.
func (e *Endpoint) converse(d dialect) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s := newSink(w, r, &e.opts)
		defer s.end()
		d.header(w.Header(), e.ids)
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err != nil {
			e.fail(d, s, r, body, http.StatusRequestEntityTooLarge, "request body: "+err.Error())
			return
		}
		if !e.admits(d.key(r)) {
			e.fail(d, s, r, body, http.StatusUnauthorized, "invalid API key")
			return
		}
		t, err := d.parse(r, body)
		if err != nil {
			e.fail(d, s, r, body, http.StatusBadRequest, err.Error())
			return
		}
		e.reply(d, s, r, body, t)
	}
}

// reply sends the script's answer to a turn.
func (e *Endpoint) reply(d dialect, s *sink, r *http.Request, body []byte, t *turn) {
	re := &reply{turn: t, answer: e.plan(t), ids: e.ids, chunk: e.opts.Chunk, inTokens: len(body)/4 + 1}
	q := e.request(r, body, d.provider(), http.StatusOK)
	q.Stream = t.stream
	if re.answer.call != nil {
		q.Tool = re.answer.call.name
	}
	e.log(q)
	if t.stream {
		d.stream(re, s)
		return
	}
	s.json(http.StatusOK, d.whole(re))
}

// admits tells whether a request's API key is the right one.
func (e *Endpoint) admits(key string) bool {
	return e.opts.Key == "" || subtle.ConstantTimeCompare([]byte(key), []byte(e.opts.Key)) == 1
}

// fail answers with an error in the provider's own shape.
func (e *Endpoint) fail(d dialect, s *sink, r *http.Request, body []byte, status int, message string) {
	e.log(e.request(r, body, d.provider(), status))
	s.json(status, d.failure(status, message))
}

// unknown answers a path that no provider has.
func (e *Endpoint) unknown(w http.ResponseWriter, r *http.Request) {
	s := newSink(w, r, &e.opts)
	defer s.end()
	body, _ := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody)) // what came of it is kept for the log
	e.log(e.request(r, body, "", http.StatusNotFound))
	s.json(http.StatusNotFound, object{"error": object{
		"type":    "not_found_error",
		"message": fmt.Sprintf("the scripted endpoint has no %s %s", r.Method, r.URL.Path),
	}})
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

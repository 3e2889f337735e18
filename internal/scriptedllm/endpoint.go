package scriptedllm

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/lazyregexp"
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
	// Shell, when set, is the command that the tool call runs, of a tool that runs commands, in the place of writing a file.
	Shell string
	// Calls, when set, are the tool calls of the script, one a turn, in place of writing a file: a turn whose conversation holds n
	// results of tools is answered with the call of that place, and with a text where there is none left.
	Calls []Call
	// Faults makes a request whose body holds the words "fail once with 429", or another status from 400 to 599, fail with
	// that status the first time that this very body comes, and succeed from then on, as clients with retries expect.
	Faults bool
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
	Provider string // "anthropic", "openai", "gemini", "ollama", "azure", "bedrock"; "" where no endpoint has that path
	Status   int    // of the answer
	Stream   bool   // the answer is a stream
	Tool     string // the tool that the answer calls, the first where it calls several; "" for a text
}

// An Endpoint is the scripted LLM endpoint, an http.Handler. It may be used by several goroutines at once.
type Endpoint struct {
	opts Options
	mux  *http.ServeMux
	ids  *ids

	mu       sync.Mutex // guards what follows
	requests []Request
	failed   map[[sha256.Size]byte]bool // bodies that failed once
}

// New returns an endpoint; nil options are the zero ones.
func New(opts *Options) *Endpoint {
	e := &Endpoint{mux: http.NewServeMux(), failed: make(map[[sha256.Size]byte]bool)}
	if opts != nil {
		e.opts = *opts
	}
	if e.opts.Chunk <= 0 {
		e.opts.Chunk = 8
	}
	e.ids = newIDs(e.opts.Seed)
	e.routes()
	return e
}

// ServeHTTP answers one request. Google's SDK begins the path of a socket with two slashes, which its servers take.
func (e *Endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if path, ok := strings.CutPrefix(r.URL.Path, "//"); ok {
		r = r.Clone(r.Context())
		r.URL.Path = "/" + path
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

// converse returns the handler of one provider's generating endpoint.
func (e *Endpoint) converse(d dialect) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s := newSink(w, r, &e.opts)
		defer s.end()
		body, ok := e.admit(d, s)
		if !ok {
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

// A plain answers a request that makes no model speak: a list, a count, an embedding, an upload.
type plain func(r *http.Request, body []byte) (object, error)

// serve returns the handler of a provider's endpoint that makes no model speak. pick tells whose request it is, where
// two providers share a path.
func (e *Endpoint) serve(pick func(*http.Request) (wire, plain)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s := newSink(w, r, &e.opts)
		defer s.end()
		d, answer := pick(r)
		body, ok := e.admit(d, s)
		if !ok {
			return
		}
		out, err := answer(r, body)
		if err != nil {
			e.fail(d, s, r, body, http.StatusBadRequest, err.Error())
			return
		}
		e.log(e.request(r, body, d.provider(), http.StatusOK))
		s.json(http.StatusOK, out)
	}
}

// only picks one provider's answer for every request.
func only(d wire, answer plain) func(*http.Request) (wire, plain) {
	return func(*http.Request) (wire, plain) { return d, answer }
}

// admit reads a request's body and refuses what the provider would refuse before it looks into it.
func (e *Endpoint) admit(d wire, s *sink) (body []byte, ok bool) {
	d.header(s.w.Header(), e.ids)
	body, err := io.ReadAll(http.MaxBytesReader(s.w, s.r.Body, maxBody))
	if err != nil {
		e.fail(d, s, s.r, body, http.StatusRequestEntityTooLarge, "request body: "+err.Error())
		return body, false
	}
	if !e.admits(d.key(s.r)) {
		e.fail(d, s, s.r, body, http.StatusUnauthorized, "invalid API key")
		return body, false
	}
	if status := e.fault(body); status != 0 {
		s.w.Header().Set("Retry-After-Ms", "10")
		s.w.Header().Set("Retry-After", "1")
		e.fail(d, s, s.r, body, status, "the script wants this to fail once")
		return body, false
	}
	return body, true
}

// reply sends the script's answer to a turn.
func (e *Endpoint) reply(d dialect, s *sink, r *http.Request, body []byte, t *turn) {
	re := &reply{turn: t, answer: e.plan(t), ids: e.ids, chunk: e.opts.Chunk, inTokens: tokens(body)}
	q := e.request(r, body, d.provider(), http.StatusOK)
	q.Stream = t.stream
	if len(re.answer.calls) > 0 {
		q.Tool = re.answer.calls[0].name
	}
	e.log(q)
	if e.opts.Before != nil {
		s.wait(e.opts.Before(len(t.tools) > 0))
	}
	if t.stream {
		d.stream(re, s)
		return
	}
	s.json(http.StatusOK, d.whole(re))
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

// admits tells whether a request's API key is the right one.
func (e *Endpoint) admits(key string) bool {
	return e.opts.Key == "" || subtle.ConstantTimeCompare([]byte(key), []byte(e.opts.Key)) == 1
}

// fail answers with an error in the provider's own shape.
func (e *Endpoint) fail(d wire, s *sink, r *http.Request, body []byte, status int, message string) {
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

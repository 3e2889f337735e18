package mcp

import (
	"bytes"
	"errors"
	"iter"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// OverHTTPOptions say what an OverHTTP works with. Nil and zero work.
type OverHTTPOptions struct {
	Log *Log // takes the messages; nil takes none

	// Records are those of the tape that is replayed, and Blobs holds its payloads. Nil while recording.
	Records iter.Seq2[*tape.Record, error]
	Blobs   cas.Store
	// Reveal puts the secrets of this run in the place of their placeholders. Nil leaves them.
	Reveal func([]byte) []byte
}

// An OverHTTP follows the conversations of one run that are held over HTTP: Streamable HTTP, and HTTP+SSE of 2024-11-05. It
// implements exchange.Conversations (TapOptions.Conversations), both halves, beside a Classifier of this package.
//
// Recording, it gives each message to the conversation that it belongs to, by session, when its last byte is about to pass.
//
// Replaying, it puts the ids of this run into the recorded answers, JSON or events, and holds what the server sends until it is
// due: see the package comment. What nothing on the tape answers gets a JSON-RPC error.
type OverHTTP struct {
	log    *Log
	taped  *taped // nil while recording
	blobs  cas.Store
	reveal func([]byte) []byte

	mu       sync.Mutex
	sessions map[string]*webTalk   // by place and session id
	urls     map[string]*webTalk   // of HTTP+SSE, by the URL that messages are sent to
	current  map[string]*webTalk   // by place: the conversation that has no session id
	waiting  map[string][]*webTalk // by place: those that had server/discover alone, after which a client may send initialize
	numbers  map[uint64]*webTalk   // of a replay, by the recorded number
	all      []*webTalk            // in order of their begin
}

var _ exchange.Conversations = (*OverHTTP)(nil)

// NewOverHTTP returns an OverHTTP; End must follow. The error is one that Records gave.
func NewOverHTTP(o *OverHTTPOptions) (*OverHTTP, error) {
	h := &OverHTTP{
		sessions: make(map[string]*webTalk), urls: make(map[string]*webTalk), current: make(map[string]*webTalk),
		waiting: make(map[string][]*webTalk), numbers: make(map[uint64]*webTalk),
	}
	if o == nil {
		return h, nil
	}
	h.log, h.blobs, h.reveal = o.Log, o.Blobs, o.Reveal
	if o.Records == nil {
		return h, nil
	}
	var err error
	h.taped, err = readTaped(o.Records)
	return h, err
}

// Begin implements exchange.Conversations.
func (h *OverHTTP) Begin(a *exchange.Asked) (exchange.Passage, error) {
	p := &passage{over: h, asked: a, place: placeOf(a.Request.URL)}
	switch a.Request.Method {
	case http.MethodPost:
		if p.messages = messagesOf(a.Request); p.messages == nil {
			return nil, nil
		}
		p.batch = p.messages[0].Raw[0] != firstByte(a.Request.Body)
	case http.MethodGet:
		if !marked(a.Request.Header) && !accepts(a.Request.Header, typeEvents) {
			return nil, nil
		}
	case http.MethodDelete:
		if !marked(a.Request.Header) {
			return nil, nil
		}
	default:
		return nil, nil
	}
	if err := p.begin(); err != nil {
		return nil, err
	}
	return p, nil
}

// firstByte is the first byte that is no white space; 0 for none.
func firstByte(b []byte) byte {
	if b = bytes.TrimLeft(b, " \t\r\n"); len(b) > 0 {
		return b[0]
	}
	return 0
}

// End ends every conversation: when no exchange is under way any more, before the tape is closed. The error is the recorder's.
func (h *OverHTTP) End() error {
	h.mu.Lock()
	all := h.all
	h.all = nil
	h.mu.Unlock()
	var errs []error
	for _, t := range all {
		errs = append(errs, t.End(Ended{By: t.left()}))
	}
	return errors.Join(errs...)
}

// placeOf is a URL without its query: where a server of Streamable HTTP is.
func placeOf(raw string) string {
	place, _, _ := strings.Cut(raw, "?")
	return place
}

// A webTalk is one conversation while it is held.
type webTalk struct {
	*Conversation
	was *tapedTalk // on a replay, the recorded one; nil else

	mu    sync.Mutex
	names webNames   // of the replay
	sse   *webStream // of a replay of HTTP+SSE, once it is there
	ended bool       // by the client
}

// stream notes the stream on which a replay answers.
func (t *webTalk) stream(s *webStream) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sse = s
}

// streaming is the stream on which a replay answers, nil for none.
func (t *webTalk) streaming() *webStream {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.sse
}

// left says who ended the conversation: the client by DELETE, else the recorder.
func (t *webTalk) left() Side {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return Client
	}
	return ""
}

// leave notes that the client ended the conversation.
func (t *webTalk) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
}

// lane is the lane of the exchanges that carry the conversation; "" while its server is not known.
func (t *webTalk) lane() string {
	if t == nil || t.Conversation == nil {
		return ""
	}
	if s := t.Server(); s != "" {
		return "mcp:" + s
	}
	return ""
}

// open begins a conversation with the server that r is for, which was recorded as was; nil for one that was not.
func (h *OverHTTP) open(r *exchange.Request, was *tapedTalk) *webTalk {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.opened(r, was)
}

// opened is open for who holds mu.
func (h *OverHTTP) opened(r *exchange.Request, was *tapedTalk) *webTalk {
	if was != nil {
		if t := h.numbers[was.Conversation]; t != nil {
			return t
		}
	}
	t := &webTalk{was: was}
	o := &Opened{Transport: HTTP, URL: placeOf(r.URL), Within: r.Asker}
	if was != nil {
		o.Recorded = &was.Recorded
		h.numbers[was.Conversation] = t
	}
	if h.log != nil {
		t.Conversation = h.log.Begin(o)
	}
	h.all = append(h.all, t)
	return t
}

// find returns the conversation that a request belongs to, nil for none that is known yet.
func (h *OverHTTP) find(r *exchange.Request, place string) *webTalk {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t := h.urls[r.URL]; t != nil && r.Method == http.MethodPost {
		return t
	}
	if session := r.Header.Get(sessionHeader); session != "" {
		return h.sessions[place+"\n"+session]
	}
	return h.current[place]
}

// goesOn notes that a conversation has more than server/discover: it waits for no initialize.
func (h *OverHTTP) goesOn(t *webTalk, place string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.waiting[place] = slices.DeleteFunc(h.waiting[place], func(w *webTalk) bool { return w == t })
}

// isEndpoint reports whether a request sends messages of a conversation of HTTP+SSE, whose answers come elsewhere.
func (h *OverHTTP) isEndpoint(r *exchange.Request) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return r.Method == http.MethodPost && h.urls[r.URL] != nil
}

// begun is a conversation for the first request of one, at a place: one that waits there, where the request is initialize, which
// clients send when server/discover has failed.
func (h *OverHTTP) begun(r *exchange.Request, place string, initialize bool) *webTalk {
	h.mu.Lock()
	defer h.mu.Unlock()
	if list := h.waiting[place]; initialize && len(list) > 0 {
		h.waiting[place] = list[1:]
		if h.current[place] == list[0] {
			delete(h.current, place)
		}
		return list[0]
	}
	return h.opened(r, nil)
}

// meant is the conversation for a request of a replay that the tape lacks and that names none which is known: at its place the recorded one,
// of several the first, or where the request begins one the first that has not begun. A place of which the tape knows nothing has one
// of its own.
func (h *OverHTTP) meant(r *exchange.Request, place string, initialize bool) *webTalk {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, was := range h.taped.at(place) {
		if !initialize || h.numbers[was.Conversation] == nil {
			return h.opened(r, was)
		}
	}
	return h.opened(r, nil)
}

// keep notes how a conversation is found: by its session id, or by its place alone.
func (h *OverHTTP) keep(t *webTalk, place, session string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if session != "" {
		h.sessions[place+"\n"+session] = t
		return
	}
	h.current[place] = t
}

// wait notes a conversation that may go on with initialize.
func (h *OverHTTP) wait(t *webTalk, place string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.waiting[place] = append(h.waiting[place], t)
}

// endpoint notes where the messages of a conversation of HTTP+SSE are sent to.
func (h *OverHTTP) endpoint(t *webTalk, url string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.urls[url] = t
}

package mcp

import (
	"bytes"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
)

// OverHTTPOptions say what an OverHTTP works with. Nil and zero work.
type OverHTTPOptions struct {
	Log  *Log  // takes the messages; nil takes none
	Book *Book // the tape that is replayed; nil while recording
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
	book   *Book                  // nil while recording
	taped  map[uint64]*transcript // by the arrival of an http_exchange that carried a line
	reveal func([]byte) []byte
	live   *live // nil where no server goes on past the tape

	mu      sync.Mutex
	known   map[string]*webConversation   // by what requests tell of it: see the keys
	waiting map[string][]*webConversation // by place: those that had server/discover alone, after which a client may send initialize
	numbers map[uint64]*webConversation   // of a replay, by the recorded number
	all     []*webConversation            // in order of their begin
}

var _ exchange.Conversations = (*OverHTTP)(nil)

// NewOverHTTP returns an OverHTTP; End must follow.
func NewOverHTTP(o *OverHTTPOptions) *OverHTTP {
	h := &OverHTTP{
		taped: make(map[uint64]*transcript), known: make(map[string]*webConversation),
		waiting: make(map[string][]*webConversation), numbers: make(map[uint64]*webConversation),
	}
	if o == nil {
		return h
	}
	h.log, h.book, h.reveal = o.Log, o.Book, o.Reveal
	if h.book == nil {
		return h
	}
	for _, t := range h.book.transcripts {
		for arrival := range t.carried {
			h.taped[arrival] = t
		}
	}
	return h
}

// Begin implements exchange.Conversations.
func (h *OverHTTP) Begin(a *exchange.Asked) (exchange.Passage, error) {
	var messages []Message
	switch a.Request.Method {
	case http.MethodPost:
		if messages = messagesOf(a.Request); messages == nil {
			return nil, nil
		}
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
	p := &webExchange{over: h, asked: a, place: placeOf(a.Request.URL), messages: messages}
	p.batch = messages != nil && bytes.TrimLeft(a.Request.Body, blanks)[0] == '['
	if err := p.begin(); err != nil {
		return nil, err
	}
	return p, nil
}

// End ends every conversation: when no exchange is under way any more, before the tape is closed. The error is the recorder's.
func (h *OverHTTP) End() error {
	h.mu.Lock()
	all := h.all
	h.all = nil
	h.mu.Unlock()
	if h.live != nil {
		h.live.end()
		h.live.running.Wait()
	}
	var errs []error
	for _, t := range all {
		errs = append(errs, t.End(Ended{}))
	}
	return errors.Join(errs...)
}

// placeOf is a URL without its query: where a server of Streamable HTTP is.
func placeOf(raw string) string {
	place, _, _ := strings.Cut(raw, "?")
	return place
}

// A webConversation is one conversation while it is held.
type webConversation struct {
	*Conversation
	player *webPlayer   // of a replay, where the conversation was recorded; nil else
	live   *liveSession // where its server goes on past the tape; nil else

	sse atomic.Pointer[webStream] // of a replay of HTTP+SSE, once it is there

	mu    sync.Mutex // guards what follows
	names names      // of the replay
}

// lane is the lane of the exchanges that carry the conversation; "" while its server is not known.
func (t *webConversation) lane() string {
	if t == nil || t.Conversation == nil {
		return ""
	}
	if s := t.Server(); s != "" {
		return "mcp:" + s
	}
	return ""
}

// open begins a conversation with the server that r is for, which was recorded as was; nil for one that was not.
func (h *OverHTTP) open(r *exchange.Request, was *transcript) *webConversation {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.opened(r, was)
}

// opened is open for who holds mu.
func (h *OverHTTP) opened(r *exchange.Request, was *transcript) *webConversation {
	if was != nil {
		if t := h.numbers[was.Conversation]; t != nil {
			return t
		}
	}
	t := new(webConversation)
	o := &Opened{Transport: HTTP, URL: placeOf(r.URL), Within: r.Asker}
	if was != nil {
		t.player = newWebPlayer(was, h.book.hold)
		o.Recorded, t.live = &was.Recorded, h.live.session(h, was)
		h.numbers[was.Conversation] = t
	}
	if h.log != nil {
		t.Conversation = h.log.Begin(o)
	}
	h.all = append(h.all, t)
	return t
}

// recorded returns the conversation that was recorded of an exchange; nil for none.
func (h *OverHTTP) recorded(a *exchange.Asked) *webConversation {
	if a.Recorded == nil || h.taped[a.Recorded.Arrival] == nil {
		return nil
	}
	return h.open(a.Request, h.taped[a.Recorded.Arrival])
}

// What a conversation is known by: its session at a place, its place alone where it has no session, and of HTTP+SSE the URL that messages
// are sent to.
func keyOfSession(place, session string) string { return place + "\nsession " + session }
func keyOfEndpoint(url string) string           { return url + "\nendpoint" }

// find returns the conversation that a request belongs to, nil for none that is known yet. endpoint says that it sends messages of one over
// HTTP+SSE, whose answers come elsewhere.
func (h *OverHTTP) find(r *exchange.Request, place string) (t *webConversation, endpoint bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t := h.known[keyOfEndpoint(r.URL)]; t != nil && r.Method == http.MethodPost {
		return t, true
	}
	if session := r.Header.Get(sessionHeader); session != "" {
		place = keyOfSession(place, session)
	}
	return h.known[place], false
}

// goesOn notes that a conversation has more than server/discover: it waits for no initialize.
func (h *OverHTTP) goesOn(t *webConversation, place string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.waiting[place] = slices.DeleteFunc(h.waiting[place], func(w *webConversation) bool { return w == t })
}

// begun is a conversation for the first request of one, at a place: one that waits there, where the request is initialize, which
// clients send when server/discover has failed.
func (h *OverHTTP) begun(r *exchange.Request, place string, initialize bool) *webConversation {
	h.mu.Lock()
	defer h.mu.Unlock()
	if list := h.waiting[place]; initialize && len(list) > 0 {
		h.waiting[place] = list[1:]
		if h.known[place] == list[0] {
			delete(h.known, place)
		}
		return list[0]
	}
	return h.opened(r, nil)
}

// meant is the conversation for a request of a replay that the tape lacks and that names none which is known: at its place the recorded one,
// of several the first, or where the request begins one the first that has not begun. A place of which the tape knows nothing has one
// of its own.
func (h *OverHTTP) meant(r *exchange.Request, place string, initialize bool) *webConversation {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, was := range h.book.at(place) {
		if !initialize || h.numbers[was.Conversation] == nil {
			return h.opened(r, was)
		}
	}
	return h.opened(r, nil)
}

// keep notes how a conversation is found.
func (h *OverHTTP) keep(t *webConversation, key string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.known[key] = t
}

// wait notes a conversation that may go on with initialize.
func (h *OverHTTP) wait(t *webConversation, place string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.waiting[place] = append(h.waiting[place], t)
}

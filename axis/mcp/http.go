package mcp

import (
	"bytes"
	"errors"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/scrub/masks"
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

// open begins a conversation with the server that r is for, which was recorded as was; nil for one that was not. The caller holds mu.
func (h *OverHTTP) open(r *exchange.Request, was *transcript) *webConversation {
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

// recorded returns the conversation that was recorded of an exchange; nil for none. The caller holds mu.
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
// HTTP+SSE, whose answers come elsewhere. The caller holds mu.
func (h *OverHTTP) find(r *exchange.Request, place string) (t *webConversation, endpoint bool) {
	if t := h.known[keyOfEndpoint(r.URL)]; t != nil && r.Method == http.MethodPost {
		return t, true
	}
	if session := r.Header.Get(sessionHeader); session != "" {
		place = keyOfSession(place, session)
	}
	return h.known[place], false
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
	return h.open(r, nil)
}

// meant is the conversation for a request of a replay that the tape lacks and that names none which is known: at its place the recorded one,
// of several the first, or where the request begins one the first that has not begun. A place of which the tape knows nothing has one
// of its own.
func (h *OverHTTP) meant(r *exchange.Request, place string, initialize bool) *webConversation {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, was := range h.book.at(place) {
		if !initialize || h.numbers[was.Conversation] == nil {
			return h.open(r, was)
		}
	}
	return h.open(r, nil)
}

// A Classifier knows the requests that carry MCP over HTTP; what is none of these is its next one's. The key of such a request is
// its HTTP method, its URL and its body in canonical form, without the ids of messages and progress tokens; of a GET that resumes a
// stream the id of the last event too. No header counts, so no session id does. It implements exchange.Classifier and may be used
// by several goroutines at once.
//
// A recording that was made before there was one is replayed without it: its requests have other keys.
//
// A POST is MCP's when its body is JSON-RPC 2.0, one message or a batch, and either its methods are those of MCP alone (tools/call,
// initialize with a protocolVersion), or they may be (ping, an answer) and it carries a mark: one of MCP's headers, an Accept that
// names both JSON and events, a session id in its query. A GET or DELETE is MCP's when it carries one of MCP's headers.
type Classifier struct {
	exchange.Classifier // the next one
	masker              *masks.Masker
}

var _ exchange.Classifier = (*Classifier)(nil)

// NewClassifier returns a Classifier before next. Digests are taken after m has masked; nil masks nothing.
func NewClassifier(next exchange.Classifier, m *masks.Masker) *Classifier {
	return &Classifier{next, m}
}

// Classify implements exchange.Classifier. The session id in a URL of HTTP+SSE stays: a replay gives the recorded one.
func (c *Classifier) Classify(r *exchange.Request) (*exchange.Identity, error) {
	switch {
	case !c.Carries(r):
		return c.Classifier.Classify(r)
	case r.Method == http.MethodPost:
		return c.post(r)
	}
	return c.identity(r, resumption(r.Header)), nil
}

// Carries reports whether a request carries MCP.
func (c *Classifier) Carries(r *exchange.Request) bool {
	if r.Method == http.MethodPost {
		return messagesOf(r) != nil
	}
	return (r.Method == http.MethodGet || r.Method == http.MethodDelete) && marked(r.Header)
}

// post identifies a POST of messages.
func (c *Classifier) post(r *exchange.Request) (*exchange.Identity, error) {
	body, err := canonjson.Parse(r.Body)
	if err != nil { // a key that stands twice: nobody can say which one counts
		return c.Classifier.Classify(r)
	}
	withoutIDs(&body)
	id := c.identity(r, body.Append(make([]byte, 0, len(r.Body))))
	return id, nil
}

func (c *Classifier) identity(r *exchange.Request, body []byte) *exchange.Identity {
	return exchange.HTTPIdentity(r.Method, c.MaskURL(r.URL), c.masker.Mask(scrub.Renumber(body)))
}

// resumption is what a GET says of the stream that it goes on with.
func resumption(h http.Header) []byte {
	last := h.Get(lastEventID)
	if last == "" {
		return nil
	}
	return append(canonjson.AppendString([]byte(`{"last-event-id":`), last), '}')
}

// sessionParams are the names under which servers of HTTP+SSE put the session into the URL that messages are sent to: those of
// Go's, TypeScript's and Python's.
var sessionParams = []string{"sessionid", "sessionId", "session_id"}

// Traits implements exchange.Classifier. A session's id names who asks.
func (c *Classifier) Traits(r *exchange.Request) *exchange.Traits {
	t := c.Classifier.Traits(r)
	for _, id := range []string{r.Header.Get(sessionHeader), sessionOf(r.URL)} {
		if id != "" {
			t.IDs = append(t.IDs, exchange.ID{Place: "mcp session", Text: id})
			t.Counter = id
		}
	}
	t.Count = countOf(r)
	return t
}

// countOf is the number by which a client counts its requests; 0 for another message, for several, and for ids of another kind.
func countOf(r *exchange.Request) int64 {
	if r.Method != http.MethodPost {
		return 0
	}
	messages, batch, err := Parse(r.Body)
	if err != nil || batch || messages[0].Method == "" {
		return 0
	}
	n, _ := strconv.ParseInt(string(messages[0].ID), 10, 64) // 0 for none
	return n
}

// sessionOf is the session id in the query of a URL; "" for none.
func sessionOf(raw string) string {
	query := strings.IndexByte(raw, '?')
	if query < 0 {
		return ""
	}
	for part := range strings.SplitSeq(raw[query+1:], "&") {
		if name, value, _ := strings.Cut(part, "="); slices.Contains(sessionParams, name) {
			return value
		}
	}
	return ""
}

// withoutIDs takes out of a body, one message or a batch, what each run makes up anew: the ids of messages, and what Surface leaves
// out of params. The value is changed in place.
func withoutIDs(body *canonjson.Value) {
	if body.Kind == canonjson.Array {
		for i := range body.Elems {
			withoutIDs(&body.Elems[i])
		}
		return
	}
	drop(body, "id")
	method, _ := body.Get("method")
	for i := range body.Members {
		m := &body.Members[i]
		switch m.Key {
		case "params":
			dropMadeUp(method.Text(), &m.Value)
		case "result", "error":
			dropMadeUp("", &m.Value)
		}
	}
}

// Further headers of Streamable HTTP, as net/http spells them.
const (
	methodHeader = "Mcp-Method"
	lastEventID  = "Last-Event-Id"
)

// The types of answers.
const (
	typeJSON   = "application/json"
	typeEvents = "text/event-stream"
)

// marked reports whether one of MCP's headers is there.
func marked(h http.Header) bool {
	return h.Get(sessionHeader) != "" || h.Get(protocolHeader) != "" || h.Get(methodHeader) != ""
}

// accepts reports whether a header names each of the types as what it takes.
func accepts(h http.Header, types ...string) bool {
	var named []string
	for _, list := range h["Accept"] {
		for item := range strings.SplitSeq(list, ",") {
			kind, _, _ := mime.ParseMediaType(item)
			named = append(named, kind)
		}
	}
	return !slices.ContainsFunc(types, func(t string) bool { return !slices.Contains(named, t) })
}

// maxLooked bounds, in bytes, a body that is looked into without a mark, so that other people's uploads cost nothing.
const maxLooked = 64 << 20

// messagesOf returns the messages of a POST that is MCP's; nil for none of its.
func messagesOf(r *exchange.Request) []Message {
	if r.Method != http.MethodPost || len(r.Body) > maxLooked || !beginsMessage(r.Body) {
		return nil
	}
	messages, _, err := Parse(r.Body)
	if err != nil || len(messages) == 0 {
		return nil
	}
	mark := marked(r.Header) || accepts(r.Header, typeJSON, typeEvents) || sessionOf(r.URL) != ""
	own := false // a method that is MCP's alone
	for i := range messages {
		m := &messages[i]
		switch {
		case ofMCP(m):
			own = true
		case !mark:
			return nil
		case !marked(r.Header) && !mayBeMCP(m.Method):
			return nil
		}
	}
	if own || mark {
		return messages
	}
	return nil
}

// beginsMessage tells, by a few bytes, whether a body may be a message or a batch of them.
func beginsMessage(b []byte) bool {
	head := strings.TrimLeft(string(b[:min(len(b), 64)]), " \t\r\n")
	return head != "" && (head[0] == '{' || head[0] == '[')
}

// ownMethods are the methods and the beginnings of methods that no other protocol on JSON-RPC has.
var ownMethods = []string{
	"tools/", "resources/", "prompts/", "server/discover", "notifications/initialized", "notifications/tools/",
	"notifications/resources/", "notifications/prompts/", "notifications/roots/", "notifications/elicitation/", "roots/list",
	"sampling/createMessage", "elicitation/create", "completion/complete", "logging/setLevel", "subscriptions/listen",
}

// otherMethods are those of MCP that another protocol may have too.
var otherMethods = []string{"ping", "notifications/", "tasks/", "completion/", "logging/", "sampling/", "elicitation/", "roots/", "subscriptions/", "server/"}

// ofMCP reports whether a message is MCP's by its method.
func ofMCP(m *Message) bool {
	if m.Method == "initialize" { // which servers of languages have too
		return member(m.Params, "protocolVersion") != nil
	}
	return beginsWithAny(m.Method, ownMethods)
}

// mayBeMCP reports whether a method, or an answer, whose method is "", may be MCP's.
func mayBeMCP(method string) bool { return method == "" || beginsWithAny(method, otherMethods) }

func beginsWithAny(s string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool {
		return s == p || strings.HasSuffix(p, "/") && strings.HasPrefix(s, p)
	})
}

package mcp

import (
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/scrub/masks"
)

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
	switch r.Method {
	case http.MethodPost:
		if messagesOf(r) != nil {
			return c.post(r)
		}
	case http.MethodGet, http.MethodDelete:
		if marked(r.Header) {
			return c.identity(r, resumption(r.Header)), nil
		}
	}
	return c.Classifier.Classify(r)
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
		}
	}
	return t
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

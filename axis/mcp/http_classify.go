package mcp

import (
	"net/http"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/cas"
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
	next   exchange.Classifier
	masker *masks.Masker
}

var _ exchange.SocketClassifier = (*Classifier)(nil)

// NewClassifier returns a Classifier before next. Digests are taken after m has masked; nil masks nothing.
func NewClassifier(next exchange.Classifier, m *masks.Masker) *Classifier {
	return &Classifier{next: next, masker: m}
}

// Classify implements exchange.Classifier.
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
	return c.next.Classify(r)
}

// post identifies a POST of messages.
func (c *Classifier) post(r *exchange.Request) (*exchange.Identity, error) {
	body, err := canonjson.Parse(r.Body)
	if err != nil { // a key that stands twice: nobody can say which one counts
		return c.next.Classify(r)
	}
	withoutIDs(&body)
	id := c.identity(r, body.Append(make([]byte, 0, len(r.Body))))
	return id, nil
}

func (c *Classifier) identity(r *exchange.Request, body []byte) *exchange.Identity {
	surface := c.comparable(body)
	return &exchange.Identity{
		Key: exchange.Key{
			Kind: exchange.HTTP, Method: r.Method, URL: c.MaskURL(r.URL), Request: cas.Sum(surface),
		},
		Surface: surface,
	}
}

// comparable returns b as it compares: renumbered and masked.
func (c *Classifier) comparable(b []byte) []byte {
	if b = scrub.Renumber(b); c.masker == nil {
		return b
	}
	return c.masker.Mask(b)
}

// resumption is what a GET says of the stream that it goes on with.
func resumption(h http.Header) []byte {
	last := h.Get(lastEventID)
	if last == "" {
		return nil
	}
	return append(canonjson.AppendString([]byte(`{"last-event-id":`), last), '}')
}

// MaskURL implements exchange.Classifier. The session id in a URL of HTTP+SSE stays: a replay gives the recorded one.
func (c *Classifier) MaskURL(scrubbed string) string { return c.next.MaskURL(scrubbed) }

// InCallOrder implements exchange.CallOrderer, by the next one.
func (c *Classifier) InCallOrder(r *exchange.Request) *exchange.Request {
	if o, ok := c.next.(exchange.CallOrderer); ok {
		return o.InCallOrder(r)
	}
	return nil
}

// Sockets implements exchange.SocketClassifier: WebSockets are the next one's, as far as it knows them.
func (c *Classifier) Sockets(r *exchange.Request) exchange.Turns {
	if next, ok := c.next.(exchange.SocketClassifier); ok {
		return next.Sockets(r)
	}
	return nil
}

// sessionParams are the names under which servers of HTTP+SSE put the session into the URL that messages are sent to: those of
// Go's, TypeScript's and Python's.
var sessionParams = []string{"sessionid", "sessionId", "session_id"}

// Traits implements exchange.Classifier. A session's id names who asks.
func (c *Classifier) Traits(r *exchange.Request) *exchange.Traits {
	t := c.next.Traits(r)
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

// Rename implements exchange.SocketClassifier.
func (c *Classifier) Rename(message []byte, to func(id string) string) []byte {
	if next, ok := c.next.(exchange.SocketClassifier); ok {
		return next.Rename(message, to)
	}
	return message
}

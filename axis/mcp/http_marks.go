package mcp

import (
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

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
		return hasMember(m.Params, "protocolVersion")
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

// hasMember reports whether a JSON object has a member of that name.
func hasMember(object []byte, name string) (found bool) {
	var s jsonscan.Scanner
	s.Reset(object)
	if s.Peek() != '{' {
		return false
	}
	for s.Begin('{'); s.More('}'); s.Skip() {
		if string(s.Key()) == name {
			found = true
		}
	}
	return found && s.Err() == nil
}

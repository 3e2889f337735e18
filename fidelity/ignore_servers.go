package fidelity

import (
	"cmp"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// ignoreServers takes out what MCP servers themselves asked of others over the network, and the conversations that they held as
// clients, and notes how many these are: on a replay no server runs, and the program sees of it what its servers said.
func (c *ignoring) ignoreServers() {
	var asked [2]serversAsked
	for s := range c.sides {
		a := serversAsked{sockets: make(map[uint64]bool), conversations: make(map[uint64]bool), hosts: make(map[string]bool)}
		for e := range c.sides[s].records() { // a conversation's records may stand before its number is known to be one of these
			a.find(e.rec)
		}
		for e := range c.sides[s].records() {
			if a.takes(e.rec.Kind) {
				e.rec = nil
			}
		}
		asked[s] = a
	}
	was, now := &asked[Recorded], &asked[Replay]
	switch {
	case was.none() && now.none():
	case now.none() && !c.report.names.named():
		c.note("%s of MCP servers, which did not run, do not gate", was)
	default:
		c.note("what MCP servers asked themselves does not gate%s", c.report.names.versus(was.String(), now.String()))
	}
}

// serversAsked is what the MCP servers of one side asked.
type serversAsked struct {
	exchanges     int
	sockets       map[uint64]bool // by connection
	conversations map[uint64]bool // by number
	servers       bool            // there are some that run beside the program
	hosts         map[string]bool // that the program itself asked: who looked up another name nobody knows
}

func (a *serversAsked) find(rec *tape.Record) {
	if open, ok := rec.Kind.(*tape.MCPOpen); ok && open.Transport == "stdio" {
		a.servers = true
	}
	if tape.OriginOf(rec.Kind) == 0 {
		a.findOwn(rec.Kind)
		return
	}
	switch k := rec.Kind.(type) {
	case *tape.WSOpen:
		a.sockets[cmp.Or(k.Connection, k.Arrival)] = true
	case *tape.MCPOpen:
		a.conversations[k.Conversation] = true
	case *tape.ProcessSpawn, *tape.NameLookup, *tape.NetRefused: // a server of a replay is none, and tries nothing
	default:
		a.exchanges++
	}
}

func (a *serversAsked) findOwn(k tape.Kind) {
	if ex := tape.ExchangeOf(k); ex != nil {
		a.hosts[hostName(ex.URL)] = true
	}
	if ws, ok := k.(*tape.WSOpen); ok {
		a.hosts[hostName(ws.URL)] = true
	}
}

// hostName is the host of a URL, without a port.
func hostName(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// takes reports whether a record is of what was found.
func (a *serversAsked) takes(k tape.Kind) bool {
	if tape.OriginOf(k) != 0 {
		return true
	}
	switch k := k.(type) {
	case *tape.LLMCall:
		return k.Connection != 0 && a.sockets[k.Connection]
	case *tape.NameLookup:
		return a.unknown(k.Extra) && !a.hosts[k.Host]
	case *tape.NetRefused:
		return a.unknown(k.Extra) && isSocket(k)
	case *tape.WSMessage:
		return a.sockets[k.Connection]
	case *tape.WSClose:
		return a.sockets[k.Connection]
	}
	at, _ := placeIn(k)
	return at.conversation != 0 && a.conversations[at.conversation]
}

// unknown reports whether a server may have made an attempt that does not say whose it is.
func (a *serversAsked) unknown(extra []tape.Field) bool {
	return a.servers && tape.FieldValue(extra, tape.OpenerKey) == nil
}

func (a *serversAsked) none() bool { return a.exchanges+len(a.sockets)+len(a.conversations) == 0 }

// String says how many exchanges (WebSockets are some) and conversations they are.
func (a *serversAsked) String() string {
	exchanges, conversations := a.exchanges+len(a.sockets), len(a.conversations)
	switch {
	case conversations == 0:
		return counted(exchanges, "exchange")
	case exchanges == 0:
		return counted(conversations, "conversation")
	}
	return counted(exchanges, "exchange") + " and " + counted(conversations, "conversation")
}

// ignoreCarriers takes out the exchanges that carried messages of an MCP conversation over HTTP: the messages are compared by
// themselves. One that carried none, such as a session that was refused, gates as any exchange does; but not a stream for what a server
// says unasked (GET) and the end of a session (DELETE): how often a client opens the one again, and whether it comes to the other before
// it ends, depends on the moment. So does how often one side asks whether the other is there (ping).
func (c *ignoring) ignoreCarriers() {
	if c.mode == ByteIdentical {
		return
	}
	var carried [2]map[uint64]bool
	for s, e := range c.records() {
		if call := callOf(e.rec); call != nil {
			if carried[s] == nil {
				carried[s] = make(map[uint64]bool)
			}
			carried[s][call.Exchange], carried[s][call.AnswerExchange] = true, true
		}
	}
	for s, e := range c.records() {
		ex, ok := e.rec.Kind.(*tape.HTTPExchange)
		carries := ok && ex.Arrival != 0 && carried[s][ex.Arrival] && carrier(ex.Lane)
		if call := callOf(e.rec); carries || ok && isStream(ex) || call != nil && call.Method == "ping" {
			e.rec = nil
		}
	}
}

// carrier reports whether exchanges of a lane may carry messages of MCP: those of servers, and those that nothing answered.
func carrier(lane string) bool { return strings.HasPrefix(lane, laneMCP) || lane == laneUnmatched }

// isStream reports whether an exchange of a tool server asks for no more than its stream, or for the end of its session.
func isStream(ex *tape.HTTPExchange) bool {
	return strings.HasPrefix(ex.Lane, laneMCP) && (ex.Method == http.MethodGet || ex.Method == http.MethodDelete)
}

// maxStderr bounds, in bytes, what servers wrote to stderr that is held to compare, of one lane on one side.
const maxStderr = 1 << 20

// ignoreStderr takes out what servers wrote to stderr, and notes where it differs: it is for people, and cut anywhere.
func (c *ignoring) ignoreStderr() {
	said := make(map[string]*[2]strings.Builder)
	for s, e := range c.records() {
		text, ok := e.rec.Kind.(*tape.MCPText)
		if !ok || text.From != fromStderr {
			continue
		}
		lane := LaneOf(text)
		if said[lane] == nil {
			said[lane] = new([2]strings.Builder)
		}
		if b := &said[lane][s]; inRecord(text.Payload) && b.Len() < maxStderr {
			b.WriteString(text.Payload.Text)
		} else {
			b.WriteString(hashOf(text.Payload).Short())
		}
		e.rec = nil
	}
	for _, lane := range slices.Sorted(maps.Keys(said)) {
		was, now := said[lane][Recorded].String(), said[lane][Replay].String()
		if was != now && c.o.masked(was) != c.o.masked(now) {
			c.note("lane %s: what the server wrote to stderr differs, which does not gate", lane)
		}
	}
}

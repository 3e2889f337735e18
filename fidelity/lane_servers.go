package fidelity

import (
	"cmp"
	"net/url"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// setServersAside takes out what MCP servers themselves asked of others over the network, and the conversations that they held as
// clients, and notes how many these are: on a replay no server runs, and the program sees of it what its servers said.
func (c *laneCompare) setServersAside() {
	var asked [2]serversAsked
	for s := range c.sides {
		a := serversAsked{sockets: make(map[uint64]bool), talks: make(map[uint64]bool), hosts: make(map[string]bool)}
		for i := range c.sides[s].entries { // a conversation's records may stand before its number is known to be one of these
			a.find(c.sides[s].entries[i].rec)
		}
		for i := range c.sides[s].entries {
			if e := &c.sides[s].entries[i]; a.takes(e.rec) {
				e.rec = nil
			}
		}
		asked[s] = a
	}
	was, now := &asked[Recorded], &asked[Replay]
	switch {
	case was.none() && now.none():
	case now.none() && !c.o.sidesNamed():
		c.note("%s of MCP servers, which did not run, do not gate", was)
	default:
		c.note("what MCP servers asked themselves does not gate%s", c.report.sides.versus(was.String(), now.String()))
	}
}

// sidesNamed reports whether two recordings are compared, and no replay.
func (o *LaneOptions) sidesNamed() bool { return sides(o.Sides).named() }

// serversAsked is what the MCP servers of one side asked.
type serversAsked struct {
	exchanges int
	sockets   map[uint64]bool // by connection
	talks     map[uint64]bool // by number
	servers   bool            // there are some that run beside the program
	hosts     map[string]bool // that the program itself asked: who looked up another name nobody knows
}

func (a *serversAsked) find(rec *tape.Record) {
	if rec == nil {
		return
	}
	if open, ok := rec.Kind.(*tape.MCPOpen); ok && open.Transport == "stdio" {
		a.servers = true
	}
	if tape.AskerOf(rec.Kind) == 0 {
		a.findOwn(rec.Kind)
		return
	}
	switch k := rec.Kind.(type) {
	case *tape.WSOpen:
		a.sockets[cmp.Or(k.Connection, k.Arrival)] = true
	case *tape.MCPOpen:
		a.talks[k.Conversation] = true
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
func (a *serversAsked) takes(rec *tape.Record) bool {
	if rec == nil {
		return false
	}
	switch k := rec.Kind.(type) {
	case *tape.LLMCall:
		return tape.AskerOf(k) != 0 || k.Connection != 0 && a.sockets[k.Connection]
	case *tape.NameLookup:
		return tape.AskerOf(k) != 0 || a.unknown(k.Extra) && !a.hosts[k.Host]
	case *tape.NetRefused:
		return tape.AskerOf(k) != 0 || a.unknown(k.Extra) && isSocket(k)
	case *tape.WSMessage:
		return a.sockets[k.Connection]
	case *tape.WSClose:
		return a.sockets[k.Connection]
	case *tape.MCPJSONRPC:
		return k.Conversation != 0 && a.talks[k.Conversation]
	case *tape.MCPText:
		return k.Conversation != 0 && a.talks[k.Conversation]
	case *tape.MCPClose:
		return k.Conversation != 0 && a.talks[k.Conversation]
	}
	return tape.AskerOf(rec.Kind) != 0
}

// unknown reports whether a server may have made an attempt that does not say whose it is.
func (a *serversAsked) unknown(extra []tape.Field) bool {
	return a.servers && tape.FieldValue(extra, tape.OpenerKey) == nil
}

func (a *serversAsked) none() bool { return a.exchanges+len(a.sockets)+len(a.talks) == 0 }

// String says how many exchanges (WebSockets are some) and conversations they are.
func (a *serversAsked) String() string {
	exchanges, talks := a.exchanges+len(a.sockets), len(a.talks)
	switch {
	case talks == 0:
		return counted(exchanges, "exchange")
	case exchanges == 0:
		return counted(talks, "conversation")
	}
	return counted(exchanges, "exchange") + " and " + counted(talks, "conversation")
}

package fidelity

import (
	"fmt"
	"slices"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// aloneConversation reports a conversation with a tool server, or over a WebSocket, that one side alone had: as one divergence,
// that of its beginning. It reports whether it was one.
func (c *laneCompare) aloneConversation(p lanePair) bool {
	side, es := Recorded, p.a
	if len(p.a) == 0 {
		side, es = Replay, p.b
	}
	if len(p.a) > 0 && len(p.b) > 0 || !conversational(es[0].rec.Kind) {
		return false
	}
	before := len(c.found)
	for i := range es {
		c.alone(side, p.name, &es[i], es[i].at*int(side))
	}
	rest := c.found[min(before+1, len(c.found)):]
	if len(rest) == 0 {
		return true
	}
	refused := slices.DeleteFunc(slices.Clone(rest), func(f placed) bool { return f.refused == nil })
	c.found = append(c.found[:before+1], refused...)
	if more := len(rest) - len(refused); more > 0 {
		c.found[before].Message += fmt.Sprintf(", and %s more of that conversation", counted(more, "record"))
	}
	return true
}

// conversational reports whether a record is one of a conversation, which as a whole is there or is not.
func conversational(k tape.Kind) bool {
	switch k.(type) {
	case *tape.MCPOpen, *tape.MCPJSONRPC, *tape.MCPText, *tape.MCPClose, *tape.WSOpen, *tape.WSMessage, *tape.WSClose:
		return true
	}
	return false
}

// refusedPair lists a call, or a message of a WebSocket, that nothing answered on the replay and that came in the place of a
// recorded one: that one was never asked for.
func (c *laneCompare) refusedPair(lane string, p *placed, of pair) {
	switch p.Category {
	case MCPRequestDigest, MCPError, WSMessageHash:
	default:
		return
	}
	if !isRefused(of.b.rec.Kind) || isRefused(of.a.rec.Kind) {
		return
	}
	now, _ := c.requestIn(lane, of.b.rec.Kind)
	was := *now
	if a, ok := c.requestIn(lane, of.a.rec.Kind); ok {
		was = *a
	}
	c.report.Unasked = append(c.report.Unasked, was.ref(p.Seq, lane))
	c.refuse(p, of.b, now)
}

// A program that opens several sockets alike hears what the servers say first before it says which socket is which. What a replay said on
// another one than the recording had it is compared with what it is, not with what stands in its place.

// elsewhere counts what was heard on another socket.
type elsewhere struct {
	messages map[uint64]*entry // of servers, on the side of the recording, by seq; nil before they are looked for
	heard    int
}

// heardElsewhere is the pair of a message of a server that a replay said on another socket; p itself for any other.
func (c *laneCompare) heardElsewhere(p pair) pair {
	k, ok := p.b.rec.Kind.(*tape.WSMessage)
	if !ok || k.Direction != received {
		return p
	}
	seq, ok := tape.ElsewhereOf(k)
	if !ok {
		return p
	}
	if c.elsewhere.messages == nil {
		c.elsewhere.messages = c.heard()
	}
	was := c.elsewhere.messages[seq]
	if was == nil || was.rec == p.a.rec {
		return p
	}
	delete(c.elsewhere.messages, seq) // each was said once
	if was.id != p.a.id {             // else it is all the same
		c.elsewhere.heard++
	}
	p.a = was
	return p
}

// received is the direction of what a server says.
const received = "received"

// heard are the recorded messages of servers, by seq.
func (c *laneCompare) heard() map[uint64]*entry {
	all := make(map[uint64]*entry)
	for e := range c.sides[Recorded].records() {
		if k, ok := e.rec.Kind.(*tape.WSMessage); ok && k.Direction == received {
			all[e.rec.Seq] = e
		}
	}
	return all
}

// tell says how much was heard elsewhere.
func (e *elsewhere) tell(c *laneCompare) {
	if e.heard > 0 {
		c.note("%s of servers came on another of several WebSockets that were opened alike: which was which the program had not said",
			counted(e.heard, "message"))
	}
}

// callOf is the message to or of a tool server that a record holds; nil for none, and for no record.
func callOf(rec *tape.Record) *tape.MCPJSONRPC {
	if rec == nil {
		return nil
	}
	call, _ := rec.Kind.(*tape.MCPJSONRPC)
	return call
}

// requestIn is requestOf of a record in a lane: of a message of a WebSocket the URL is that of the lane's beginning.
func (c *laneCompare) requestIn(lane string, k tape.Kind) (*request, bool) {
	a, ok := requestOf(k)
	if ok && a.url == "" {
		a.url = c.urls[lane]
	}
	return a, ok
}

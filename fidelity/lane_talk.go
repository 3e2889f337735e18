package fidelity

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/mcptext"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// byPlace orders the records of a conversation with a tool server by the place of their lines in it: a call's record stands
// where its answer came. Where a place is not known they stay as they are.
func byPlace(es []entry) {
	for i := range es {
		if _, ok := placeIn(es[i].rec.Kind); !ok {
			return
		}
	}
	slices.SortStableFunc(es, func(a, b entry) int {
		pa, _ := placeIn(a.rec.Kind)
		pb, _ := placeIn(b.rec.Kind)
		return cmp.Or(cmp.Compare(pa.conversation, pb.conversation), cmp.Compare(pa.line, pb.line), cmp.Compare(a.at, b.at))
	})
}

// keyServers gives the lanes of tool servers keys that say what was started: of two with one name, which is told of first, and so
// is called #2, is a matter of moments. Of equal ones the numbers count, which on a replay are those of the recorded conversations.
func (c *laneCompare) keyServers(lanes []*lane) {
	number := func(l *lane) uint64 {
		place, _ := placeIn(l.entries[0].rec.Kind)
		return place.conversation
	}
	lanes = slices.SortedStableFunc(slices.Values(lanes), func(a, b *lane) int { return cmp.Compare(number(a), number(b)) })
	used := make(map[string]int)
	for _, l := range lanes {
		open, ok := l.entries[0].rec.Kind.(*tape.MCPOpen)
		if !ok {
			continue
		}
		parts := []string{tape.MCPServer(l.name), open.Transport, c.o.masked(open.Program), c.o.masked(open.URL)}
		for _, a := range open.Args {
			parts = append(parts, c.o.masked(a))
		}
		l.key = strings.Join(parts, "\x00")
		used[l.key]++
		l.key += fmt.Sprintf("\x00#%d", used[l.key])
	}
}

// A talkPlace is where in a conversation something stands.
type talkPlace struct{ conversation, line uint64 }

func placeIn(k tape.Kind) (talkPlace, bool) {
	switch k := k.(type) {
	case *tape.MCPOpen:
		return talkPlace{k.Conversation, 0}, true
	case *tape.MCPJSONRPC:
		return talkPlace{k.Conversation, k.Arrival}, k.Arrival > 0
	case *tape.MCPText:
		return talkPlace{k.Conversation, k.Arrival}, true
	case *tape.MCPClose:
		return talkPlace{k.Conversation, k.Arrival + 1}, true
	}
	return talkPlace{}, false
}

// likelyCall is likely for calls of tool servers: of the same tool. What is no such call has a likely identity of its own kind.
func likelyCall(k tape.Kind) string {
	call, ok := k.(*tape.MCPJSONRPC)
	if !ok {
		return likely(k)
	}
	return likely(k) + " " + subjectOfCall(call)
}

// setCarriersAside takes out the exchanges that carried messages of an MCP conversation over HTTP: the messages are compared by
// themselves. One that carried none, such as a session that was refused, gates as any exchange does; but not a stream for what a server
// says unasked (GET) and the end of a session (DELETE): how often a client opens the one again, and whether it comes to the other before
// it ends, depends on the moment. So does how often one side asks whether the other is there (ping).
func (c *laneCompare) setCarriersAside() {
	if c.mode == ByteIdentical {
		return
	}
	for s := range c.sides {
		carried := make(map[uint64]bool)
		for _, e := range c.sides[s].entries {
			if call := callOf(e.rec); call != nil {
				carried[call.Exchange], carried[call.AnswerExchange] = true, true
			}
		}
		delete(carried, 0)
		for i := range c.sides[s].entries {
			e := &c.sides[s].entries[i]
			if e.rec == nil {
				continue
			}
			if ex, ok := e.rec.Kind.(*tape.HTTPExchange); ok && (carried[ex.Arrival] && carrier(ex.Lane) || isStream(ex)) {
				e.rec = nil
			} else if call := callOf(e.rec); call != nil && call.Method == "ping" {
				e.rec = nil
			}
		}
	}
}

// carrier reports whether exchanges of a lane may carry messages of MCP: those of servers, and those that nothing answered.
func carrier(lane string) bool { return strings.HasPrefix(lane, laneMCP) || lane == laneUnmatched }

// isStream reports whether an exchange of a tool server asks for no more than its stream, or for the end of its session.
func isStream(ex *tape.HTTPExchange) bool {
	return strings.HasPrefix(ex.Lane, laneMCP) && (ex.Method == http.MethodGet || ex.Method == http.MethodDelete)
}

// callOf is the message to or of a tool server that a record holds; nil for none, and for no record.
func callOf(rec *tape.Record) *tape.MCPJSONRPC {
	if rec == nil {
		return nil
	}
	call, _ := rec.Kind.(*tape.MCPJSONRPC)
	return call
}

// maxStderr bounds, in bytes, what servers wrote to stderr that is held to compare, of one lane on one side.
const maxStderr = 1 << 20

// setStderrAside takes out what servers wrote to stderr, and notes where it differs: it is for people, and cut anywhere.
func (c *laneCompare) setStderrAside() {
	said := make(map[string]*[2]strings.Builder)
	for s := range c.sides {
		for i := range c.sides[s].entries {
			e := &c.sides[s].entries[i]
			if e.rec == nil {
				continue
			}
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
	}
	for _, lane := range slices.Sorted(maps.Keys(said)) {
		was, now := said[lane][Recorded].String(), said[lane][Replay].String()
		if was != now && c.o.masked(was) != c.o.masked(now) {
			c.note("lane %s: what the server wrote to stderr differs, which does not gate", lane)
		}
	}
}

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
		c.found[before].Message += fmt.Sprintf(", and %s more of that conversation", records(more))
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

// noteRenamed keeps in mind that the server of a lane was said to have another name: once is enough.
func (c *laneCompare) noteRenamed(lane string, f Category) {
	if f != MCPServer && f != MCPOpenServer {
		return
	}
	if c.renamed == nil {
		c.renamed = make(map[string]bool)
	}
	c.renamed[lane] = true
}

// noteURL keeps in mind where the WebSocket of a lane goes.
func (c *laneCompare) noteURL(lane string, k tape.Kind) {
	open, ok := k.(*tape.WSOpen)
	if !ok {
		return
	}
	if c.urls == nil {
		c.urls = make(map[string]string)
	}
	c.urls[lane] = open.URL
}

// refusedPair lists a call, or a message of a WebSocket, that nothing answered on the replay and that came in the place of a
// recorded one: that one was never asked for.
func (c *laneCompare) refusedPair(lane string, p *placed, of pair) {
	switch p.Category {
	case MCPRequestDigest, MCPError, WSMessageHash:
	default:
		return
	}
	if !refusedTalk(of.b.rec.Kind) || refusedTalk(of.a.rec.Kind) {
		return
	}
	now, _ := c.askedIn(lane, of.b.rec.Kind)
	was := *now
	if a, ok := c.askedIn(lane, of.a.rec.Kind); ok {
		was = *a
	}
	c.report.Unasked = append(c.report.Unasked, was.ref(p.Seq, lane))
	c.refuse(p, of.b, now)
}

// refusedTalk reports whether a record is a call, or a message of a WebSocket, that nothing on the tape answered.
func refusedTalk(k tape.Kind) bool {
	switch k := k.(type) {
	case *tape.MCPJSONRPC:
		return refusedCall(k)
	case *tape.WSMessage:
		return refusedMessage(k) != ""
	}
	return false
}

// subjectIn names the tool that a call is of, from its request wherever that stands.
func (x *explainer) subjectIn(k *tape.MCPJSONRPC, s Side) string {
	if inRecord(k.Request) || k.Request == nil || k.Request.Len > maxAnswer || x.spent() {
		return subjectOfCall(k)
	}
	b, err := x.bytes(k.Request, s)
	if err != nil {
		return ""
	}
	return shortened(mcptext.Subject(k.Method, b))
}

package fidelity

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A request is what a program asked somebody for, as a report names it.
type request struct {
	method, url string
	subject     string // of a call of a tool: which
	digest      cas.Digest
	failure     string // why nothing answered
}

// requestOf returns what a record asks for; it is not ok for one that asks for nothing: a notification, a request of a server.
func requestOf(k tape.Kind) (*request, bool) {
	if ex := tape.ExchangeOf(k); ex != nil {
		return &request{method: ex.Method, url: ex.URL, digest: ex.RequestDigest, failure: ex.Error}, true
	}
	switch k := k.(type) {
	case *tape.MCPJSONRPC:
		if fromOf(k) != fromClient || k.IsNotification() {
			return nil, false
		}
		digest := k.ParamsDigest
		if digest.IsZero() {
			digest = k.RequestDigest
		}
		return &request{k.Method, laneMCP + k.Server, subjectOfCall(k), digest, k.Error}, true
	case *tape.WSOpen:
		return &request{method: "GET", url: k.URL}, true
	case *tape.WSMessage:
		if why := refusedMessage(k); why != "" {
			return &request{method: "GET", subject: "a message", digest: hashOf(k.Payload), failure: why}, true
		}
	}
	return nil, false
}

// refusedMessage is why nothing on the tape fits a message of a WebSocket; "" where something did.
func refusedMessage(k *tape.WSMessage) (why string) {
	if raw := tape.FieldValue(k.Extra, "refused"); raw != nil {
		_ = json.Unmarshal(raw, &why) // what is no text says nothing
	}
	return why
}

// String names the request as people do: GET https://host/path, tools/call read_file of files.
func (a *request) String() string {
	if server, ok := strings.CutPrefix(a.url, laneMCP); ok {
		return spaced(a.method, a.subject, "of", server)
	}
	if a.subject != "" {
		return a.subject + " to " + a.url
	}
	return a.method + " " + a.url
}

func (a *request) ref(seq *uint64, lane string) RequestRef {
	return RequestRef{Seq: seq, Method: a.method, URL: a.url, Lane: lane}
}

// isRefused reports whether nothing on the tape answered a request of a replay.
func isRefused(k tape.Kind) bool {
	switch k := k.(type) {
	case *tape.MCPJSONRPC:
		return refusedCall(k)
	case *tape.WSOpen:
		return k.Lane == laneUnmatched
	case *tape.WSMessage:
		return refusedMessage(k) != ""
	}
	ex := tape.ExchangeOf(k)
	return ex != nil && ex.Lane == laneUnmatched
}

// What Error of an mcp_json_rpc says of a request that got no answer; anything else is why the recorder refused it. Where the
// asking side did not wait for the answer, whether it had come by then is a matter of moments.
const (
	mcpCancelled     = "cancelled"
	mcpClientEnded   = "client ended"
	mcpServerEnded   = "server ended"
	mcpRecorderEnded = "recorder ended"
	mcpAnswerLost    = "the answer was too long to be kept"
)

// refusedCall reports whether nothing on the tape answered a request of the client: the recorder did.
func refusedCall(k *tape.MCPJSONRPC) bool {
	switch k.Error {
	case "", mcpCancelled, mcpClientEnded, mcpServerEnded, mcpRecorderEnded, mcpAnswerLost:
		return false
	}
	return fromOf(k) == fromClient
}

// The sides of a conversation, as From holds them.
const (
	fromClient = "client"
	fromServer = "server"
	fromStderr = "stderr"
)

func fromOf(k *tape.MCPJSONRPC) string { return cmp.Or(k.From, fromClient) }

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
	for _, e := range es {
		c.alone(side, p.name, e, e.at*int(side))
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
	for e := range c.sides[Recorded].records(ofSocket) {
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

// A networkLane is the names that were looked up and the connections that were refused.
type networkLane struct {
	*laneCompare
	alive map[string]bool // hosts that answered while recording
}

// compare compares both sides. Order and repeats do not count, but for sockets that send datagrams. What one
// side alone tried gates where both were given the same time and randomness; else a name that was looked up is a note, and so are
// a Unix socket and a connection that the replay no longer tries. So is, always, a TLS connection that was closed before a request, to a host that
// answered others: a pool opens them to spare, and has no use for them when answers come at once. A client that trusts nobody any
// more leaves requests that were never asked for.
func (c *networkLane) compare(p lanePair) {
	was, now := c.attempts(p.a), c.attempts(p.b)
	for _, e := range onlyIn(now, was) {
		switch host := tlsHost(e.rec.Kind); {
		case c.alive[host]:
			c.note("closed on replay before a request: a TLS connection to %s, which answered others", host)
		case !c.o.Exact && !isConnection(e.rec.Kind):
			c.note("tried on replay alone: %s", describe(e.rec.Kind))
		case was[c.attempt(e.rec.Kind)+firstSocket] != nil: // recordings were made that have each address once
			c.note("tried on replay from one socket more: %s", describe(e.rec.Kind))
		default:
			c.alone(Replay, laneNetwork, e, e.at)
		}
	}
	for _, e := range onlyIn(was, now) {
		if _, spare := e.rec.Kind.(*tape.TLSRefused); c.o.Exact && !spare { // given the same, it looks up and asks for the same again
			c.alone(Recorded, laneNetwork, e, c.end())
		} else {
			c.note("tried while recording and not on replay: %s", describe(e.rec.Kind))
		}
	}
}

// isConnection reports whether a program tried to reach another machine, or a port of this one.
func isConnection(k tape.Kind) bool {
	r, ok := k.(*tape.NetRefused)
	_, lookup := k.(*tape.NameLookup)
	return !lookup && (!ok || !isSocket(r))
}

// tlsHost is the host of a refused TLS connection as it stands in URLs; "" for any other kind.
func tlsHost(k tape.Kind) string {
	t, ok := k.(*tape.TLSRefused)
	switch {
	case !ok:
		return ""
	case t.Port == 443:
		return t.Host
	}
	return net.JoinHostPort(t.Host, strconv.Itoa(t.Port))
}

// onlyIn are the attempts of one side that the other did not make, in order.
func onlyIn(side, other map[string]*entry) (out []*entry) {
	for key, e := range side {
		if other[key] == nil {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b *entry) int { return cmp.Compare(a.at, b.at) })
	return out
}

// firstSocket ends the key of the first socket that sent datagrams to an address.
const firstSocket = " socket 1"

// attempts returns the first entry of every attempt, and of datagrams that of every socket.
func (c *networkLane) attempts(es []*entry) map[string]*entry {
	out, sockets := make(map[string]*entry), make(map[string]int)
	for _, e := range es {
		key := c.attempt(e.rec.Kind)
		if r, ok := e.rec.Kind.(*tape.NetRefused); ok && c.o.Exact && strings.HasPrefix(r.Reason, "udp") {
			sockets[key]++
			key = fmt.Sprint(key, " socket ", sockets[key])
		}
		if out[key] == nil {
			out[key] = e
		}
	}
	return out
}

// attempt says which name was looked up or where a refused connection went, ports of the loopback masked.
func (c *networkLane) attempt(k tape.Kind) string {
	masked := c.o.masked
	if c.o.Exact { // nothing of it differs by itself
		masked = func(s string) string { return s }
	}
	switch k := k.(type) {
	case *tape.TLSRefused:
		return "tls " + masked(net.JoinHostPort(k.Host, strconv.Itoa(k.Port)))
	case *tape.NameLookup:
		return "name " + masked(k.Host) + " " + k.Type + " " + k.Result
	case *tape.NetRefused:
		return "net " + masked(net.JoinHostPort(k.Addr, strconv.Itoa(k.Port)))
	}
	return fmt.Sprintf("%T", k)
}

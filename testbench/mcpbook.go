package testbench

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/axis/mcp"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/internal/arrival"
	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
	"github.com/tapedeck-dev/tapedeck/internal/lane"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// The methods that mean something here.
const (
	methodCall       = "tools/call"
	methodInitialize = "initialize"
	methodDiscover   = "server/discover"
)

// A toolBook holds the requests to MCP servers that a tape has, of all conversations, and answers each once. A tape needs no more of
// them than the seven keys that every producer of the format writes.
type toolBook struct {
	store   cas.Store
	log     *mcp.Log // writes nothing: brings params into the form in which they are compared
	clean   func([]byte) []byte
	inOrder bool // answers each method in recorded order, whatever is asked
	calls   []*toolCall
	script  *lane.Player[toolKey, *toolCall] // of calls, line by line
}

// toolKey is what requests are matched by, beside the server. The digest is zero where only the method counts.
type toolKey struct {
	method string
	digest cas.Digest
}

// A toolCall is a recorded request of a client.
type toolCall struct {
	seq     uint64
	kind    *tape.MCPJSONRPC
	surface []byte     // its params as they are compared, masked; nil where the tape has lost them
	digest  cas.Digest // of surface
	exact   cas.Digest // the same without masks
	line    int        // of the script
}

// newToolBook reads the requests of a tape; records of other kinds pass by. clean takes out of what is asked the secrets that a tape
// does not hold. An error is one that records gave.
//
// With inOrder each method is answered in recorded order, whatever is asked.
func newToolBook(records iter.Seq2[*tape.Record, error], store cas.Store, clean func([]byte) []byte, inOrder bool) (*toolBook, error) {
	masker, err := bareMasker()
	if err != nil {
		return nil, err
	}
	b := &toolBook{store: store, log: mcp.NewLog(nil, nil, masker, nil), clean: clean, inOrder: inOrder}
	for rec, err := range records {
		if err != nil {
			return nil, err
		}
		k, ok := rec.Kind.(*tape.MCPJSONRPC)
		if !ok || k.From == string(mcp.Server) || k.IsNotification() {
			continue
		}
		b.add(rec.Seq, k)
	}
	b.sort()
	b.arrange()
	return b, nil
}

func (b *toolBook) add(seq uint64, k *tape.MCPJSONRPC) {
	c := &toolCall{seq: seq, kind: k}
	if k.Request != nil {
		if m, err := mcp.MessageOf(k.Request, b.store); err == nil {
			params := surfaceOf(k.Method, m.Params)
			c.surface = b.log.Surface(k.Method, params)
			c.digest, c.exact = cas.Sum(c.surface), cas.Sum(params)
		}
	}
	b.calls = append(b.calls, c)
}

// sort puts the requests of each conversation in the order in which they were asked, on the places that they have: a record stands
// where its answer came. A testbench's tape knows no conversations: there the requests to a server are one.
func (b *toolBook) sort() {
	type conversation struct {
		number uint64
		server string
	}
	places := make(map[conversation][]int)
	for i, c := range b.calls {
		in := conversation{number: c.kind.Conversation}
		if in.number == 0 {
			in.server = c.kind.Server
		}
		places[in] = append(places[in], i)
	}
	for _, at := range places {
		asked := make([]*toolCall, len(at))
		for i, p := range at {
			asked[i] = b.calls[p]
		}
		arrival.Sort(asked, func(c *toolCall) uint64 { return c.kind.Arrival })
		for i, p := range at {
			b.calls[p] = asked[i]
		}
	}
}

// arrange makes the script.
func (b *toolBook) arrange() {
	lines := make([]lane.Line[*toolCall], len(b.calls))
	for i, c := range b.calls {
		lines[i].Value, c.line = c, i
	}
	b.script = lane.NewPlayer(lines, &lane.PlayerOptions[toolKey, *toolCall]{Key: func(c *toolCall) toolKey { return b.key(c.kind.Method, c.digest) }})
}

// key is what the script knows a request by.
func (b *toolBook) key(method string, digest cas.Digest) toolKey {
	if b.inOrder {
		return toolKey{method: method}
	}
	return toolKey{method, digest}
}

// surfaceOf is the canonical form of the params of a request, without what a client says there of itself, and with no arguments where
// they are empty.
func surfaceOf(method string, params json.RawMessage) []byte {
	v, err := canonjson.Parse(params)
	if err != nil || v.Kind != canonjson.Object {
		return []byte("{}")
	}
	v.Members = slices.DeleteFunc(withoutEmpty(method, v.Members), func(m canonjson.Member) bool { return m.Key == "_meta" })
	return v.Append(nil)
}

// withoutEmpty takes the arguments out of the params of a call where there are none in them.
func withoutEmpty(method string, params []canonjson.Member) []canonjson.Member {
	return slices.DeleteFunc(params, func(m canonjson.Member) bool {
		none := m.Value.Kind == canonjson.Null || m.Value.Kind == canonjson.Object && len(m.Value.Members) == 0
		return method == methodCall && m.Key == "arguments" && none
	})
}

// take uses up the request that answers one. The error is a *RefusedError.
func (b *toolBook) take(server, method string, params json.RawMessage) (*toolCall, error) {
	if method == methodInitialize || method == methodDiscover {
		if c := b.begin(server, method); c != nil {
			return c, nil
		}
	}
	clean := surfaceOf(method, b.clean(params))
	surface := b.log.Surface(method, clean)
	exact := cas.Sum(clean)
	if c, ok := b.script.Take(b.key(method, cas.Sum(surface)), 1, func(c *toolCall) int { return b.alike(c, server, exact) }); ok {
		return c, nil
	}
	return nil, &RefusedError{
		Axis: "mcp", Asked: fmt.Sprintf("not on the tape: %s of %s", wanted(method, params), server),
		Nearest: b.nearest(server, method, surface), Next: "record the run again, or undo what changed the call",
	}
}

// alike says how well a recorded request of a key answers one, for lane.Player: -1 where it was asked of another server, or nobody knows
// what it asked for, 1 where they are the same without masks too.
func (b *toolBook) alike(c *toolCall, server string, exact cas.Digest) int {
	switch {
	case b.inOrder:
		return 1
	case c.surface == nil || !c.of(server):
		return -1
	case c.exact == exact:
		return 1
	}
	return 0
}

// begin finds the answer to a request with which a client begins: whoever asks gets the same one.
func (b *toolBook) begin(server, method string) *toolCall {
	for _, c := range b.calls {
		if c.kind.Method != method || !c.of(server) && !b.inOrder {
			continue
		}
		if m, err := c.answer(b.store); err == nil && m != nil && m.Error == nil {
			return c
		}
	}
	return nil
}

// knows reports whether a server was asked anything.
func (b *toolBook) knows(server string) bool {
	return b.inOrder || slices.ContainsFunc(b.calls, func(c *toolCall) bool { return c.of(server) })
}

// of reports whether c was asked of a server: "files" is each of "files" and "files#2", "files#2" that one alone.
func (c *toolCall) of(server string) bool {
	return c.kind.Server == server || tape.MCPServer(c.kind.Server) == server
}

// answer is the message that answered c; nil where none did.
func (c *toolCall) answer(store cas.Store) (*mcp.Message, error) {
	p := c.kind.Response
	if p == nil || p.Len == 0 && len(p.Text) == 0 {
		return nil, nil
	}
	m, err := mcp.MessageOf(p, store)
	if err == nil && m.Result == nil && m.Error == nil {
		err = errors.New("its answer has neither a result nor an error")
	}
	return m, err
}

// nearest says which recorded request is most like one that is not on the tape, and where the two differ.
func (b *toolBook) nearest(server, method string, surface []byte) string {
	same, last, digest := 0, uint64(0), cas.Sum(surface)
	for _, c := range b.calls {
		if c.surface != nil && c.kind.Method == method && c.of(server) && c.digest == digest {
			same, last = same+1, c.seq
		}
	}
	switch same {
	case 0:
		return b.closest(server, method, surface)
	case 1:
		return fmt.Sprintf("it was recorded once, as record %d, and was asked once more", last)
	}
	return fmt.Sprintf("it was recorded %s, last as record %d, and was asked once more", lane.Times(same), last)
}

// closest is nearest for a request that was never recorded.
func (b *toolBook) closest(server, method string, surface []byte) string {
	best, least, _ := lane.Nearest(b.candidates(server, method, surface), func(c *toolCall) ([]fidelity.Change, bool) {
		return fidelity.DiffJSON(c.surface, surface), true
	})
	if best == nil || len(least) == 0 {
		return b.has(server, method)
	}
	return fmt.Sprintf("nearest is record %d, which %s", best.seq, lane.Differences(least, ""))
}

// candidates lists recorded requests of a method: those for the same tool where there are any, and first those that nobody asked for yet.
func (b *toolBook) candidates(server, method string, surface []byte) []*toolCall {
	var all, same []*toolCall
	for _, c := range b.calls {
		if c.kind.Method != method || !c.of(server) || c.surface == nil {
			continue
		}
		all = append(all, c)
		if mcp.Subject(c.surface) == mcp.Subject(surface) {
			same = append(same, c)
		}
	}
	if len(same) > 0 {
		all = same
	}
	unasked := func(c *toolCall) bool { return !b.script.HasCome(c.line) }
	asked := slices.DeleteFunc(slices.Clone(all), unasked)
	return append(slices.DeleteFunc(all, func(c *toolCall) bool { return !unasked(c) }), asked...)
}

// has says what a server was asked, where a method is not among it.
func (b *toolBook) has(server, method string) string {
	var methods, servers []string
	for _, c := range b.calls {
		if c.of(server) {
			methods = append(methods, c.kind.Method)
		}
		servers = append(servers, tape.MCPServer(c.kind.Server))
	}
	switch {
	case slices.Contains(methods, method):
		return fmt.Sprintf("what the tape holds of the recorded %s to %s cannot be read", method, server)
	case len(methods) > 0:
		return fmt.Sprintf("the tape holds no %s to %s; it has %s", method, server, listed(methods))
	case len(servers) > 0:
		return fmt.Sprintf("the tape holds no server %q; it has %s", server, listed(servers))
	}
	return "the tape holds no request to an MCP server"
}

// listed is each of names once, sorted, a few of them.
func listed(names []string) string {
	slices.Sort(names)
	names = slices.Compact(names)
	const most = 8
	if n := len(names); n > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", n-most)
	}
	return strings.Join(names, ", ")
}

// unused lists the calls of tools that nobody has asked for.
func (b *toolBook) unused() (out []string) {
	for _, c := range b.script.Missing {
		if c.kind.Method == methodCall {
			out = append(out, fmt.Sprintf("record %d of Config.MCP: %s of %s", c.seq, wanted(methodCall, c.surface), c.kind.Server))
		}
	}
	return out
}

// wanted is a request for people.
func wanted(method string, params json.RawMessage) string {
	if name := mcp.Subject(params); name != "" {
		return method + " " + name
	}
	return method
}

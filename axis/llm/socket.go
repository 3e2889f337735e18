package llm

import (
	"bytes"
	"net/http"
	"net/url"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
)

// A turn over a WebSocket is read as if it had been asked by HTTP. A message may mean what stood in those before it: an answer that
// it goes on from, the settings of a session, what was said so far. So the request of a turn is folded: one JSON object with all
// that the model was asked, which is what the tape keeps and what the turn is found by. What was sent of it stands in its member
// "tapedeck", which no wire has and which does not count. Folding asks for nothing but what passed on the same socket: two runs
// whose messages are equal fold to equal requests, and a program that sends its whole conversation anew, as after a lost
// connection, asks for the same turn.

// foldedKey is the member of a folded request that says what of it was sent.
const foldedKey = "tapedeck"

// maxFolded bounds a folded request, in bytes: a longer one stands as it was sent.
const maxFolded = exchange.DefaultMaxBody

// Sockets implements exchange.SocketClassifier.
func (c *Classifier) Sockets(r *exchange.Request) exchange.Turns {
	u, err := url.Parse(r.URL)
	if err != nil {
		return nil
	}
	for i := range endpoints {
		e := &endpoints[i]
		if e.turns == nil {
			continue
		}
		if _, ok := e.match(u.Path); ok {
			return e.turns(&socket{opened: r, query: u.Query()})
		}
	}
	return nil
}

// Rename implements exchange.SocketClassifier.
func (c *Classifier) Rename(message []byte, to func(id string) string) []byte {
	return c.masker.Rename(message, to)
}

var _ exchange.SocketClassifier = (*Classifier)(nil)

// overSocket reports whether a request is a turn of a WebSocket.
func overSocket(r *exchange.Request, u *url.URL) bool {
	return r.Method == http.MethodGet && (u.Scheme == "wss" || u.Scheme == "ws")
}

// What a message of the server is to a turn follows from what it says, not from when it came: on a replay the program may be quicker
// than it was, and send what begins a turn before a message reaches it that had come before.

// A socket is what all protocols need of the one that they are spoken on.
type socket struct {
	opened *exchange.Request
	query  url.Values
	last   uint64 // number of the turn that began last
}

// begin is what begins a turn with a folded request. refuse makes the message that refuses it; nil closes the socket.
func (s *socket) begin(part exchange.TurnPart, body []byte, refuse func(string) []byte) exchange.Turn {
	s.last++
	return exchange.Turn{
		Part: part, Of: s.last, Refuse: refuse,
		Request: &exchange.Request{Method: http.MethodGet, URL: s.opened.URL, Header: s.opened.Header, Body: body},
	}
}

// outside is a message that stands by itself.
var outside = exchange.Turn{}

// partOfTurn is a message of a turn that has begun.
func partOfTurn(of uint64, ends bool) exchange.Turn {
	if ends {
		return exchange.Turn{Part: exchange.TurnEnds, Of: of}
	}
	return exchange.Turn{Part: exchange.TurnWithin, Of: of}
}

// A folding writes a folded request.
type folding struct {
	b []byte
}

// add adds a member.
func (f *folding) add(key string, value []byte) {
	f.key(key)
	f.b = append(f.b, value...)
}

// key begins a member, whose value is to follow.
func (f *folding) key(key string) {
	if len(f.b) == 0 {
		f.b = append(f.b, '{')
	} else {
		f.b = append(f.b, ',')
	}
	f.b = append(append(f.b, jsonText(key)...), ':')
}

// end returns the object.
func (f *folding) end() []byte {
	if len(f.b) == 0 {
		return []byte("{}")
	}
	return append(f.b, '}')
}

// A thread is a conversation as far as one turn: what its request brought, and then what was answered. It shares what was before
// with the threads that go on from there.
type thread struct {
	before *thread
	items  [][]byte // one JSON text each
	size   int      // of all items up to here, in bytes
	count  int      // of them
}

// then returns a thread that goes on from t, which may be nil.
func (t *thread) then(items [][]byte) *thread {
	next := &thread{before: t, items: items}
	if t != nil {
		next.size, next.count = t.size, t.count
	}
	for _, item := range items {
		next.size += len(item) + 1
	}
	next.count += len(items)
	return next
}

// list appends all items as one JSON list.
func (t *thread) list(b []byte) []byte {
	var path []*thread
	for ; t != nil; t = t.before {
		path = append(path, t)
	}
	b = append(b, '[')
	for i := len(path) - 1; i >= 0; i-- {
		for _, item := range path[i].items {
			if b[len(b)-1] != '[' {
				b = append(b, ',')
			}
			b = append(b, item...)
		}
	}
	return append(b, ']')
}

// ownItems are copies of the elements of a JSON list, in memory of their own.
func ownItems(list []byte) [][]byte {
	n := 0
	elementsOf(list, func([]byte) { n++ })
	if n == 0 {
		return nil
	}
	own := bytes.Clone(list)
	items := make([][]byte, 0, n)
	elementsOf(own, func(item []byte) { items = append(items, item) })
	return items
}

// trimmed reports whether a message may be JSON at all, whatever its opcode: Gemini's servers send theirs as binary.
func mayBeObject(payload []byte) bool {
	head := bytes.TrimLeft(payload, " \t\r\n")
	return len(head) > 0 && head[0] == '{'
}

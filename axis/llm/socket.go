package llm

import (
	"bytes"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
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
func (s *socket) begin(body []byte, refuse func(string) []byte) exchange.Turn {
	s.last++
	return exchange.Turn{
		Part: exchange.TurnBegins, Of: s.last, Refuse: refuse,
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

// A folding writes an object member by member, such as a folded request.
type folding struct {
	b []byte
}

// add adds a member.
func (f *folding) add(key string, value []byte) {
	f.b = append(f.b, "{,"[min(len(f.b), 1)])
	f.b = append(append(append(f.b, jsonText(key)...), ':'), value...)
}

// end returns the object.
func (f *folding) end() []byte {
	if len(f.b) == 0 {
		return []byte("{}")
	}
	return append(f.b, '}')
}

// A thread is a conversation as far as one turn: what its request brought, and then what was answered, one JSON text each.
type thread struct {
	items [][]byte
	size  int // of all of them, in bytes
}

// then returns a thread that goes on from t, which may be nil.
func (t *thread) then(items [][]byte) *thread {
	next := new(thread)
	if t != nil {
		next.items, next.size = slices.Clip(t.items), t.size
	}
	next.items = append(next.items, items...)
	for _, item := range items {
		next.size += len(item) + 1
	}
	return next
}

// list returns all items as one JSON list.
func (t *thread) list() []byte {
	b := make([]byte, 0, t.size+2)
	for i, item := range t.items {
		b = append(append(b, "[,"[min(i, 1)]), item...)
	}
	if len(b) == 0 {
		b = append(b, '[')
	}
	return append(b, ']')
}

// ownItems are copies of the elements of a JSON list, in memory of their own.
func ownItems(list []byte) [][]byte { return elements(bytes.Clone(list)) }

// Sound and pictures pass in every message of a live conversation, and a folded request says all of it again. So there they stand as
// the digest of what was sent: it counts as the sound itself would, and takes no room.

// maxMedia is the longest sound or picture that stands as it was sent, in bytes of base64.
const maxMedia = 256

// mediaKeys are the members that hold sound and pictures.
var mediaKeys = []string{"audio", "data", "image_url"}

// shrink puts digests in the place of sound and pictures. It edits v, which then shares no memory with what held them.
func shrink(v *canonjson.Value) {
	if !named(v) {
		return
	}
	if own, err := canonjson.Parse(v.Append(nil)); err == nil { // which it always is
		*v = own
	}
}

// named names sound and pictures by their digests, and reports whether there were any.
func named(v *canonjson.Value) (any bool) {
	for i := range v.Elems {
		any = named(&v.Elems[i]) || any
	}
	for i := range v.Members {
		m := &v.Members[i]
		if m.Value.Kind == canonjson.String && len(m.Value.Str) > maxMedia && slices.Contains(mediaKeys, m.Key) {
			m.Value = text(mediaDigest(cas.Sum([]byte(m.Value.Str)), len(m.Value.Str)))
			any = true
			continue
		}
		any = named(&m.Value) || any
	}
	return any
}

// mediaDigest names what was sent as so many bytes of base64.
func mediaDigest(d cas.Digest, n int) string { return d.String() + " of " + strconv.Itoa(n) + " bytes" }

// A stream is sound that comes in pieces.
type stream struct {
	pieces []byte // the digests of the pieces
	bytes  int
}

// add takes one piece.
func (s *stream) add(piece string) {
	sum := cas.Sum([]byte(piece))
	s.pieces = append(s.pieces, sum.String()...)
	s.bytes += len(piece)
	const many = 64 << 10 // bytes of digests
	if len(s.pieces) > many {
		sum = cas.Sum(s.pieces)
		s.pieces = append(s.pieces[:0], sum.String()...)
	}
}

// end names what came, "" for nothing, and begins anew.
func (s *stream) end() string {
	if s.bytes == 0 {
		return ""
	}
	name := mediaDigest(cas.Sum(s.pieces), s.bytes)
	*s = stream{}
	return name
}

// merge puts the members of more into those of an object, deep: what more does not name stays.
func merge(into, more *canonjson.Value) {
	for _, m := range more.Members {
		was := get(into, m.Key)
		switch {
		case was == nil:
			into.Members = append(into.Members, m)
		case was.Kind == canonjson.Object && m.Value.Kind == canonjson.Object:
			merge(was, &m.Value)
		default:
			*was = m.Value
		}
	}
}

// copyOf is a copy that can be edited.
func copyOf(v *canonjson.Value) canonjson.Value {
	out := *v
	out.Members, out.Elems = slices.Clone(v.Members), slices.Clone(v.Elems)
	for i := range out.Members {
		out.Members[i].Value = copyOf(&out.Members[i].Value)
	}
	for i := range out.Elems {
		out.Elems[i] = copyOf(&out.Elems[i])
	}
	return out
}

package llm

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/scrub/masks"
)

// A Classifier finds out what a request is. It implements exchange.Classifier and may be used by several goroutines at
// once.
type Classifier struct {
	masker *masks.Masker
}

var _ exchange.Classifier = (*Classifier)(nil)

// NewClassifier returns a Classifier. Digests are taken after m has masked; a nil m masks nothing.
func NewClassifier(m *masks.Masker) *Classifier { return &Classifier{masker: m} }

// Classify implements exchange.Classifier. The only error is a URL that does not parse.
func (c *Classifier) Classify(r *exchange.Request) (*exchange.Identity, error) {
	u, err := url.Parse(r.URL)
	if err != nil {
		return nil, fmt.Errorf("llm: url of the request: %w", err)
	}
	if len(r.Body) == 0 {
		return c.plain(r, nil), nil
	}
	if parts, ok := readParts(r.Header.Get("Content-Type"), r.Body); ok {
		return c.multipart(r, u, parts), nil
	}
	body, jsonErr := canonjson.Parse(r.Body)
	if jsonErr != nil {
		return c.plain(r, c.form(r)), nil
	}
	socket := overSocket(r, u)
	if r.Method != http.MethodPost && !socket || body.Kind != canonjson.Object {
		return c.plain(r, body.Append(make([]byte, 0, len(r.Body)))), nil
	}
	return c.object(r, u, &body, socket), nil
}

// MaskURL implements exchange.Classifier.
func (c *Classifier) MaskURL(scrubbed string) string {
	where, query, ok := strings.Cut(scrubbed, "?")
	if ok {
		scrubbed = where + "?" + c.fields(query)
	}
	return string(c.comparable([]byte(scrubbed)))
}

// form returns the body of a request; of a form of fields with what masks find in them masked, which they do not see where it is
// escaped.
func (c *Classifier) form(r *exchange.Request) []byte {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/x-www-form-urlencoded" {
		return r.Body
	}
	return []byte(c.fields(string(r.Body)))
}

// fields returns a query or a form with those fields masked that an escape keeps masks from. One in which they find nothing stays
// as it is written.
func (c *Classifier) fields(query string) string {
	if !strings.ContainsAny(query, "%+") {
		return query
	}
	parts := strings.Split(query, "&")
	for i, part := range parts {
		text, err := url.QueryUnescape(part)
		if err != nil || text == part {
			continue
		}
		if masked := string(c.masker.Mask([]byte(text))); masked != text {
			parts[i] = masked
		}
	}
	return strings.Join(parts, "&")
}

// object identifies a POST of a JSON object, or a turn over a socket.
func (c *Classifier) object(r *exchange.Request, u *url.URL, body *canonjson.Value, socket bool) *exchange.Identity {
	for e, model := range endpointsAt(u.Path, socket) {
		if e.read == nil {
			continue
		}
		if call, ok := e.read(body, e.keys); ok {
			return c.identify(r, u, e, model, call)
		}
	}
	return c.plain(r, body.Append(make([]byte, 0, len(r.Body))))
}

// multipart identifies a request by its parts.
func (c *Classifier) multipart(r *exchange.Request, u *url.URL, parts []part) *exchange.Identity {
	for i := range parts {
		parts[i].compare(c.comparable)
	}
	for e, model := range endpointsAt(u.Path, false) {
		if e.form == nil || r.Method != http.MethodPost {
			continue
		}
		if call, ok := e.form(parts, e.keys); ok {
			return c.identify(r, u, e, model, call)
		}
	}
	whole := partsValue(parts)
	return c.plain(r, whole.Append(nil))
}

// identify identifies a request to an endpoint. The path's name of the model goes before the body's.
func (c *Classifier) identify(r *exchange.Request, u *url.URL, e *endpoint, model string, call call) *exchange.Identity {
	if e.plain != "" {
		whole := call.whole()
		id := c.plain(r, whole.Append(make([]byte, 0, len(r.Body))))
		id.ErrorBody = providers[e.provider].fail
		return id
	}
	m := c.maskCall(call, len(r.Body))
	all := object(append(call.params, queryParams(u)...)...)
	params := c.comparable(all.Append(nil))
	return &exchange.Identity{
		Key: exchange.Key{
			Kind:     exchange.LLM,
			Provider: e.provider,
			Endpoint: e.name,
			Model:    cmp.Or(model, call.model),
			Params:   cas.Sum(params),
			Request:  cas.Sum(m.surface),
		},
		Talk:      m.talk,
		Surface:   m.surface,
		Params:    params,
		Usage:     func(_ string, answer []byte) []byte { return FindUsage(answer) },
		ErrorBody: providers[e.provider].fail,
	}
}

// plain identifies a request that is no call of a model.
func (c *Classifier) plain(r *exchange.Request, body []byte) *exchange.Identity {
	return exchange.HTTPIdentity(r.Method, c.MaskURL(r.URL), c.comparable(body))
}

// credentials are the parameters of a query that say who asks: keys, tokens and what AWS signs a URL with.
var credentials = []string{"key", "api_key", "access_token"}

const signedURL = "X-Amz-"

// queryParams returns the query of a URL as parameters: it may change the answer, as alt=sse does. Credentials do not.
// Values of one name keep their order. A query that does not hold counts as it stands.
func queryParams(u *url.URL) (members []canonjson.Member) {
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return []canonjson.Member{field("&", array(text(u.RawQuery)))}
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if slices.Contains(credentials, name) || strings.HasPrefix(name, signedURL) {
			continue
		}
		values := array()
		for _, value := range query[name] {
			values.Elems = append(values.Elems, text(value))
		}
		members = append(members, field("?"+name, values))
	}
	return members
}

// comparable returns b as it compares: renumbered and masked.
func (c *Classifier) comparable(b []byte) []byte { return c.masker.Mask(scrub.Renumber(b)) }

// untelling are headers that say nothing of who asks.
var untelling = []string{"Content-Length", "Connection"}

// Traits implements exchange.Classifier.
func (c *Classifier) Traits(r *exchange.Request) *exchange.Traits {
	t := &exchange.Traits{Attempt: attempt(r.Header)}
	c.addFacts(t, "url", []byte(r.URL))
	c.addFacts(t, "body", r.Body)
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		if slices.Contains(untelling, name) {
			continue
		}
		for _, v := range r.Header[name] {
			c.addFacts(t, name, []byte(v))
			t.Texts = append(t.Texts, name+": "+string(c.comparable([]byte(v))))
		}
	}
	return t
}

// addFacts adds what masks take out of a part of a request. A place is the number of the fact among those of its part.
func (c *Classifier) addFacts(t *exchange.Traits, part string, b []byte) {
	for i, fact := range c.masker.Facts(b) {
		place := part + " " + strconv.Itoa(i)
		if fact.Names {
			t.IDs = append(t.IDs, exchange.ID{Place: place, Text: fact.Text})
		} else {
			t.Texts = append(t.Texts, place+": "+fact.Text)
		}
	}
}

// attempt says how often the sender of a request has tried before: the SDKs of OpenAI and Anthropic count their retries,
// those of AWS their attempts.
func attempt(h http.Header) string {
	if n := h.Get("X-Stainless-Retry-Count"); n != "" {
		return n
	}
	attempt, _, _ := strings.Cut(h.Get("Amz-Sdk-Request"), ";")
	return attempt
}

// InCallOrder implements exchange.Classifier.
func (c *Classifier) InCallOrder(r *exchange.Request) *exchange.Request {
	body := InCallOrder(r.Body)
	if body == nil {
		return nil
	}
	sorted := *r
	sorted.Body = body
	return &sorted
}

// Sockets implements exchange.Classifier.
func (c *Classifier) Sockets(r *exchange.Request) exchange.Turns {
	u, err := url.Parse(r.URL)
	if err != nil {
		return nil
	}
	for e := range endpointsAt(u.Path, true) {
		return e.turns(&socket{opened: r, query: u.Query()})
	}
	return nil
}

// Rename implements exchange.Classifier.
func (c *Classifier) Rename(message []byte, to func(id string) string) []byte {
	return c.masker.Rename(message, to)
}

// AnswerSurface returns the answer of a model, without its Content-Encoding, as two live ones compare: masked, the ids that a
// provider makes up numbered by their first appearance, as those of requests are, its times and seals taken out. Of an event
// stream that is the data of its events, without pings and comments. An answer that is no text has none.
func (c *Classifier) AnswerSurface(body []byte) []byte {
	if !utf8.Valid(body) {
		return nil
	}
	return c.comparable(answerSurface(body))
}

// masked is the surface of a call in pieces that compare: renumbered over the whole, and masked one by one, so that each
// text is masked, and its masks are counted, once. The pieces are parts of the surface.
type masked struct {
	call     call
	members  []piece // of call.surface, and one for the messages, sorted by key
	messages [][]byte
	size     int    // of all pieces, in bytes
	surface  []byte // the matchable surface as one object
}

// A piece is one member of a surface. The messages are one whose text stands in masked.messages.
type piece struct {
	key  string
	text []byte
}

// maskCall takes a call apart. Placeholders are numbered through the members and then through the messages, so that the
// numbers of a conversation's beginning stay as it grows. size is about that of the body, in bytes.
func (c *Classifier) maskCall(call call, size int) masked {
	b := buffers.Get().(*[]byte)
	whole := slices.Grow((*b)[:0], size+size/8) // a piece a line: canonical JSON holds no newline
	for i := range call.surface {
		whole = append(call.surface[i].Value.Append(whole), '\n')
	}
	for i := range call.messages.Value.Elems {
		whole = append(call.messages.Value.Elems[i].Append(whole), '\n')
	}
	if *b = whole; cap(whole) <= 1<<20 { // one that a large request made is let go
		defer buffers.Put(b) // join copies what is kept
	}
	m := masked{
		call: call, members: make([]piece, 0, len(call.surface)+1), messages: make([][]byte, 0, len(call.messages.Value.Elems)),
	}
	for rest, i := scrub.Renumber(whole), 0; len(rest) > 0; i++ {
		line, after, _ := bytes.Cut(rest, []byte{'\n'})
		line = c.masker.Mask(line)
		if i < len(call.surface) {
			m.members = append(m.members, piece{call.surface[i].Key, line})
		} else {
			m.messages = append(m.messages, line)
		}
		m.size += len(line)
		rest = after
	}
	if call.messages.Key != "" {
		m.members = append(m.members, piece{key: call.messages.Key})
	}
	slices.SortStableFunc(m.members, func(a, b piece) int { return strings.Compare(a.key, b.key) })
	m.join()
	return m
}

// join makes the surface, and the pieces parts of it.
func (m *masked) join() {
	out := make([]byte, 0, m.size+len(m.messages)+64*(len(m.members)+1))
	out = append(out, '{')
	for i := range m.members {
		p := &m.members[i]
		if out = appendKey(out, p.key); p.text != nil {
			out = appendPiece(out, &p.text)
			continue
		}
		out = append(out, '[')
		for i := range m.messages {
			if i > 0 {
				out = append(out, ',')
			}
			out = appendPiece(out, &m.messages[i])
		}
		out = append(out, ']')
	}
	out = append(out, '}')
	m.surface = out
}

// appendPiece appends a piece, which becomes a part of out.
func appendPiece(out []byte, piece *[]byte) []byte {
	from := len(out)
	out = append(out, *piece...)
	*piece = out[from:len(out):len(out)]
	return out
}

// appendKey appends a key of an object, with the comma before it where it is not the first.
func appendKey(out []byte, key string) []byte {
	if out[len(out)-1] != '{' {
		out = append(out, ',')
	}
	return append(canonjson.AppendString(out, key), ':')
}

// talk is exchange.Identity.Talk.
func (m *masked) talk() exchange.Talk { return exchange.Talk{Opening: m.opening(), Turns: m.turns()} }

// opening returns the digest of the system text and the first message of the user; of all of the surface where there are
// no messages.
func (m *masked) opening() cas.Digest {
	if m.call.messages.Key == "" {
		return cas.Sum(m.surface)
	}
	out := []byte{'['}
	for _, p := range m.members {
		if p.key == m.call.systemKey {
			out = append(out, p.text...)
		}
	}
	for _, i := range m.call.systemMessages {
		out = append(append(out, ','), m.messages[i]...)
	}
	if m.call.user >= 0 {
		out = append(append(out, ','), m.messages[m.call.user]...)
	}
	return cas.Sum(append(out, ']'))
}

// turns returns one digest a message; without messages the surface is the one turn.
func (m *masked) turns() []cas.Digest {
	if m.call.messages.Key == "" {
		return []cas.Digest{cas.Sum(m.surface)}
	}
	digests := make([]cas.Digest, len(m.messages))
	for i, message := range m.messages {
		digests[i] = cas.Sum(message)
	}
	return digests
}

// buffers are memory that is used for a moment at every request.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

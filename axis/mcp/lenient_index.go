package mcp

import (
	"cmp"
	"encoding/json"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A lenientIndex is what a lenient Served finds its answers by. Nothing of it changes once it is made.
type lenientIndex struct {
	book   *Book
	calls  map[requestKey][]*recordedCall    // in recorded order
	inside map[*recordedCall][]*recordedPart // what the server said while it worked on a request, in that order
	behind map[*recordedCall][]*recordedPart // what it said when it worked on none, by the request that it had answered last
	// subscribed are what it said for a request that listens (subscriptions/listen), but for the first, by which it said that it heard.
	subscribed  map[*recordedPart]bool
	began       map[string]bool // methods that a client begins with, and that succeeded
	transcripts []*transcript
}

func newLenientIndex(s *Served) *lenientIndex {
	l := &lenientIndex{book: s.book, calls: make(map[requestKey][]*recordedCall), inside: make(map[*recordedCall][]*recordedPart),
		behind: make(map[*recordedCall][]*recordedPart), subscribed: make(map[*recordedPart]bool), began: make(map[string]bool), transcripts: s.merged}
	if l.transcripts == nil {
		l.transcripts = []*transcript{s.transcript}
	}
	for _, t := range l.transcripts {
		for _, c := range t.calls {
			l.add(c)
		}
		l.attribute(t)
	}
	return l
}

// add makes a request one that answers. One without an answer is none, and the error of a beginning is none where another of its
// kind succeeded: a client tries what it can.
func (l *lenientIndex) add(c *recordedCall) {
	if c.answer == nil && c.method != methodListen {
		return
	}
	var params []byte
	if m, ok := messageOf(c.request, l.book.store); ok {
		params = m.Params
	}
	k := l.key(c.method, params)
	if m, ok := messageOf(c.answer, l.book.store); begins(c.method) && ok {
		if m.Error != nil && len(l.calls[k]) > 0 {
			return
		}
		if m.Error == nil && !l.began[c.method] {
			l.began[c.method], l.calls[k] = true, nil
		}
	}
	l.calls[k] = append(l.calls[k], c)
}

// begins reports whether a client begins with a method. Whoever asks gets the same answer.
func begins(method string) bool { return method == methodInitialize || method == methodDiscover }

// key is what a request is found by: the method, and the params without what they say of the client. params are redacted.
func (l *lenientIndex) key(method string, params []byte) requestKey {
	v, err := canonjson.Parse(params)
	if err != nil || begins(method) || v.Kind != canonjson.Object {
		v = canonjson.Value{Kind: canonjson.Object}
	}
	v.Members = slices.DeleteFunc(v.Members, func(m canonjson.Member) bool { return m.Key == "_meta" })
	if len(v.Members) == 0 {
		return requestKey{method: method}
	}
	return requestKey{method: method, params: l.book.log.Digest(method, v.Append(nil))}
}

// attribute finds out within which request the server said what belongs to none by its name: of those that were open, the one that
// was answered first; where none was open, behind the one that had been answered last. What came before any answer is left out.
func (l *lenientIndex) attribute(t *transcript) {
	var open []*recordedCall // that wait for their answers
	var last *recordedCall
	heard := make(map[*recordedCall]bool)
	next := 0
	for _, line := range t.lines {
		if line.text {
			continue
		}
		for ; next < len(t.calls) && t.calls[next].place < line.place; next++ {
			if c := t.calls[next]; c.replied > 0 && c.method != methodPing && c.method != methodListen {
				open = append(open, c)
			}
		}
		open = slices.DeleteFunc(open, func(c *recordedCall) bool { return c.replied <= line.place })
		for i := range line.parts {
			p := &line.parts[i]
			switch {
			case p.answer && p.call.method == methodPing:
				continue
			case p.answer:
				last = p.call
				continue
			case p.name == spotSubscription && heard[p.call]:
				l.subscribed[p] = true
			case p.call != nil:
				heard[p.call] = true
				l.inside[p.call] = append(l.inside[p.call], p)
				continue
			}
			if len(open) > 0 {
				c := slices.MinFunc(open, func(a, b *recordedCall) int { return cmp.Compare(a.replied, b.replied) })
				l.inside[c] = append(l.inside[c], p)
			} else if last != nil {
				l.behind[last] = append(l.behind[last], p)
			}
		}
	}
}

// methodListen is the request of the versions without sessions that is answered by notifications alone.
const methodListen = "subscriptions/listen"

// A subscription is where a client listens for what is said unasked.
type subscription struct {
	caller
	mu    sync.Mutex // held by who uses what follows
	out   outlet
	begun bool     // the client was told that it is heard
	held  [][]byte // what is said until then
}

// say says b to who listens, behind what tells it that it is heard.
func (s *subscription) say(b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.begun {
		s.held = append(s.held, b)
		return
	}
	s.out(b)
}

// begin says what is held.
func (s *subscription) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.held {
		s.out(b)
	}
	s.begun, s.held = true, nil
}

// madeUp is the answer to what a client begins with that was recorded with a client of another kind, or not at all; nil for none. What a
// server says of itself is the same to both kinds. Some clients set the level of the log before anything else, wherever the server has
// one.
func (l *lenientIndex) madeUp(m *Message) []byte {
	switch {
	case m.Method == "logging/setLevel": // which asks for nothing that could be on a tape
		return emptyAnswer(m.ID)
	case l.headless():
		return l.guessed(m)
	case m.Method == methodInitialize:
		return l.discovered(m)
	}
	return nil
}

// discovered is the answer to initialize from one to server/discover.
func (l *lenientIndex) discovered(m *Message) []byte {
	for _, d := range l.results(methodDiscover) {
		result := map[string]json.RawMessage{
			"protocolVersion": json.RawMessage(`"` + wantedVersion(m) + `"`), "capabilities": member(d.Result, "capabilities"),
			"serverInfo": member(member(d.Result, "_meta"), metaPrefix+"serverInfo"), "instructions": member(d.Result, "instructions"),
		}
		maps.DeleteFunc(result, func(_ string, v json.RawMessage) bool { return v == nil })
		if b, err := json.Marshal(result); err == nil {
			return answerOf(m.ID, "result", b)
		}
	}
	return nil
}

// guessed is what a headless tape shows of its server: that it has what was asked of it, and of that what was named.
func (l *lenientIndex) guessed(m *Message) []byte {
	has := make(map[string]any)
	var result map[string]any
	for _, o := range offers {
		if !l.wasAsked(o.name + "/") {
			continue
		}
		has[o.name] = struct{}{}
		if m.Method == o.list && len(l.results(o.list)) == 0 {
			result = map[string]any{o.name: l.named(&o)}
		}
	}
	if m.Method == methodInitialize {
		result = map[string]any{
			"protocolVersion": wantedVersion(m), "capabilities": has,
			"serverInfo": map[string]string{"name": tape.MCPServer(l.transcripts[0].Server), "version": "unknown"},
		}
	}
	b, err := json.Marshal(result)
	if result == nil || err != nil {
		return nil
	}
	return answerOf(m.ID, "result", b)
}

// results lists the answers to a method that hold a result.
func (l *lenientIndex) results(method string) (out []*Message) {
	for c := range l.asked(method) {
		if m, ok := messageOf(c.answer, l.book.store); ok && m.Result != nil {
			out = append(out, m)
		}
	}
	return out
}

// asked gives the requests of a method, or of all whose names begin with one that ends in a slash, in recorded order.
func (l *lenientIndex) asked(method string) iter.Seq[*recordedCall] {
	return func(yield func(*recordedCall) bool) {
		for _, t := range l.transcripts {
			for _, c := range t.calls {
				if beginsWithAny(c.method, []string{method}) && !yield(c) {
					return
				}
			}
		}
	}
}

// wantedVersion is the version that a client which begins with initialize is answered by: its own, where that has it.
func wantedVersion(m *Message) string {
	const newest = "2025-11-25"
	wanted := str(member(m.Params, "protocolVersion"))
	if len(wanted) == len(newest) && wanted <= newest && strings.Trim(wanted, "0123456789-") == "" {
		return wanted
	}
	return newest
}

// headless reports whether the tape begins behind what a client begins with, as those of other producers do that hold calls alone. How
// the server answered a beginning with an error is not that.
func (l *lenientIndex) headless() bool {
	return !l.wasAsked(methodInitialize) && !l.wasAsked(methodDiscover)
}

// wasAsked reports whether there is such a request.
func (l *lenientIndex) wasAsked(method string) bool {
	for range l.asked(method) {
		return true
	}
	return false
}

// An offer is what a server may have: the method that lists it, the one that uses one of it, and by what member that names it.
type offer struct{ name, list, use, by string }

var offers = []offer{
	{"tools", "tools/list", "tools/call", "name"},
	{"prompts", "prompts/list", "prompts/get", "name"},
	{"resources", "resources/list", "resources/read", "uri"},
}

// named lists what requests name of an offer, each once, in recorded order.
func (l *lenientIndex) named(o *offer) []map[string]any {
	entries, seen := []map[string]any{}, make(map[string]bool)
	for c := range l.asked(o.use) {
		m, ok := messageOf(c.request, l.book.store)
		if !ok {
			continue
		}
		name := str(member(m.Params, o.by))
		if name == "" || seen[name] {
			continue
		}
		seen[name] = true
		entry := map[string]any{"name": name, o.by: name}
		if o.name == "tools" {
			entry["inputSchema"] = map[string]string{"type": "object"}
		}
		entries = append(entries, entry)
	}
	return entries
}

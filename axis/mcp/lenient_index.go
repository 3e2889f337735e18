package mcp

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A lenientIndex is what a lenient Served finds its answers by. Nothing of it changes once it is made.
type lenientIndex struct {
	book        *Book
	transcripts []*transcript
	scenes      map[requestKey][]*scene // in recorded order
	// subscribed are what the server said for a request that listens (subscriptions/listen), but for the first, by which it said that it heard.
	subscribed map[*recordedPart]bool
}

// A scene is a request and what the server said to it beside the answer, in that order.
type scene struct {
	*recordedCall
	inside []*recordedPart // while it worked on the request
	behind []*recordedPart // when it worked on none, and had answered this one last
}

func newLenientIndex(s *Served) *lenientIndex {
	l := &lenientIndex{book: s.book, transcripts: s.merged, scenes: make(map[requestKey][]*scene), subscribed: make(map[*recordedPart]bool)}
	if l.transcripts == nil {
		l.transcripts = []*transcript{s.transcript}
	}
	for _, t := range l.transcripts {
		of := make(map[*recordedCall]*scene)
		for _, c := range t.calls {
			of[c] = &scene{recordedCall: c}
			if c.answer != nil || c.method == methodListen { // one without an answer answers none
				k := l.key(c.method, l.paramsOf(c))
				l.scenes[k] = append(l.scenes[k], of[c])
			}
		}
		l.attribute(t, of)
	}
	for k, all := range l.scenes { // a client tries what it can
		if good := slices.DeleteFunc(slices.Clone(all), l.failed); begins(k.method) && len(good) > 0 {
			l.scenes[k] = good
		}
	}
	return l
}

// paramsOf are the params of a request, redacted.
func (l *lenientIndex) paramsOf(c *recordedCall) []byte {
	if m, ok := messageOf(c.request, l.book.store); ok {
		return m.Params
	}
	return nil
}

// failed reports whether a request was answered with an error.
func (l *lenientIndex) failed(c *scene) bool {
	m, ok := messageOf(c.answer, l.book.store)
	return ok && m.Error != nil
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
func (l *lenientIndex) attribute(t *transcript, of map[*recordedCall]*scene) {
	var open []*recordedCall // that wait for their answers
	var last *scene
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
			c := of[p.call] // nil for what belongs to none
			subscribed := c != nil && p.name == spotSubscription && len(c.inside) > 0
			if subscribed {
				l.subscribed[p] = true
			}
			switch {
			case p.answer && c.method == methodPing:
			case p.answer:
				last = c
			case c != nil && !subscribed:
				c.inside = append(c.inside, p)
			case len(open) > 0:
				c := of[slices.MinFunc(open, func(a, b *recordedCall) int { return cmp.Compare(a.replied, b.replied) })]
				c.inside = append(c.inside, p)
			case last != nil:
				last.behind = append(last.behind, p)
			}
		}
	}
}

// methodListen is the request of the versions without sessions that is answered by notifications alone.
const methodListen = "subscriptions/listen"

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
		if len(l.asked(o.name+"/")) == 0 {
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
	for _, c := range l.asked(method) {
		if m, ok := messageOf(c.answer, l.book.store); ok && m.Result != nil {
			out = append(out, m)
		}
	}
	return out
}

// asked lists the requests of a method, or of all whose names begin with one that ends in a slash, in recorded order.
func (l *lenientIndex) asked(method string) (out []*recordedCall) {
	for _, t := range l.transcripts {
		for _, c := range t.calls {
			if beginsWithAny(c.method, []string{method}) {
				out = append(out, c)
			}
		}
	}
	return out
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
	return len(l.asked(methodInitialize))+len(l.asked(methodDiscover)) == 0
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
	for _, c := range l.asked(o.use) {
		name := str(member(l.paramsOf(c), o.by))
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

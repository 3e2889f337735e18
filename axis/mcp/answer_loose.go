package mcp

import (
	"cmp"
	"container/heap"
	"fmt"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A NoServerError says that a name stands for none of the servers of a tape, or that one is to be named.
type NoServerError struct {
	Name    string   // "" where none was named
	Servers []string // that the tape has
}

// Error implements error.
func (e *NoServerError) Error() string {
	switch {
	case len(e.Servers) == 0:
		return "the tape holds no conversation with an MCP server"
	case e.Name == "":
		return fmt.Sprintf("the tape holds %d MCP servers, and one is to be named (--server): %s", len(e.Servers), strings.Join(e.Servers, ", "))
	}
	return fmt.Sprintf("the tape holds no MCP server %q: it has %s", e.Name, strings.Join(e.Servers, ", "))
}

// Named returns the server of a name, all its conversations together: what a lenient Served answers from. "NAME#2" is the second of
// them alone. "" is the one server of the tape. The error is a *NoServerError.
func (b *Book) Named(name string) (*Served, error) {
	var names []string
	found := &Served{book: b}
	for _, t := range b.talks {
		base := tape.MCPServer(t.Server)
		if !slices.Contains(names, base) {
			names = append(names, base)
		}
		if name == "" || name == base || name == t.Server {
			found.merged = append(found.merged, t)
		}
	}
	if len(found.merged) == 0 || name == "" && len(names) > 1 {
		return nil, &NoServerError{Name: name, Servers: names}
	}
	found.talk = found.merged[0]
	return found, nil
}

// loose is what a lenient Served finds its answers by. Nothing of it changes once it is made.
type loose struct {
	book   *Book
	calls  map[bookKey][]*bookCall   // in recorded order
	inside map[*bookCall][]*bookPart // what the server said while it worked on a request, in that order
	behind map[*bookCall][]*bookPart // what it said when it worked on none, by the request that it had answered last
	// subscribed are what it said for a request that listens (subscriptions/listen), but for the first, by which it said that it heard.
	subscribed map[*bookPart]bool
	began      map[string]bool // methods that a client begins with, and that succeeded
	talks      []*recordedTalk
}

func newLoose(s *Served) *loose {
	l := &loose{book: s.book, calls: make(map[bookKey][]*bookCall), inside: make(map[*bookCall][]*bookPart),
		behind: make(map[*bookCall][]*bookPart), subscribed: make(map[*bookPart]bool), began: make(map[string]bool), talks: s.merged}
	if l.talks == nil && s.talk != nil {
		l.talks = []*recordedTalk{s.talk}
	}
	for _, t := range l.talks {
		for _, c := range t.calls {
			l.add(c)
		}
		l.attribute(t)
	}
	return l
}

// add makes a request one that answers. One without an answer is none, and the error of a beginning is none where another of its
// kind succeeded: a client tries what it can.
func (l *loose) add(c *bookCall) {
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
func (l *loose) key(method string, params []byte) bookKey {
	v, err := canonjson.Parse(params)
	if err != nil || begins(method) || v.Kind != canonjson.Object {
		v = canonjson.Value{Kind: canonjson.Object}
	}
	v.Members = slices.DeleteFunc(v.Members, func(m canonjson.Member) bool { return m.Key == "_meta" })
	if len(v.Members) == 0 {
		return bookKey{method: method}
	}
	return bookKey{method: method, params: l.book.log.Digest(method, v.Append(nil))}
}

// attribute finds out within which request the server said what belongs to none by its name: of those that were open, the one that
// was answered first; where none was open, behind the one that had been answered last. What came before any answer is left out.
func (l *loose) attribute(t *recordedTalk) {
	var open soonest
	var last *bookCall
	heard := make(map[*bookCall]bool)
	next := 0
	for _, line := range t.lines {
		if line.text {
			continue
		}
		for ; next < len(t.calls) && t.calls[next].place < line.place; next++ {
			if c := t.calls[next]; c.replied > 0 && c.method != "ping" && c.method != methodListen {
				heap.Push(&open, c)
			}
		}
		for len(open) > 0 && open[0].replied <= line.place {
			heap.Pop(&open)
		}
		for i := range line.parts {
			p := &line.parts[i]
			switch {
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
				l.inside[open[0]] = append(l.inside[open[0]], p)
			} else if last != nil {
				l.behind[last] = append(l.behind[last], p)
			}
		}
	}
}

// soonest are requests that wait for their answer, the one that gets it first on top.
type soonest []*bookCall

func (o soonest) Len() int           { return len(o) }
func (o soonest) Less(i, j int) bool { return cmp.Less(o[i].replied, o[j].replied) }
func (o soonest) Swap(i, j int)      { o[i], o[j] = o[j], o[i] }
func (o *soonest) Push(c any)        { *o = append(*o, c.(*bookCall)) }
func (o *soonest) Pop() any {
	last := len(*o) - 1
	c := (*o)[last]
	*o = (*o)[:last]
	return c
}

// results lists the answers to a method that hold a result.
func (l *loose) results(method string) (out []*Message) {
	for _, t := range l.talks {
		for _, c := range t.calls {
			if c.method != method || c.answer == nil {
				continue
			}
			if m, ok := messageOf(c.answer, l.book.store); ok && m.Result != nil {
				out = append(out, m)
			}
		}
	}
	return out
}

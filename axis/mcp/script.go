package mcp

import (
	"cmp"
	"slices"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/lane"
)

// How much longer than while recording a line of the server is held up by one that does not come.
const (
	holdAsked = 2 * time.Second  // where somebody waits for an answer
	holdFree  = 30 * time.Second // what nobody asked for: it does no harm that it waits
)

// reading is the most time that a client has to read a notification before the answer that comes apart from it. Clients forget a
// request with its answer: progress of it that one read brings together with that, or a stream of its own after it, is lost to some.
// Nothing tells when a client has read a connection.
const reading = 50 * time.Millisecond

// An event is one line of a conversation as it is played.
type event struct {
	key  bookKey // of the client
	call *bookCall
	line *bookLine // of the server
	own  []byte    // of a server's line that is on no tape: the line, without its end
}

// toldKey is the key of what the client says that asks for nothing.
func toldKey(what string) bookKey { return bookKey{method: "\n" + what} }

// arrange makes the script of the conversation: what each side said, in the order of its place.
func (t *recordedTalk) arrange() {
	type entry struct {
		lane.Line[*event]
		at *int // where its index is noted; nil for nowhere
	}
	var all []entry
	client := func(place uint64, ms int64, counts bool, e *event, at *int) {
		all = append(all, entry{lane.Line[*event]{Place: place, MS: ms, Counts: counts, Value: e}, at})
	}
	for _, c := range t.calls {
		c.line, c.cancelLine = -1, -1
		if c.method != methodPing {
			client(c.place, c.at, true, &event{key: c.bookKey, call: c}, &c.line)
		}
	}
	for _, a := range t.asks {
		if a.replied > 0 {
			client(a.replied, a.at, true, new(event), &a.line)
		}
	}
	for i, told := range t.told {
		last := t.end.byServer && i == len(t.told)-1
		for n := range told.n {
			e, at := &event{key: toldKey(told.what)}, (*int)(nil)
			if c := t.cancelledAt(told.place); told.what == notedCancelled && c != nil { // it is found by its id
				e, at = new(event), &c.cancelLine
			}
			client(told.place, told.at, told.what == notedInitialized || last && n == told.n-1, e, at)
		}
	}
	for _, l := range t.lines {
		all = append(all, entry{Line: lane.Line[*event]{Place: l.after, MS: l.at, From: lane.Far, Value: &event{line: l}}})
	}
	slices.SortStableFunc(all, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.Place, b.Place), cmp.Compare(a.From, b.From))
	})
	t.script = make([]lane.Line[*event], len(all))
	for i := range all {
		if t.script[i] = all[i].Line; all[i].at != nil {
			*all[i].at = i
		}
	}
	for i := range t.script {
		if l := t.script[i].Value.line; l != nil {
			t.script[i].Owners = l.owners()
		}
	}
}

// cancelledAt is a request that the client cancelled at a place; nil for none.
func (t *recordedTalk) cancelledAt(place uint64) *bookCall {
	for _, c := range t.calls {
		if c.cancelled == place && c.cancelLine < 0 {
			return c
		}
	}
	return nil
}

// owners are the lines of the script without which a line of the server is not said.
func (l *bookLine) owners() (lines []int) {
	for i := range l.parts {
		if p := &l.parts[i]; p.call != nil && !slices.Contains(lines, p.owner(l)) {
			lines = append(lines, p.owner(l))
		}
	}
	return lines
}

// owner is the line of the script that a part of l belongs to: the request, or what cancelled it before.
func (p *bookPart) owner(l *bookLine) int {
	if p.call.cancelled > 0 && l.place > p.call.cancelled {
		return p.call.cancelLine
	}
	return p.call.line
}

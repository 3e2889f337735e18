package exchange

import (
	"slices"
	"strconv"
	"sync"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// Unmatched is the lane of a replayed request that nothing recorded answered.
const Unmatched = "unmatched"

// Lanes names the lane of every request that goes to an upstream.
//
// Plain HTTP stands in "http:<host>". A conversation with a model stands in "llm:<12 hex digits of its opening>", with
// "#2", "#3" … behind it for further ones of the same opening. Among the conversations of one opening a request belongs to
//
//  1. the one whose last list of turns it extends; the longest such list wins, then one that is not waiting for an
//     answer, then the oldest;
//  2. else the one whose last exchange failed with just these turns: that is a retry;
//  3. else a new one, where its turns begin a list that is known already: the same conversation started over;
//  4. else the first one: its history was compacted.
//
// The zero Lanes is ready. It may be used by several goroutines at once. It holds the digests of the longest list of turns
// of every conversation.
type Lanes struct {
	mu            sync.Mutex
	conversations map[cas.Digest][]*conversation // by opening, in order of appearance
	byName        map[string]*conversation
	sockets       map[string]int     // by the first lane of a host: how many there are
	numbers       map[cas.Digest]int // by opening: the names that are taken, counted from the first
}

// conversation is one lane with a model.
type conversation struct {
	name   string
	turns  []cas.Digest // of its last request
	open   int          // requests that wait for their answer
	failed bool         // the last answer was no success
}

// Begin returns the lane of a request that is about to be sent. Done must follow with the same name.
func (l *Lanes) Begin(id *Identity, rawURL string) string {
	if id.Key.Kind != LLM {
		return "http:" + tape.HostOf(rawURL)
	}
	of := id.Talk()
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.conversations[of.Opening]
	c := pick(known, of.Turns)
	if c == nil {
		c = l.add(of.Opening, l.freeName(of.Opening))
	}
	c.turns = of.Turns
	c.open++
	return c.name
}

// Socket returns the lane of a WebSocket that was opened to the host of a URL: "ws:<host>", with "#2", "#3" … behind it for further
// ones of the same host. Each is a lane of its own, for what is said on two has no order.
func (l *Lanes) Socket(rawURL string) string {
	name := "ws:" + tape.HostOf(rawURL)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sockets == nil {
		l.sockets = make(map[string]int)
	}
	l.sockets[name]++
	if n := l.sockets[name]; n > 1 {
		name += "#" + strconv.Itoa(n)
	}
	return name
}

// goesOn reports whether a request goes on the conversation of a name, or is the first of one that has not begun.
func (l *Lanes) goesOn(name string, id *Identity) bool {
	of := id.Talk()
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := pick(l.conversations[of.Opening], of.Turns); c != nil {
		return c.name == name
	}
	return l.byName[name] == nil
}

// beginAs is Begin where the name is known.
func (l *Lanes) beginAs(name string, id *Identity) {
	if id.Key.Kind != LLM {
		return
	}
	l.Adopt(name, id, false)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.byName[name].open++
}

// Adopt says that a request was answered from the tape in the recorded lane name, so that what follows it live, in a fork,
// continues that lane. Done must not follow.
func (l *Lanes) Adopt(name string, id *Identity, failed bool) {
	if id.Key.Kind != LLM {
		return
	}
	of := id.Talk()
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.byName[name]
	if c == nil {
		c = l.add(of.Opening, name)
	}
	c.turns, c.failed = of.Turns, failed
}

// Done says that the answer to a request of the lane has ended. A lane that Begin did not give is ignored.
func (l *Lanes) Done(name string, failed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.byName[name]; c != nil {
		c.open--
		c.failed = failed
	}
}

// add notes a conversation. The caller holds mu.
func (l *Lanes) add(opening cas.Digest, name string) *conversation {
	if l.byName == nil {
		l.byName = make(map[string]*conversation)
		l.conversations = make(map[cas.Digest][]*conversation)
		l.numbers = make(map[cas.Digest]int)
	}
	c := &conversation{name: name}
	l.byName[name] = c
	l.conversations[opening] = append(l.conversations[opening], c)
	return c
}

// pick returns the conversation that turns belong to, nil for a new one. The rules stand at Lanes.
func pick(known []*conversation, turns []cas.Digest) *conversation {
	var extended *conversation
	for _, c := range known {
		if len(c.turns) < len(turns) && hasPrefix(turns, c.turns) && better(c, extended) {
			extended = c
		}
	}
	if extended != nil || len(known) == 0 {
		return extended
	}
	begun := false
	for _, c := range known {
		if !hasPrefix(c.turns, turns) {
			continue
		}
		if len(c.turns) == len(turns) && c.failed && c.open == 0 {
			return c
		}
		begun = true
	}
	if begun {
		return nil
	}
	return known[0]
}

// better reports whether c, which comes after best in age, is the better one to extend.
func better(c, best *conversation) bool {
	switch {
	case best == nil:
		return true
	case len(c.turns) != len(best.turns):
		return len(c.turns) > len(best.turns)
	default:
		return c.open == 0 && best.open > 0
	}
}

func hasPrefix(turns, prefix []cas.Digest) bool {
	return len(prefix) <= len(turns) && slices.Equal(turns[:len(prefix)], prefix)
}

// freeName returns the next name for a conversation of an opening: adopted ones may have taken any. No name becomes free
// again, so none is tried twice. The caller holds mu.
func (l *Lanes) freeName(opening cas.Digest) string {
	for {
		name := lanePrefix(opening)
		n := l.numbers[opening] + 1
		if n > 1 {
			name += "#" + strconv.Itoa(n)
		}
		if l.byName[name] == nil {
			return name
		}
		l.numbers[opening] = n // byName is made, so this is too
	}
}

// lanePrefix is what the names of all conversations of an opening begin with.
func lanePrefix(opening cas.Digest) string { return "llm:" + opening.Short() }

package mcp

import (
	"fmt"
	"sync"

	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/scrub/masks"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// LogOptions say how a Log numbers, and what it learns. Nil and zero work.
type LogOptions struct {
	// Taken is the highest number of a conversation on the tape that is replayed: a conversation that is none of those gets a
	// higher one. 0 while recording.
	Taken uint64
	// Learn is told of each server before anything of its conversation is written: it makes the secrets among its arguments and
	// variables known to the scrubber. Nil for nobody.
	Learn func(o *Opened)
}

// A Log writes the MCP conversations of one run to its tape. Its methods may be called by several goroutines at once.
type Log struct {
	rec      *tape.Recorder
	scrubber *scrub.Scrubber
	mask     *masks.Masker
	learn    func(o *Opened)

	// passing is held from the record of what a server says over a pipe until it was passed on, so that the lines of several servers
	// pass in the order of the tape.
	passing sync.Mutex
	out     lastOut

	mu   sync.Mutex
	last uint64          // number of the conversation that was begun last
	used map[string]bool // names of servers
	lost []string
}

// NewLog returns a Log that writes to rec. With a nil rec nothing is written. The scrubber takes the secrets out of what is written,
// nil takes none; m masks what is compared, nil masks nothing.
func NewLog(rec *tape.Recorder, s *scrub.Scrubber, m *masks.Masker, o *LogOptions) *Log {
	l := &Log{rec: rec, scrubber: s, mask: m, used: make(map[string]bool)}
	if o != nil {
		l.last, l.learn = o.Taken, o.Learn
	}
	return l
}

// Lost lists, for people, what passed in conversations and is not on the tape: of such a run nothing can be said.
func (l *Log) Lost() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.lost...)
}

func (l *Log) lose(what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost = append(l.lost, what)
}

// number returns the number of a conversation that begins.
func (l *Log) number(r *Recorded) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r != nil {
		l.last = max(l.last, r.Conversation)
		return r.Conversation
	}
	l.last++
	return l.last
}

// name returns the name of one more conversation with a server.
func (l *Log) name(server string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	name := server
	for n := 2; l.used[name]; n++ {
		name = fmt.Sprintf("%s#%d", server, n)
	}
	l.used[name] = true
	return name
}

// take says that a name is used by a recorded conversation.
func (l *Log) take(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.used[name] = true
}

// str returns a string as it may be written.
func (l *Log) str(s string) string {
	if l.scrubber == nil {
		return s
	}
	return l.scrubber.String(s)
}

func (l *Log) url(s string) string {
	if l.scrubber == nil {
		return s
	}
	return l.scrubber.URL(s)
}

package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/tapedeck-dev/tapedeck/cas"
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
	return slices.Clone(l.lost)
}

func (l *Log) lose(what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost = append(l.lost, what)
}

// number returns the number of a conversation that begins. One that was recorded has its number and its name.
func (l *Log) number(r *Recorded) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r != nil {
		l.used[r.Server] = true
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

// A Recorded is a conversation that stands on a tape.
type Recorded struct {
	Server       string // as the tape names it: "NAME", "NAME#2"
	Conversation uint64
	Within       uint64 // the conversation of the server that held it as a client; 0 for the program's own
	Transport    string // "stdio" or "http"
	Program      string // of stdio, redacted
	Args         []string
	Cwd          string
	URL          string // of http, redacted
	Protocol     string
	Methods      map[string]int // how often the client asked for each
}

// The transports.
const (
	Stdio = "stdio"
	HTTP  = "http"
)

// keep puts the messages of a line into the store.
func (l *Log) keep(line *Line) (out []kept, err error) {
	out = make([]kept, len(line.Messages))
	for i := range out {
		m := &line.Messages[i]
		if !line.Batch { // with the white space around it
			m.Raw = bytes.TrimSuffix(line.Text, []byte{'\n'})
		}
		if out[i], err = l.keepOne(m); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// keepOne puts a message into the store. What becomes a blob takes as long to write as to compare: both are done at once.
func (l *Log) keepOne(m *Message) (kept, error) {
	k := kept{Message: m}
	if len(m.Raw) <= tape.InlineLimit {
		k.digest = l.Digest(m.Method, m.value())
		p, err := l.rec.Payload(m.Raw)
		k.payload = p
		return k, err
	}
	digest := make(chan cas.Digest, 1) // the goroutine ends by itself
	go func() { digest <- l.Digest(m.Method, m.value()) }()
	p, err := l.rec.Payload(m.Raw)
	k.payload, k.digest = p, <-digest
	return k, err
}

// redactOpened returns o as it may be written, and the true bytes of what is not UTF-8.
func (l *Log) redactOpened(o *Opened) (out Opened, raw []tape.RawBytes) {
	safe := func(key, v string) string {
		text, bytes := tape.SafeString(l.str(v))
		if bytes != nil {
			raw = append(raw, tape.RawBytes{Key: key, Bytes: bytes})
		}
		return text
	}
	out = Opened{Transport: o.Transport, Recorded: o.Recorded, Within: o.Within, PID: o.PID}
	out.Program, out.Cwd = safe("program", o.Program), safe("cwd", o.Cwd)
	for i, a := range o.Args {
		out.Args = append(out.Args, safe(fmt.Sprintf("args.%d", i), a))
	}
	if o.Given != nil {
		for i, v := range o.Given() {
			out.given = append(out.given, safe(fmt.Sprintf("env.%d", i), v))
		}
	}
	out.URL, _ = tape.SafeString(l.url(o.URL))
	return out, raw
}

// redactID returns an id as it stands in a redacted message.
func (l *Log) redactID(id json.RawMessage) json.RawMessage {
	if l.scrubber == nil {
		return id
	}
	out, _ := l.scrubber.Bytes(id)
	return out
}

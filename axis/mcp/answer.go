package mcp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"sync"
)

// A Served is a recorded server, answered from its tape.
type Served struct {
	book *Book
	talk *recordedTalk // nil where there is none: everything is refused
	name string        // of what is refused so
	why  string

	equals []*recordedTalk // of an equal spawn, talk among them; see Settle
	heard  []byte          // what the client said to Settle
	given  map[string]bool // ids of the requests that Settle has answered

	merged []*recordedTalk // what a lenient one answers from; nil: talk alone
	once   sync.Once       // makes index
	index  *loose
}

// looseIndex is what lenient clients are answered by; it is made when the first one comes.
func (s *Served) looseIndex() *loose {
	s.once.Do(func() { s.index = newLoose(s) })
	return s.index
}

// Asked reports whether every request of the recorded conversation has come, pings apart.
func (s *Served) Asked() bool {
	if s.talk == nil {
		return true
	}
	s.book.mu.Lock()
	defer s.book.mu.Unlock()
	return !slices.ContainsFunc(s.talk.calls, func(c *bookCall) bool { return c.unasked() })
}

// ServeOptions say with whom a Served talks, and how.
type ServeOptions struct {
	In  io.Reader // what the client says: lines
	Out io.Writer // what the server said; to an *os.File an answer behind a notification goes in a write of its own
	Err io.Writer // what the server wrote to its stderr; nil drops it
	// Log takes what passes on the tape of the replay; whoever gave it ends it. Nil is none.
	Log *Conversation
	// Speed is how fast answers come: 0 at once, 1 as recorded, N that many times as fast.
	Speed float64
	// Reveal puts the program's own secrets in the place of the tape's placeholders; nil changes nothing.
	Reveal func([]byte) []byte
	// Before is called before a recorded line of the server goes out, with the seq of its record: what the server did by then beside
	// what it said can be done in its place. An error ends Serve. Nil is not. Not for Lenient.
	Before func(seq uint64) error
	// Lenient answers any client as far as the tape goes, and any number of them: no order is waited for, initialize and repeats are
	// always answered. Such a Served counts nothing as asked or refused, and has no Log.
	Lenient bool
	// Live answers what a lenient Served finds on no tape; nil is nobody.
	Live *Live
	// Say is told what a person should know of a lenient client: that it wants another protocol version. Nil is nobody.
	Say func(text string)
}

// Recorded says which conversation s is; nil for one that is on no tape.
func (s *Served) Recorded() *Recorded {
	if s.talk == nil {
		return nil
	}
	return &s.talk.Recorded
}

// Serve answers a client until the talk has ended as it did on the tape, or the client ends it: In gives io.EOF, Out takes nothing
// any more, or ctx is done. It closes neither; whoever gave them does when it has returned, for it may still be reading In. exit is
// the exit status that the server had, 128+n where signal n ended it. An error is what kept an answer from being given: a tape that
// is damaged, a Log that failed, a line over MaxLine; whatever else the client does is none.
//
// A line of the server goes out at its place: when every request and response that the client had sent before it has come again.
// One that does not come holds it up once, for as long as it took while recording and two seconds, half a minute where nobody waits
// for an answer; never for ever.
func (s *Served) Serve(ctx context.Context, o *ServeOptions) (exit int, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if o.Lenient {
		return 0, s.serveLenient(ctx, o)
	}
	p := newPlay(s, o)
	go func() {
		p.finish(readLines(io.MultiReader(bytes.NewReader(s.heard), o.In), p.hear))
	}()
	err = p.run(ctx)
	s.book.order.end(p.talk)
	return p.end(), err
}

// errTooLong is the error of a line over MaxLine.
var errTooLong = errors.New("a line of the client is over 64 MiB, and none that long is on a tape")

// readLines gives each line of r to f, with its line end, the last perhaps without one, until r ends or f fails. A line is valid
// until f returns. The end of r, whatever ended it, is no error.
func readLines(r io.Reader, f func(line []byte) error) error {
	buf := make([]byte, relayBuffer)
	l := lines{limit: MaxLine}
	for {
		n, err := r.Read(buf)
		for b := buf[:n]; len(b) > 0; {
			c, rest, ok := l.next(b)
			if c.lost > 0 || l.lost > 0 {
				return errTooLong
			}
			if b = rest; !ok {
				break
			}
			if err := f(c.line); err != nil {
				return err
			}
		}
		if err == nil {
			continue
		}
		if last := l.end(); len(last.line) > 0 {
			return f(last.line)
		}
		return nil
	}
}

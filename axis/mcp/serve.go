package mcp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"sync"

	"github.com/tapedeck-dev/tapedeck/internal/lane"
)

// A Served is a recorded server, answered from its tape.
type Served struct {
	book       *Book
	transcript *transcript

	equals []*transcript   // of an equal spawn, transcript among them; see Settle
	heard  []byte          // what the client said to Settle
	given  map[string]bool // ids of the requests that Settle has answered

	merged []*transcript // what a lenient one answers from; nil: transcript alone
	once   sync.Once     // makes index
	index  *lenientIndex
}

// looseIndex is what lenient clients are answered by; it is made when the first one comes.
func (s *Served) looseIndex() *lenientIndex {
	s.once.Do(func() { s.index = newLenientIndex(s) })
	return s.index
}

// Asked reports whether every request of the recorded conversation has come, pings apart.
func (s *Served) Asked() bool {
	s.book.mu.Lock()
	defer s.book.mu.Unlock()
	return !slices.ContainsFunc(s.transcript.calls, func(c *recordedCall) bool { return c.unasked() })
}

// ServeOptions say whom a Served answers, and how.
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
	// Say is told what a person should know of a lenient client: that it wants another protocol version. Nil is nobody.
	Say func(text string)
}

// Recorded says which conversation s is.
func (s *Served) Recorded() *Recorded { return &s.transcript.Recorded }

// Serve answers a client until the conversation has ended as it did on the tape, or the client ends it: In gives io.EOF, Out takes nothing
// any more, or ctx is done. It closes neither; whoever gave them does when it has returned, for it may still be reading In. What was to be written to Err
// by then is. exit is
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
	p := newPlayer(s, o)
	go func() {
		p.finish(readLines(io.MultiReader(bytes.NewReader(s.heard), o.In), p.hear))
	}()
	err = p.run(ctx)
	s.book.order.Close(p.transcript.stream)
	return p.end(), err
}

// serveLenient answers one client over lines.
func (s *Served) serveLenient(ctx context.Context, o *ServeOptions) error {
	gone, clientGone := context.WithCancel(ctx)
	v := newSession(gone, s, o)
	defer v.rest()
	defer clientGone()
	box := lane.NewPlayer(nil, &lane.PlayerOptions[requestKey, []byte]{})
	v.unasked = func(b []byte) error {
		box.Say(b)
		return nil
	}
	go func() {
		_ = readLines(o.In, func(line []byte) error {
			if msgs, batch, err := Parse(bytes.Clone(line)); err == nil { // else it is passed by
				v.messages(ctx, msgs, batch, v.unasked)
			}
			return nil
		})
		clientGone()
		v.rest()
		box.Ended()
	}()
	for {
		said, err := box.Next(ctx)
		if err == nil {
			_, err = o.Out.Write(append(said.Value, '\n'))
		}
		if err != nil { // the client has gone, or the context is done
			return nil
		}
	}
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
		for _, c := range l.in(buf[:n]) {
			if c.lost > 0 {
				return errTooLong
			}
			if err := f(c.line); err != nil {
				return err
			}
		}
		if l.lost > 0 {
			return errTooLong
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

// nearestTo is the conversation that a request is compared with: one that has its method.
func (s *Served) nearestTo(method string) *transcript {
	for _, t := range s.merged {
		if t.Methods[method] > 0 {
			return t
		}
	}
	return s.transcript
}

package exchange

import (
	"cmp"
	"context"
	"net/http"
)

// Conversations follows conversations that lie across exchanges: one whose requests are POSTs, and whose messages come in the answers of
// these and of others (package mcp follows MCP's). It may be used by several goroutines at once.
type Conversations interface {
	// Begin is told of a request: while recording before it is sent on, on a replay when it is known what answers it. The
	// Passage that it returns is told of the answer; nil where the exchange carries no conversation. An error is the recorder's, which
	// has ended.
	Begin(a *Asked) (Passage, error)
}

// Asked is a request as Conversations is told of it.
type Asked struct {
	Request  *Request // as the program sent it, secrets and all, but for the Content-Encoding of its body
	Identity *Identity
	Arrival  uint64
	// Recorded is on a replay the exchange that answers it; nil while recording, and where nothing on the tape does: Refused
	// then says why.
	Recorded *Recorded
	Refused  string
}

// A Passage is told of one answer, by one goroutine at a time: Head, Chunk as often as bytes come, End and Close.
type Passage interface {
	// Known reports whether the exchange is known to carry a conversation before its answer came: of a GET for events it may turn
	// out only then, and until then it is an exchange as any other.
	Known() bool
	// Answer is what the program gets whose request nothing on the tape answers; ok is false where that is nothing special.
	// It is asked on a replay alone, before Head.
	Answer() (a *OwnAnswer, ok bool)
	// Between is given, once the head has passed, how to put bytes on the answer between what two calls of Chunk return, until Close.
	Between(say Between)
	// Head is told of the head of the answer before it is passed on. What it changes in h the program gets, and no tape holds.
	Head(status int, h http.Header) error
	// Chunk is given what one read of the answer gave, as the program would get it, and returns what it gets instead, each piece
	// as a chunk of its own: b itself while recording. On a replay it may wait for what the program had sent by then, and hold
	// bytes back until more come; ended says that these are the last. An error is the recorder's, or ctx's.
	Chunk(ctx context.Context, b []byte, ended bool) ([][]byte, error)
	// Passed is told that the program has what Chunk returned.
	Passed()
	// End is told that the answer ended, before its record is written: with "", or with what cut it. It returns the lane that the
	// record stands in; "" leaves that as it is.
	End(errText string) (lane string, err error)
	// Close is the last call: nothing more passes.
	Close()
}

// Between passes bytes on that no tape holds. The error says that the program does not get them.
type Between func(b []byte) error

// An OwnAnswer is one that no tape holds.
type OwnAnswer struct {
	Status int
	Header http.Header
	Body   []byte
	// Passes says that it is no divergence of the program that it asked.
	Passes bool
}

// Passage is that of the exchange; nil where it carries no conversation, and where none are followed.
func (o *Open) Passage() Passage { return o.passage }

// follow tells who follows conversations of the request, which on a replay rec answers, or nothing for a reason.
func (o *Open) follow(rec *Recorded, refused string) error {
	if o.asked == nil {
		return nil
	}
	asked := o.asked
	o.asked = nil
	p, err := o.tap.opts.Conversations.Begin(&Asked{
		Request: asked, Identity: o.identity, Arrival: o.exchange.Arrival, Recorded: rec, Refused: refused,
	})
	if err == nil && p != nil {
		o.passage = p
	}
	return err
}

// refused is the answer of a conversation to a request that nothing on the tape answers; nil for none.
func (o *Open) refused(reason string) *OwnAnswer {
	o.err = cmp.Or(o.err, o.follow(nil, reason))
	if o.passage == nil {
		return nil
	}
	own, _ := o.passage.Answer()
	return own
}

// leave tells the conversation that the exchange has ended.
func (o *Open) leave(errText string) error {
	if o.passage == nil {
		return nil
	}
	lane, err := o.passage.End(errText)
	if lane != "" && o.exchange.Lane != Unmatched {
		o.exchange.Lane = lane
	}
	return err
}

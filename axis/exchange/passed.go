package exchange

import (
	"io"
	"net/http"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// Replay is Response for the recorded answer that Take found, where the program gets it as it stands on the tape: what Chunk is
// given are the payload's bytes, which are in the Book's store; without both it is Response. They, and a header that is the
// recorded one, were scrubbed when they were recorded. An answer that is given in any other form, with the program's secrets
// put into it, is Response's.
func (o *Open) Replay(status int, h http.Header) {
	if o.taken == nil || o.from == nil {
		_ = o.Response(status, h) // Chunk says what it says
		return
	}
	o.live()
	o.answers()
	o.exchange.Status = status
	o.exchange.ResponseHeaders = o.taken.Exchange.ResponseHeaders
	if !areFields(h, o.exchange.ResponseHeaders) {
		o.exchange.ResponseHeaders = headerFields(o.tap.scrubber, h)
	}
	if o.tap.rec != nil {
		o.body = &passedBody{recorded: o.taken, from: o.from}
	}
}

// passedBody is the body of a recorded answer that passes as it stands. Its bytes are in a store already.
type passedBody struct {
	recorded *Recorded
	from     cas.Store
	at       chunkMap
}

func (b *passedBody) chunk(c tape.Chunk, p []byte) error {
	b.at.add(c, len(p))
	return nil
}

func (b *passedBody) finish(bool) (answer, error) {
	a := answer{chunks: b.at.chunks, store: b.part}
	if p := b.recorded.Exchange.Response; p != nil && p.Len == b.at.total {
		a.store, a.known, a.usage = b.whole, true, b.recorded.usage
	}
	return a, nil
}

// whole puts the payload into the store of rec.
func (b *passedBody) whole(rec *tape.Recorder) (*tape.Payload, error) {
	p := b.recorded.Exchange.Response
	if p.Inline {
		return p, nil
	}
	return p, cas.Copy(rec.Store(), b.from, p.Hash)
}

// part puts what the program got of the payload into the store of rec.
func (b *passedBody) part(rec *tape.Recorder) (*tape.Payload, error) {
	if b.at.total == 0 {
		return rec.Payload(nil)
	}
	r, err := b.recorded.Exchange.Response.Open(b.from)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return payloadFrom(rec, io.LimitReader(r, b.at.total))
}

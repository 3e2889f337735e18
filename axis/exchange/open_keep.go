package exchange

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strconv"

	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// maxUsageBody bounds, in bytes, the decoded answer in which the usage of a model is looked for.
const maxUsageBody = 64 << 20

// trueLength is the key of a record that holds the Content-Length of an answer whose bytes the scrubber made other ones of.
const trueLength = "response_length"

// lengthOf returns the Content-Length that extra says an answer had; -1 for none.
func lengthOf(extra []tape.Field) int64 {
	if n, err := strconv.ParseInt(textIn(extra, trueLength), 10, 64); err == nil && n >= 0 {
		return n
	}
	return -1
}

// keep puts what is kept of the answer into the exchange, or why nothing is. cut says that the upstream did not end the
// answer itself.
func (o *Open) keep(cut bool) {
	var a answer
	if o.body != nil && o.lost == nil {
		var err error
		a, err = o.body.finish(cut)
		o.lose(err)
	}
	if o.lost == nil && a.store != nil {
		o.lose(o.store(a, cut))
	}
	if o.lost != nil {
		a.lost = o.lost.Error()
	}
	if a.lost != "" {
		reason := o.tap.scrubber.String(a.lost)
		o.exchange.Error = joined(o.exchange.Error, reason)
		o.extra = append(o.extra, field("response_lost", reason))
	}
}

// store puts the answer, cut or whole, into the store and its facts into the exchange.
func (o *Open) store(a answer, cut bool) error {
	payload, err := a.store(o.tap.rec)
	if err != nil {
		return err
	}
	x := &o.exchange
	x.Response, x.Stream = payload, a.chunks
	encoding := fieldValue(x.ResponseHeaders, "Content-Encoding")
	if a.decoded {
		o.extra = append(o.extra, field("response_decoded", encoding))
		encoding = ""
		o.dropHeader("Content-Encoding")
	}
	if a.resized {
		if n := fieldValue(x.ResponseHeaders, "Content-Length"); n != "" && !a.decoded && o.tap.opts.TrueLength {
			o.extra = append(o.extra, field(trueLength, n))
		}
		o.dropHeader("Content-Length")
	}
	switch {
	case a.known:
		o.usage = a.usage
	case o.identity.Usage != nil && payload.Len <= maxUsageBody:
		o.usage = o.readUsage(payload, encoding, cut)
	}
	return nil
}

// readUsage looks for the usage of a model. An answer that does not decode has none; one that was cut may: a client that
// hangs up at the last event of a stream leaves the end of the encoding behind.
func (o *Open) readUsage(p *tape.Payload, encoding string, cut bool) []byte {
	stored, err := p.Bytes(o.tap.rec.Store())
	if err != nil {
		return nil
	}
	decoded, err := DecodeCut(encoding, stored, maxUsageBody, cut)
	if err != nil {
		return nil
	}
	return o.identity.Usage(fieldValue(o.exchange.ResponseHeaders, "Content-Type"), decoded)
}

// dropHeader takes a field out of the answer's header that no longer holds for the stored bytes.
func (o *Open) dropHeader(name string) {
	o.exchange.ResponseHeaders = slices.DeleteFunc(o.exchange.ResponseHeaders, func(f tape.HeaderField) bool {
		return f.Name == name
	})
}

// kind is the record of the exchange, with the true bytes of header values that are not UTF-8.
func (o *Open) kind() (tape.Kind, []tape.RawBytes) {
	x, key := o.exchange, o.identity.Key
	var raw []tape.RawBytes
	x.RequestHeaders, raw = safeFields(rawRequest, x.RequestHeaders, raw)
	x.ResponseHeaders, raw = safeFields(rawResponse, x.ResponseHeaders, raw)
	extra := o.extra
	if o.came > 0 && tape.FieldValue(extra, placeKey) == nil {
		extra = append([]tape.Field{number(placeKey, o.came)}, extra...)
	}
	if key.Kind != LLM {
		return &tape.HTTPExchange{Exchange: x, Extra: extra}, raw
	}
	return &tape.LLMCall{
		Provider: key.Provider, Endpoint: key.Endpoint, Model: key.Model, ParamsDigest: key.Params,
		Usage: o.usage, Exchange: x, Connection: o.connection, Opcode: o.opcode, Extra: extra,
	}, raw
}

// payloadFrom stores everything that r gives, in bounded memory.
func payloadFrom(rec *tape.Recorder, r io.Reader) (*tape.Payload, error) {
	head, err := io.ReadAll(io.LimitReader(r, tape.InlineLimit+1))
	if err != nil {
		return nil, err
	}
	if len(head) <= tape.InlineLimit {
		return rec.Payload(head)
	}
	d, n, err := rec.Store().PutReader(io.MultiReader(bytes.NewReader(head), r))
	if err != nil {
		return nil, err
	}
	return tape.PayloadOf(d, n), nil
}

// joined puts two reasons into one text.
func joined(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}

// recall learns from the recorded request that a replayed one matched what its placeholders stand for now: where the program
// names another secret than was recorded, the recorded answer means that one. It learns nothing where the two name not the same.
func (o *Open) recall() {
	if !o.tap.opts.Replay || o.tap.opts.OwnNames {
		return
	}
	o.adopt(o.tap.scrubber.NamedInURL(o.taken.Exchange.URL), o.flow)
	if len(o.named) == 0 {
		return
	}
	ex := o.taken.Exchange
	if ex.RequestPayload == nil || ex.RequestPayload.Len > scrub.MaxLooked {
		return
	}
	body, err := ex.RequestPayload.Bytes(o.from)
	if err != nil {
		return // the Book finds out when the answer is given
	}
	h := HeaderOf(ex.RequestHeaders)
	if body, err = Decode(h.Get("Content-Encoding"), body, scrub.MaxLooked); err != nil {
		return
	}
	o.adopt(o.tap.scrubber.Named(h.Get("Content-Type"), body), o.named)
}

// adopt makes the placeholders of a recorded request mean what this one names in their place.
func (o *Open) adopt(was, now []scrub.Named) {
	if len(now) == 0 || !sameNames(was, now) {
		return
	}
	o.tap.naming.Lock() // no request is half scrubbed; all others wait
	defer o.tap.naming.Unlock()
	for i := range now {
		o.tap.scrubber.Adopt(was[i].Value, now[i].Value) // nothing where it was no placeholder
	}
}

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

// EndRecorded is End in the place of Replay and Chunk: what is recorded is the recorded answer that Take found, as it stands on
// its tape, however much of it the program read; so a replay of a replay has the same to give. errText is what cut the answer,
// as it was recorded or as it came now. timed keeps the times of its chunks, which else are 0. Without an answer that Take found
// it is End.
func (o *Open) EndRecorded(errText string, timed bool) error {
	if o.ended || o.taken == nil {
		return o.End(errText)
	}
	was := o.taken.Exchange
	o.exchange.Status, o.exchange.ResponseHeaders = was.Status, was.ResponseHeaders
	for _, name := range ofAnswer {
		if value := tape.FieldValue(o.taken.extra, name); value != nil {
			o.extra = append(o.extra, tape.Field{Name: name, Value: value})
		}
	}
	if o.tap.rec != nil && was.Response != nil {
		o.body = &passedBody{recorded: o.taken, from: o.from, at: chunkMap{chunks: chunksAgain(was.Stream, timed), total: was.Response.Len}}
	}
	return o.End(errText)
}

// Asked is the record of the exchange without an answer, for who compares what was asked. No store gets anything of it.
func (o *Open) Asked() tape.Kind {
	asked := *o
	asked.exchange.Lane, asked.exchange.Error = "", ""
	if len(o.unkept) > 0 {
		asked.exchange.RequestPayload, _ = tape.MakePayload(discarded{}, o.unkept)
	}
	k, _ := asked.kind()
	return k
}

package exchange

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/bare"
	"github.com/tapedeck-dev/tapedeck/internal/spool"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// An Open is one exchange under way. Its methods are called by one goroutine at a time: on a replay Take, and Refuse where
// it found nothing; then Response or Replay, Chunk as often as bytes come, and End.
type Open struct {
	tap      *Tap
	start    time.Time
	startMS  int64 // by TapOptions.NowMS
	key      Key
	identity *Identity // nil until it is asked for, of what stands on the tape (Book.standing)
	request  *Request
	exchange tape.Exchange
	came     uint64     // the recorder's ordinal at which the program meant to ask
	arrived  uint64     // that at which it arrived; 0 where it is the same
	begins   func()     // see Begins; nil for nothing to say
	held     func(bool) // see Held; likewise
	opener   uint64     // see Request
	extra    []tape.Field
	unkept   []byte        // the body of the request that is not in the store yet; nil for none
	named    []scrub.Named // what names in the body gave away
	flow     []scrub.Named // and what its query did, as part of an OAuth flow
	taken    *Recorded     // that answers the request; nil for none
	choice   *choice       // of a socket that may still become another one; nil for none
	book     *Book         // that taken is of
	from     cas.Store     // of its payloads; nil for those alone that are inline

	connection uint64 // of a turn: its socket
	opcode     string // of a turn: of the server's messages where they are no text

	asked   *Request // as the program sent it, but for its Content-Encoding; nil where nobody follows conversations
	passage Passage  // of the conversation that the exchange carries; nil for none

	given string      // the lane that Lanes gave; "" for none
	body  body        // nil before Response or Replay, and for a nil recorder
	spool answerSpool // the same, and after Replay
	usage []byte      // of a model, as JSON; nil for none
	lost  error       // why the answer could not be kept
	err   error       // why the request's body could not be kept on a replay
	ended bool
}

// Identity says what the request is.
func (o *Open) Identity() *Identity {
	if o.identity == nil {
		id, err := o.tap.classifier.Classify(o.request)
		if err != nil { // an equal one was classified when it was recorded
			id = new(Identity)
		}
		id.Key = o.key
		o.identity = id
	}
	return o.identity
}

// Key is what must be equal for a recorded answer to serve the request.
func (o *Open) Key() Key { return o.key }

// Request returns the request, scrubbed and without its Content-Encoding.
func (o *Open) Request() *Request { return o.request }

// Arrival is the place of the request in the order of arrival, from 1; 0 where a replayed one has not been answered yet.
func (o *Open) Arrival() uint64 { return o.exchange.Arrival }

// Lane is the lane of the request; "" where a replayed one has not been answered yet.
func (o *Open) Lane() string { return o.exchange.Lane }

// Take asks b for the recorded exchange that answers the request, whose lane the request then takes; false where there is
// none. The request gets its place in the order of arrival in the same step: of two equal ones, the first by arrival is the
// one that has the first recorded answer, on the replay's tape too.
func (o *Open) Take(b *Book) (*Recorded, bool) {
	rec, ok := o.arriveAt(b)
	if !ok {
		rec = b.likeAsked(o.Identity(), o.request)
	}
	if rec != nil {
		o.takes(b, rec)
	}
	return rec, rec != nil
}

// takeThis is Take where it is known which exchange answers; false where it was handed out before.
func (o *Open) takeThis(b *Book, rec *Recorded) bool {
	o.tap.taking.Lock()
	o.arrive()
	ok := b.takeThis(rec)
	o.tap.taking.Unlock()
	if ok {
		o.takes(b, rec)
	}
	return ok
}

// TakeNext is Take whatever the request asks: the next recorded exchange by arrival answers it, false where none is left. For a tape
// of another producer, of which it is not known what it takes for equal.
func (o *Open) TakeNext(b *Book) (*Recorded, bool) {
	for {
		rec := b.next()
		if rec == nil {
			return nil, false
		}
		if o.takeThis(b, rec) {
			return rec, true
		}
	}
}

// takes makes rec what answers.
func (o *Open) takes(b *Book, rec *Recorded) {
	o.taken, o.from, o.book = rec, b.store, b
	o.recall()
	o.keepRequest()
	o.exchange.Lane = rec.Lane
	if !o.tap.opts.Closed || b.fork != nil {
		o.tap.lanes.Adopt(rec.Lane, o.Identity(), failed(rec.Exchange.Status, rec.Exchange.Error))
	}
	o.err = cmp.Or(o.err, o.follow(rec, ""))
}

// arriveAt is the one step in which a request arrives and is answered. All requests of a replay wait for it, so it is all that
// is done under the lock.
func (o *Open) arriveAt(b *Book) (*Recorded, bool) {
	traits := b.traits(o.key, o.request)
	o.tap.taking.Lock()
	defer o.tap.taking.Unlock()
	o.arrive()
	rec, choice := b.take(o.key, traits)
	o.choice = choice
	return rec, rec != nil
}

// arrive gives the request its place in the order of arrival, unless it has one.
func (o *Open) arrive() {
	if o.exchange.Arrival == 0 {
		o.exchange.Arrival = o.tap.arrivals.Add(1)
		if o.arrived = o.tap.rec.Ordinal(); o.came == 0 {
			o.came, o.arrived = o.arrived, 0
		}
	}
}

// Refuse says that nothing recorded answers the request. It stands in the lane Unmatched, with the reason as its error. What it
// returns is what the program is to get, nil for what any other gets; where that Passes, the request stands in its own lane.
func (o *Open) Refuse(reason string) *OwnAnswer {
	o.arrive()
	o.keepRequest()
	o.err = cmp.Or(o.err, o.follow(nil, reason))
	var own *OwnAnswer
	if o.passage != nil {
		if own, _ = o.passage.Answer(); own != nil && own.Passes {
			return own
		}
	}
	o.tap.refused.Store(true)
	o.exchange.Lane = Unmatched
	o.exchange.Error = o.tap.scrubber.String(reason)
	return own
}

// Response takes the head of the answer. The error is that of Chunk.
func (o *Open) Response(status int, h http.Header) error {
	o.live()
	o.answers()
	o.exchange.Status = status
	o.exchange.ResponseHeaders = headerFields(o.tap.scrubber, h)
	if o.tap.rec == nil {
		return nil
	}
	sp, err := o.newSpool()
	if err != nil {
		o.lose(err)
		return o.lost
	}
	o.spool = sp
	learn := o.tap.learner(h.Get("Content-Type"))
	if encoding := h.Get("Content-Encoding"); encoded(encoding) {
		o.body = &packedBody{scrubber: o.tap.scrubber, spool: sp, encoding: encoding, limit: o.tap.opts.MaxBody, learn: learn}
	} else {
		o.body = newPlainBody(o.tap.scrubber, sp, learn)
	}
	return nil
}

// answers tells whoever wants to know that the answer begins.
func (o *Open) answers() {
	if o.tap.opts.Answered == nil {
		return
	}
	recorded := uint64(0)
	if o.taken != nil {
		recorded = o.taken.Arrival
	}
	begins, held := o.tap.opts.Answered(o.opener, o.exchange.Arrival, recorded)
	o.begins, o.held = sync.OnceFunc(begins), held
}

// Begins says that the first bytes of the answer are about to reach the program. End and Opened say it of one that nobody has said it of.
func (o *Open) Begins() {
	if o.begins != nil {
		o.begins()
	}
}

// Held says that the answer is held up until others have ended or been asked for, and no more.
func (o *Open) Held(on bool) {
	if o.held != nil {
		o.held(on)
	}
}

// Chunk takes what one read of the upstream's body gave, before it is passed on to the program. When it returns, all that
// the scrubber has released is in the part. An error says that the part or the store cannot be written: the recorder has ended
// with it, and the program should not get the chunk.
func (o *Open) Chunk(b []byte) error {
	if o.body == nil || o.lost != nil {
		return o.lost
	}
	return o.chunk(b)
}

// chunk is the way of one that is kept. Chunk itself is so small that it stands where it is called: where nobody records it costs two
// comparisons.
func (o *Open) chunk(b []byte) error {
	var c tape.Chunk
	if now := o.tap.opts.NowMS; now != nil {
		c.TMS = now() - o.startMS
	} else {
		c.TMS, c.G = time.Since(o.start).Milliseconds(), o.tap.rec.Ordinal()
	}
	if err := o.body.chunk(c, b); err != nil {
		o.lose(err)
	}
	return o.lost
}

// End ends the exchange, before the end of the answer is passed on to the program: its record, its blobs and all before
// them are with the kernel when it returns. Of an answer that passed as it stands on a tape (Replay) the record waits in the
// tape's buffer: what it says stands on a tape already, and a replay that is killed is begun again. errText is what cut the
// exchange, "" for a whole answer. A second End does nothing.
//
// The error is the recorder's, which has then ended, also for a request's body or an answer that it could not keep: the part
// stays; or that of removing the part. An answer that could not be scanned for secrets is none: its record says so.
func (o *Open) End(errText string) error {
	if o.ended {
		return nil
	}
	o.ended = true
	o.live()
	o.Begins()
	if o.passage != nil {
		lane, err := o.passage.End(errText)
		o.err = cmp.Or(o.err, err)
		if lane != "" && o.exchange.Lane != Unmatched {
			o.exchange.Lane = lane
		}
	}
	if errText != "" {
		o.exchange.Error = joined(o.exchange.Error, o.tap.scrubber.String(errText))
	}
	if o.given != "" {
		o.tap.lanes.Done(o.given, failed(o.exchange.Status, o.exchange.Error))
	}
	if o.tap.rec == nil {
		return nil
	}
	o.keep(errText != "")
	err := cmp.Or(o.err, o.tap.rec.RecordRaw(o.kind()))
	if _, passed := o.body.(*passedBody); err == nil && !passed {
		err = o.tap.rec.Flush()
	}
	switch {
	case o.spool == nil:
		return err
	case err != nil || o.lost != nil: // the part says what the tape lacks
		return errors.Join(err, o.spool.close())
	}
	return o.spool.remove()
}

// live gives the request a lane of its own, unless it has one.
func (o *Open) live() {
	o.arrive()
	o.keepRequest()
	if o.exchange.Lane == "" {
		o.given = o.tap.lanes.Begin(o.Identity(), o.request.URL)
		o.exchange.Lane = o.given
	}
}

// lose notes why the answer could not be kept. One that could not be written ends the recording; one that could not be read,
// of a replay, has a record that says so.
func (o *Open) lose(err error) {
	if o.lost != nil || err == nil {
		return
	}
	o.lost = fmt.Errorf("answer not kept: %w", err)
	_, passed := o.body.(*passedBody)
	var missing *cas.MissingError
	var corrupt *cas.CorruptError
	unread := errors.As(err, &missing) || errors.As(err, &corrupt) || errors.Is(err, cas.ErrNotRegular) || errors.Is(err, fs.ErrNotExist)
	if !passed || !unread { // else a blob is missing or damaged that was to be copied
		o.tap.rec.Fail(o.lost)
	}
}

// newSpool begins the part.
func (o *Open) newSpool() (answerSpool, error) {
	if o.tap.opts.NowMS != nil {
		return new(inMemory), nil
	}
	if o.tap.opts.PartDir == "" {
		return unnamed{spool.New(o.tap.rec.Store())}, nil
	}
	soFar := *o
	soFar.exchange.Error = joined(o.exchange.Error, RecorderEnded)
	k, raw := soFar.kind()
	return createPart(o.tap.opts.PartDir, o.exchange.Arrival, &tape.Record{Kind: k, Raw: raw})
}

// failed reports whether an exchange was no success, so that the same request again is a retry.
func failed(status int, err string) bool {
	return status == 0 || status >= http.StatusBadRequest || err != ""
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
		Request: asked, Identity: o.Identity(), Arrival: o.exchange.Arrival, Recorded: rec, Refused: refused,
	})
	if err == nil && p != nil {
		o.passage = p
	}
	return err
}

// keepRequest puts the body of the request into the store, once. Where the recorded exchange that answers it has the same
// one, it is shared with that. o.err is then the recorder's error, which has ended.
func (o *Open) keepRequest() {
	body := o.unkept
	if o.unkept = nil; len(body) == 0 {
		return
	}
	if o.taken != nil && o.from != nil && shared(o.taken.Exchange.RequestPayload, body, o.tap.rec.Store(), o.from) {
		o.exchange.RequestPayload = o.taken.Exchange.RequestPayload
		return
	}
	o.exchange.RequestPayload, o.err = o.tap.rec.Payload(body)
}

// Trailers takes the fields that came behind the body of the answer, before End; none for an answer that had none.
func (o *Open) Trailers(h http.Header) {
	came := h.Clone()
	maps.DeleteFunc(came, func(_ string, values []string) bool { return len(values) == 0 }) // announced, and not sent
	if h = came; len(h) == 0 || o.tap.rec == nil {
		return
	}
	o.tap.scrubber.LearnHeader(h)
	o.extra = append(o.extra, bare.TrailersField(o.tap.scrubber, h))
}

// Proto says in which protocol the answer came, before End. HTTP/1.1 need not be said.
func (o *Open) Proto(proto string) {
	if proto != "" && proto != "HTTP/1.1" && o.tap.rec != nil {
		o.extra = append(o.extra, bare.ProtoField(proto))
	}
}

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
		o.extra = append(o.extra, bare.TextField("response_lost", reason))
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
		o.extra = append(o.extra, bare.TextField("response_decoded", encoding))
		encoding = ""
		o.dropHeader("Content-Encoding")
	}
	if a.resized {
		if n := fieldValue(x.ResponseHeaders, "Content-Length"); n != "" && !a.decoded && o.tap.opts.TrueLength {
			o.extra = append(o.extra, bare.TextField(trueLength, n))
		}
		o.dropHeader("Content-Length")
	}
	switch {
	case a.known:
		o.usage = a.usage
	case o.Identity().Usage != nil && payload.Len <= maxUsageBody:
		o.usage = o.readUsage(payload, encoding, cut)
	}
	return nil
}

// readUsage looks for the usage of a model. An answer that does not decode has none; one that was cut may: a client that
// hangs up at the last event of a stream leaves the end of the encoding behind.
func (o *Open) readUsage(p *tape.Payload, encoding string, cut bool) []byte {
	b, err := p.Bytes(o.tap.rec.Store())
	if err == nil {
		b, err = DecodeCut(encoding, b, maxUsageBody, cut)
	}
	if err != nil {
		return nil
	}
	return o.Identity().Usage(fieldValue(o.exchange.ResponseHeaders, "Content-Type"), b)
}

// dropHeader takes a field out of the answer's header that no longer holds for the stored bytes.
func (o *Open) dropHeader(name string) {
	o.exchange.ResponseHeaders = slices.DeleteFunc(o.exchange.ResponseHeaders, func(f tape.HeaderField) bool {
		return f.Name == name
	})
}

// kind is the record of the exchange, with the true bytes of header values that are not UTF-8.
func (o *Open) kind() (tape.Kind, []tape.RawBytes) {
	x, key := o.exchange, o.key
	var raw []tape.RawBytes
	x.RequestHeaders, raw = safeFields(rawRequest, x.RequestHeaders, raw)
	x.ResponseHeaders, raw = safeFields(rawResponse, x.ResponseHeaders, raw)
	extra := o.extra
	if tape.FieldValue(extra, placeKey) == nil {
		extra = slices.Concat(tape.NumberField(placeKey, o.came), tape.NumberField(tape.ArrivedKey, o.arrived), extra)
	}
	if key.Kind != LLM {
		return &tape.HTTPExchange{Exchange: x, Extra: extra}, raw
	}
	return &tape.LLMCall{
		Provider: key.Provider, Endpoint: key.Endpoint, Model: key.Model, ParamsDigest: key.Params,
		Usage: o.usage, Exchange: x, Connection: o.connection, Opcode: o.opcode, Extra: extra,
	}, raw
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
	if !o.tap.opts.Replay || o.tap.opts.NowMS != nil {
		return
	}
	o.tap.adopt(o.tap.scrubber.NamedInURL(o.taken.Exchange.URL), o.flow)
	if len(o.named) == 0 {
		return
	}
	ex := o.taken.Exchange
	if ex.RequestPayload == nil || ex.RequestPayload.Len > scrub.MaxLooked {
		return
	}
	h := HeaderOf(ex.RequestHeaders)
	body, err := ex.RequestPayload.Bytes(o.from)
	if err == nil {
		body, err = Decode(h.Get("Content-Encoding"), body, scrub.MaxLooked)
	}
	if err != nil {
		return // the Book finds out when the answer is given
	}
	o.tap.adopt(o.tap.scrubber.Named(h.Get("Content-Type"), body), o.named)
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
		chunks := slices.Clone(was.Stream)
		for i := range chunks {
			chunks[i].G = 0
			if !timed {
				chunks[i].TMS = 0
			}
		}
		o.body = &passedBody{recorded: o.taken, from: o.from, at: chunkMap{chunks: chunks, total: was.Response.Len}}
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

// SendOn says that a replayed request goes to an upstream after all, before it does: it gets a lane of its own, which continues that of
// what was answered from the tape.
func (o *Open) SendOn() error {
	o.live()
	o.err = cmp.Or(o.err, o.follow(nil, ""))
	return o.err
}

// Note adds further keys to the record, before End.
func (o *Open) Note(fields ...tape.Field) { o.extra = append(o.extra, fields...) }

// Recorded is what answers the request; nil for nothing, and before Take.
func (o *Open) Recorded() *Recorded { return o.taken }

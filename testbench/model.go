package testbench

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/axis/llm/fixture"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// models are who answers calls of a model: the watch is told of those that nothing answers.
type models struct {
	*core

	next   fixture.Source // nil denies
	denied atomic.Int64   // calls
}

// open says who answers calls of a model.
func (b *models) open() (_ *fixture.Caller, err error) {
	if b.next, err = b.source(); err != nil {
		return nil, err
	}
	caller := fixture.NewCaller(&fixture.CallerOptions{Source: b, Wait: b.wait})
	caller.Record(b.rec)
	return caller, nil
}

// source returns who answers calls of a model; nil where they are denied.
func (b *models) source() (fixture.Source, error) {
	c := &b.conf.LLM
	var next fixture.Source
	switch {
	case b.from != nil:
		return b.from.answers()
	case c.Source != nil:
		next = c.Source
	case c.Fixture != "":
		rules, err := readFile(c.Fixture, fixture.ReadRules)
		if err != nil {
			return nil, &ConfigError{"LLM.Fixture", err}
		}
		next = b.rules(rules)
	case c.Rules != nil:
		next = b.rules(c.Rules)
	case c.Live || c.Record != "":
		next = fixture.NewLive(&fixture.LiveOptions{Outside: b.clock.Outside})
	}
	if c.Record == "" {
		return next, nil
	}
	rec, err := fixture.NewRecording(next, c.Record, &fixture.RecordingOptions{Clean: b.secrets.clean})
	if err != nil {
		return nil, &ConfigError{"LLM.Record", err}
	}
	return rec, nil
}

// answers answers calls of a model from the tape.
func (r *recorded) answers() (fixture.Source, error) {
	calls, err := fixture.ReadCalls(r.all(), r.store)
	if err != nil {
		return nil, fmt.Errorf("testbench: the tape to replay: %s: %w", r.path, err)
	}
	if r.foreign {
		r.passTime(calls)
	}
	return fixture.NewTaped(calls, r.foreign), nil
}

// passTime gives the answers of another producer the time that its tape shows in virtual_time_ms alone: what passed since the record
// before.
func (r *recorded) passTime(calls []fixture.Call) {
	was := r.header.StartedAtUnixMS
	for _, rec := range r.records {
		if len(calls) > 0 && calls[0].Seq == rec.Seq {
			a := calls[0].Answer
			if calls = calls[1:]; was != nil && rec.VirtualTimeMS > *was && a.Delay() == 0 && a.Response != nil {
				a.Pieces = []fixture.Piece{{Text: a.Response.Text, DelayMS: rec.VirtualTimeMS - *was}}
			}
		}
		was = &rec.VirtualTimeMS
	}
}

func (b *models) rules(rules []fixture.Rule) fixture.Source {
	s := fixture.NewRules(rules)
	b.unused = append(b.unused, s.Unused)
	return s
}

// Complete implements fixture.Source.
func (b *models) Complete(ctx context.Context, r *fixture.Request) (*fixture.Answer, error) {
	if err := b.watch.gate(); err != nil {
		return nil, err
	}
	var a *fixture.Answer
	var err error
	if b.next != nil {
		if r, err = b.asTaped(r); err != nil {
			return nil, err
		}
		a, err = b.next.Complete(ctx, r)
	} else {
		err = &fixture.DeniedError{Call: int(b.denied.Add(1)), LastUser: r.LastUser(), Digest: r.Digest()}
	}
	return a, b.watch.see(err, func() tape.Kind { return b.callOf(r) })
}

// asTaped returns a request as it stands on the tape that answers it: without secrets, which it may not be known by.
func (b *models) asTaped(r *fixture.Request) (*fixture.Request, error) {
	if b.from == nil {
		return r, nil
	}
	surface, err := r.Surface()
	if err != nil {
		return nil, err
	}
	if clean := b.secrets.clean(surface); !bytes.Equal(clean, surface) {
		return fixture.ParseSurface(clean, r.Model)
	}
	return r, nil
}

// callOf is what the tape would say of a call, without its answer.
func (b *models) callOf(r *fixture.Request) tape.Kind {
	k := &tape.LLMCall{Model: r.Model}
	k.RequestDigest = r.Digest()
	if surface, err := r.Surface(); err == nil {
		k.RequestPayload = b.payload(surface)
		if k.RequestPayload != nil {
			k.RequestDigest = k.RequestPayload.Hash
		}
	}
	return k
}

// modelWire answers the calls of models that a program makes over HTTP, as the providers' SDKs do: whoever answers Bench.Model
// answers them, in the wire format of the provider that is asked, whatever the host. The record is the one that Bench.Model makes
// for the same messages. All other requests go on.
type modelWire struct {
	model      *fixture.Caller
	now        func() time.Time // of answers
	classifier *llm.Classifier
	next       http.RoundTripper

	mu    sync.Mutex
	asked map[cas.Digest]uint64 // how often each request came
	open  []*wireBody           // streams that take their time, in the order in which they began
}

// speaking returns next with the models of the run before it, where these answer what is asked over HTTP.
func (b *network) speaking(next http.RoundTripper, c *llm.Classifier) http.RoundTripper {
	if !b.wireModels() {
		return next
	}
	m := &modelWire{model: b.model, now: b.now, classifier: c, next: next, asked: make(map[cas.Digest]uint64)}
	b.late = append(b.late, m.end)
	return m
}

// end ends the streams that nobody closed.
func (m *modelWire) end() error {
	m.mu.Lock()
	open := m.open
	m.open = nil
	m.mu.Unlock()
	var errs []error
	for _, b := range open {
		errs = append(errs, b.Close())
	}
	return errors.Join(errs...)
}

// wireModels reports whether Bench.Model answers calls of models over HTTP too. Where nothing was given for it, and something for
// the network, they are requests as any other; a replay does what its tape shows.
func (b *network) wireModels() bool {
	if b.from != nil {
		for _, r := range b.from.records {
			if k, ok := r.Kind.(*tape.LLMCall); ok && k.URL != "" && llm.Speaks(k) {
				return false
			}
		}
		return true
	}
	m, n := &b.conf.LLM, &b.conf.Net
	models := m.Fixture != "" || m.Rules != nil || m.Source != nil || m.Live || m.Record != ""
	return models || n.Tape == "" && n.Allow == nil && n.Transport == nil
}

// RoundTrip implements http.RoundTripper.
func (m *modelWire) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodPost || req.Body == nil {
		return m.next.RoundTrip(req)
	}
	body, err := exchange.ReadBody(req, exchange.DefaultMaxBody)
	if err != nil {
		return nil, fmt.Errorf("testbench: %w", err)
	}
	call, plain := m.callOf(req, body)
	if call == nil {
		return m.next.RoundTrip(exchange.Outgoing(req.Context(), req, body))
	}
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	return m.answer(req, call, plain)
}

// callOf returns the call of a model that a request is, and its body without Content-Encoding; nil for a request that is none, or
// whose format cannot be answered.
func (m *modelWire) callOf(req *http.Request, body []byte) (*tape.LLMCall, []byte) {
	plain, err := exchange.Decode(req.Header.Get("Content-Encoding"), body, exchange.DefaultMaxBody)
	if err != nil {
		return nil, nil
	}
	r := exchange.RequestOf(req, plain)
	r.Header = r.Header.Clone()
	r.Header.Del("Content-Encoding")
	id, err := m.classifier.Classify(r)
	if err != nil || id.Key.Kind != exchange.LLM {
		return nil, nil
	}
	call := &tape.LLMCall{Provider: id.Key.Provider, Endpoint: id.Key.Endpoint, Model: id.Key.Model}
	call.Method, call.URL = r.Method, r.URL
	if !llm.Speaks(call) {
		return nil, nil
	}
	return call, plain
}

// answer asks the model, and puts what it says on the wire. A call that nothing answers gets status 400, which no SDK tries again,
// with the explanation in the error of its provider.
func (m *modelWire) answer(req *http.Request, call *tape.LLMCall, body []byte) (*http.Response, error) {
	w := &wireAnswer{header: make(http.Header), status: http.StatusOK}
	q, err := llm.ReadQuestion(call, body)
	if err != nil {
		m.fail(w, call.Provider, 1, http.StatusBadRequest, err.Error())
		return w.response(req, nil), nil
	}
	r := fixture.FromConversation(q.Conversation, call.Model)
	seed := m.seed(r.Digest())
	s, err := m.model.Begin(req.Context(), r)
	if err != nil {
		if !unanswered(err) {
			return nil, err
		}
		w.header.Set("X-Should-Retry", "false")
		m.fail(w, call.Provider, seed, exchange.RefusedStatus, err.Error())
		return w.response(req, nil), nil
	}
	if q.Stream && s.Answer.Err == nil && s.Answer.Delay() > 0 {
		return m.stream(req, q, seed, w, s), nil
	}
	return m.whole(req, q, seed, w, s)
}

// whole gives an answer once all of its time has passed.
func (m *modelWire) whole(req *http.Request, q *llm.Question, seed uint64, w *wireAnswer, s *fixture.Stream) (*http.Response, error) {
	err := s.Wait(req.Context(), s.Answer.Delay())
	if err == nil {
		err = s.End("")
	}
	failed := s.Answer.Err
	switch {
	case err != nil:
		return nil, err
	case failed != nil && failed.Status == 0:
		return nil, failed
	case failed != nil:
		w.header.Set("Retry-After-Ms", "1") // an SDK waits by the clock of this machine
		m.fail(w, q.Provider, seed, failed.Status, failed.Message)
	default:
		m.reply(q, seed, s.Answer).Write(w)
	}
	return w.response(req, nil), nil
}

// stream gives an answer piece by piece, each at its time.
func (m *modelWire) stream(req *http.Request, q *llm.Question, seed uint64, w *wireAnswer, s *fixture.Stream) *http.Response {
	told := 0
	reply := m.reply(q, seed, s.Answer)
	reply.Piece = func(i int) {
		told = i + 1
		w.delay += time.Duration(s.Answer.Pieces[i].DelayMS) * time.Millisecond
	}
	reply.Write(w)
	w.Flush()
	for _, p := range s.Answer.Pieces[told:] { // which the provider has no event for
		w.chunks[len(w.chunks)-1].delay += time.Duration(p.DelayMS) * time.Millisecond
	}
	res := w.response(req, s)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.open = append(slices.DeleteFunc(m.open, (*wireBody).over), res.Body.(*wireBody))
	return res
}

// fail answers with an error of a provider.
func (m *modelWire) fail(w *wireAnswer, provider string, seed uint64, status int, message string) {
	llm.Header(w.header, provider, m.ids(seed))
	w.header.Set("Content-Type", "application/json")
	w.status, w.next = status, append(llm.Failure(provider, status, message), '\n')
}

// ids makes up what answers hold of ids. Their time is that of the run.
func (m *modelWire) ids(seed uint64) *llm.IDs {
	ids := llm.NewIDs(seed)
	ids.Now = m.now
	return ids
}

// seed is that of what an answer makes up, such as its id: it follows from the request, and how often it came, so that a call more
// or less changes no other.
func (m *modelWire) seed(d cas.Digest) uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked[d]++
	return max(binary.BigEndian.Uint64(d[:])+m.asked[d], 1)
}

// reply is an answer as it goes on the wire.
func (m *modelWire) reply(q *llm.Question, seed uint64, a *fixture.Answer) *llm.Reply {
	r := a.Response
	c := &llm.Completion{Text: r.Text, Stop: r.StopReason, InputTokens: r.Usage.InputTokens, OutputTokens: r.Usage.OutputTokens}
	for _, p := range a.Pieces {
		c.Pieces = append(c.Pieces, p.Text)
	}
	for _, x := range r.ToolCalls {
		c.Calls = append(c.Calls, llm.CompletionCall{ID: x.ID, Name: x.Name, Arguments: x.Arguments})
	}
	return &llm.Reply{Completion: c, Question: q, IDs: m.ids(seed)}
}

// A wireAnswer is the http.ResponseWriter of an answer that is there whole; what is flushed at once is one chunk.
type wireAnswer struct {
	header http.Header
	status int
	chunks []wireChunk
	next   []byte        // of the next chunk
	delay  time.Duration // before it
}

// A wireChunk comes some time after the one before it.
type wireChunk struct {
	b     []byte
	delay time.Duration
}

// Header implements http.ResponseWriter.
func (w *wireAnswer) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *wireAnswer) WriteHeader(status int) { w.status = status }

// Write implements http.ResponseWriter.
func (w *wireAnswer) Write(p []byte) (int, error) {
	w.next = append(w.next, p...)
	return len(p), nil
}

// Flush implements http.Flusher.
func (w *wireAnswer) Flush() {
	if len(w.next) > 0 {
		w.chunks, w.next, w.delay = append(w.chunks, wireChunk{w.next, w.delay}), nil, 0
	}
}

// response is what a client gets. s is the call that ends with it, nil where it has ended.
func (w *wireAnswer) response(req *http.Request, s *fixture.Stream) *http.Response {
	w.Flush()
	ctx, cancel := context.WithCancel(req.Context())
	return &http.Response{
		Status: fmt.Sprintf("%d %s", w.status, http.StatusText(w.status)), StatusCode: w.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.header, Request: req, ContentLength: -1, Body: &wireBody{ctx: ctx, cancel: cancel, chunks: w.chunks, call: s},
	}
}

// errBodyClosed is what a Read gives after Close.
var errBodyClosed = errors.New("testbench: read on a closed body")

// A wireBody gives bytes of one chunk at most with a Read, each chunk at its time. The call is recorded before its last chunk is
// given: what the program does with the answer stands behind it.
type wireBody struct {
	ctx    context.Context
	cancel context.CancelFunc
	call   *fixture.Stream // nil where it is recorded

	recorded atomic.Bool

	mu     sync.Mutex // guards what follows: one goroutine may close what another reads
	chunks []wireChunk
	ahead  []byte // of the chunk that has begun
	err    error  // what every further Read gives
}

// Read implements io.Reader.
func (b *wireBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil && len(b.ahead) == 0 {
		b.err = b.next()
	}
	if b.err != nil {
		return 0, b.err
	}
	n := copy(p, b.ahead)
	b.ahead = b.ahead[n:]
	return n, nil
}

// next goes on to the next chunk.
func (b *wireBody) next() error {
	if err := b.ctx.Err(); err != nil {
		return b.cut(err)
	}
	if len(b.chunks) == 0 {
		b.cancel()
		return io.EOF
	}
	c := b.chunks[0]
	if b.chunks = b.chunks[1:]; b.call != nil {
		if err := b.call.Wait(b.ctx, c.delay); err != nil {
			return b.cut(err)
		}
		if len(b.chunks) == 0 {
			if err := b.end(""); err != nil {
				return err
			}
		}
	}
	b.ahead = c.b
	return nil
}

// over reports whether there is nothing left to record.
func (b *wireBody) over() bool { return b.recorded.Load() }

// end records the call.
func (b *wireBody) end(cut string) error {
	defer b.recorded.Store(true)
	return b.call.End(cut)
}

// cut ends the call that the program ended.
func (b *wireBody) cut(err error) error {
	if b.call == nil {
		return err
	}
	if failed := b.end(exchange.ErrorTextIn(b.ctx, err)); failed != nil {
		return errors.Join(err, failed)
	}
	return err
}

// Close implements io.Closer. A Read that waits ends.
func (b *wireBody) Close() error {
	if !b.mu.TryLock() {
		b.cancel()
		b.mu.Lock()
	}
	defer b.mu.Unlock()
	b.cancel()
	b.ahead, b.err = nil, errBodyClosed
	if b.call == nil {
		return nil
	}
	return b.end(tape.Cancelled)
}

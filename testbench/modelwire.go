package testbench

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/axis/llm/fixture"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// modelWire answers the calls of models that a program makes over HTTP, as the providers' SDKs do: whoever answers Bench.Model
// answers them, in the wire format of the provider that is asked, whatever the host. The record is the one that Bench.Model makes
// for the same messages. All other requests go on.
type modelWire struct {
	b          *Bench
	classifier *llm.Classifier
	next       http.RoundTripper

	mu    sync.Mutex
	asked map[cas.Digest]uint64 // how often each request came
	open  []*wireBody           // streams that take their time, in the order in which they began
}

// speaking returns next with the models of the run before it, where these answer what is asked over HTTP.
func (b *Bench) speaking(next http.RoundTripper, c *llm.Classifier) http.RoundTripper {
	if !b.wireModels() {
		return next
	}
	m := &modelWire{b: b, classifier: c, next: next, asked: make(map[cas.Digest]uint64)}
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
func (b *Bench) wireModels() bool {
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
	s, err := m.b.model.Begin(req.Context(), r)
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

// now is the time of answers: that of the run.
func (m *modelWire) now() time.Time {
	wall, _ := m.b.clock.Stamp()
	return time.UnixMilli(wall).UTC()
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

package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/internal/lane"
)

// LiveOptions say which servers over HTTP go on by themselves where a run leaves its tape.
type LiveOptions struct {
	Serves   func(server string) bool // by the name that was recorded
	Patience time.Duration            // as in TakeOverOptions
	// Told is told of each answer of the tape what the server said to the same request, nil for nothing in time. Nil is nobody.
	Told func(is *Recorded, a *ToldAnswer)
}

// A live is what an OverHTTP knows of such servers.
type live struct {
	o       *LiveOptions
	left    context.Context // done once the run is past its tape
	leave   context.CancelFunc
	ctx     context.Context // of what is told
	end     context.CancelFunc
	running sync.WaitGroup // what tells and listens, until ctx is done at the latest
}

// GoLive has servers go on by themselves from Leave on, with a session of their own: what the client asks then they answer, and before the
// first of it they are told what the client had said up to there. It stands before the first request.
func (h *OverHTTP) GoLive(o *LiveOptions) {
	h.live = &live{o: o}
	h.live.left, h.live.leave = context.WithCancel(context.Background())
	h.live.ctx, h.live.end = context.WithCancel(context.Background())
}

// Leave says that the run is past its tape.
func (h *OverHTTP) Leave() {
	if h.live != nil {
		h.live.leave()
	}
}

// Leaves reports whether a request is for a server that goes on by itself.
func (h *OverHTTP) Leaves(r *exchange.Request) bool {
	place := placeOf(r.URL)
	h.mu.Lock()
	t, _ := h.find(r, place)
	h.mu.Unlock()
	switch {
	case t != nil && t.player != nil:
		return t.live != nil
	case t != nil && t.Conversation != nil: // that the tape lacks
		place = t.opened.URL
	}
	return h.live != nil && slices.ContainsFunc(h.book.at(place), func(t *transcript) bool { return h.live.o.Serves(t.Server) })
}

// session is the session of a recorded conversation with such a server; nil where the tape answers to its end.
func (l *live) session(h *OverHTTP, was *transcript) *liveSession {
	if l == nil || !l.o.Serves(was.Server) {
		return nil
	}
	return &liveSession{live: l, was: was, book: h.book, ready: make(chan struct{})}
}

// A liveSession is the session that a run holds with a server itself once it is past its tape, in the place of the recorded one.
type liveSession struct {
	*live
	was  *transcript
	book *Book

	once   sync.Once
	ready  chan struct{}  // closed when the server has been told, or is lost
	events *io.PipeReader // of HTTP+SSE: what comes on its stream from then on; set before ready

	mu      sync.Mutex // guards what follows
	told    []*webExchange
	replies []*Message          // of the client to what the tape's server asked
	stream  *exchange.Request   // on which the client listens; nil for none
	session string              // of the server; "" for none
	post    string              // of HTTP+SSE: where messages are sent to; "" else
	lost    error               // why the server is told no more; nil while it is
	got     map[string]*Message // the answers that are awaited, by id; nil for one that has not come
	streams int                 // on which the client listens, and that have not gone on yet
	changed lane.Change         // of post, lost, got and streams
}

// answered notes what the tape answers.
func (l *liveSession) answered(p *webExchange) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case p.asked.Request.Method == http.MethodGet:
		l.stream = p.asked.Request
	case !slices.ContainsFunc(p.messages, func(m Message) bool { return !m.IsAnswer() }):
		for i := range p.messages {
			l.replies = append(l.replies, &p.messages[i])
		}
	default:
		l.told = append(l.told, p)
	}
}

// Send implements exchange.Live.
func (p *webExchange) Send(ctx context.Context, send exchange.Sender) (res *http.Response, ok bool, err error) {
	if p.conversation == nil || p.conversation.live == nil {
		return nil, false, nil
	}
	l := p.conversation.live
	if err := l.begin(ctx, send); err != nil {
		return nil, true, err
	}
	l.join(ctx)
	if res, err = send(ctx, l.mapped(p.asked.Request)); err == nil {
		res.Header.Del(sessionHeader) // to the client it is the recorded one
	}
	return res, true, err
}

// mapped is a request of the client as the server knows its session. It has been decoded, and asks for an answer that is plain.
// It has none of the headers without.
func (l *liveSession) mapped(r *exchange.Request, without ...string) *exchange.Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := *r
	out.Header = r.Header.Clone()
	for _, name := range append(without, "Content-Encoding", "Accept-Encoding", sessionHeader) {
		out.Header.Del(name)
	}
	if l.session != "" {
		out.Header.Set(sessionHeader, l.session)
	}
	if l.post != "" && r.Method == http.MethodPost {
		out.URL = l.post
	}
	return &out
}

// begin waits until the server has been told all that the tape has answered, which happens once. The error is ctx's.
func (l *liveSession) begin(ctx context.Context, send exchange.Sender) error {
	l.once.Do(func() { l.running.Go(func() { l.tellAll(send) }) })
	select {
	case <-l.ready:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// maxJoin is for how long a request waits for the streams of its client.
const maxJoin = 2 * time.Second

// join waits until the streams on which the client listens are those of the server: what that says unasked when it gets the request is said to
// nobody else. One that says nothing on a stream before it has something to say is not waited for longer than maxJoin.
func (l *liveSession) join(ctx context.Context) {
	ctx, stop := context.WithTimeout(ctx, maxJoin)
	defer stop()
	_ = lane.Hold(ctx, nil, func() (<-chan struct{}, time.Duration) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.streams == 0 {
			return nil, 0
		}
		return l.changed.Next(), lane.Forever
	}, nil)
}

// listens counts the streams that have not gone on yet.
func (l *liveSession) listens(more int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.streams += more
	l.changed.Happened()
}

func (l *liveSession) tellAll(send exchange.Sender) {
	defer close(l.ready)
	l.mu.Lock()
	told, stream := l.told, l.stream
	l.mu.Unlock()
	if len(told) > 0 && told[0].sse && stream != nil {
		l.listen(send, stream, told[0].asked.Request)
	}
	for _, p := range told {
		l.tell(send, p)
	}
}

// Why a server has not answered: what loses it, and what does not.
var (
	errLate   = errors.New("no answer came in time")
	errSilent = errors.New("it gave no answer")
)

// within is the time of one answer.
func (l *liveSession) within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, cmp.Or(l.o.Patience, DefaultPatience), errLate)
}

// lose notes why the server is told no more: what ended ctx, or else err.
func (l *liveSession) lose(ctx context.Context, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost = cmp.Or(l.lost, context.Cause(ctx), err)
	l.changed.Happened()
}

// tell tells the server what one request of the client said, and says what it answers.
func (l *liveSession) tell(send exchange.Sender, p *webExchange) {
	ctx, stop := l.within(l.ctx)
	defer stop()
	var asked []*ToldAnswer
	got := make(map[string]*Message)
	calls := l.was.callsOf(p.asked.Recorded.Arrival)
	for i := range p.messages {
		if m := &p.messages[i]; m.IsRequest() && len(calls) > 0 {
			if was, ok := messageOf(calls[0].answer, l.book.store); ok { // else the client did not wait for it either
				asked = append(asked, &ToldAnswer{Seq: calls[0].seq, Asked: m, Recorded: was})
				got[idName(m.ID)] = nil
			}
			calls = calls[1:]
		}
	}
	l.mu.Lock()
	l.got = got
	why := l.lost
	l.mu.Unlock()
	if why == nil {
		why = l.send(ctx, send, p.asked.Request, len(asked) > 0)
		l.await(ctx, func() bool { return l.post == "" || why != nil || l.heard() }) // of HTTP+SSE it may yet come
	}
	l.mu.Lock()
	l.got, why = nil, cmp.Or(l.lost, why, errSilent)
	l.mu.Unlock()
	for _, a := range asked {
		if a.Now = got[idName(a.Asked.ID)]; a.Now == nil {
			a.Why = why.Error()
		}
		if l.o.Told != nil {
			l.o.Told(&l.was.Recorded, a)
		}
	}
}

// errHeard ends the reading of an answer that has said what is waited for.
var errHeard = errors.New("heard")

// send sends a request, and hears its own answer where that is awaited. The error says that it was not taken.
func (l *liveSession) send(ctx context.Context, send exchange.Sender, r *exchange.Request, awaited bool) error {
	ctx, stop := l.within(ctx)
	defer stop()
	res, err := send(ctx, l.mapped(r))
	if err != nil {
		l.lose(ctx, err)
		return err
	}
	defer res.Body.Close()
	if id := res.Header.Get(sessionHeader); id != "" {
		l.mu.Lock()
		l.session = id
		l.mu.Unlock()
	}
	if awaited {
		err := eachUnit(r.Method, res, func(u *unit) error { return l.hear(ctx, send, r, u) })
		if !errors.Is(err, io.EOF) && !errors.Is(err, errHeard) {
			l.lose(ctx, err)
		}
	}
	if res.StatusCode >= http.StatusMultipleChoices {
		return errors.New("it answered " + res.Status)
	}
	return nil
}

// hear takes a part of what the server says while it is told what a client said by a request like that. Once all has come that is awaited it
// returns errHeard.
func (l *liveSession) hear(ctx context.Context, send exchange.Sender, like *exchange.Request, u *unit) error {
	messages, _, _ := Parse(bytes.Clone(u.data()))
	for i := range messages {
		if messages[i].IsRequest() {
			reply := *like
			reply.Body = l.reply(messages[i].ID)
			_ = l.send(ctx, send, &reply, false)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range messages {
		id := idName(messages[i].ID)
		if _, awaited := l.got[id]; awaited && messages[i].IsAnswer() {
			l.got[id] = &messages[i]
			l.changed.Happened()
		}
	}
	if !l.heard() {
		return nil
	}
	return errHeard
}

// heard reports whether all has come that is awaited. The caller holds mu.
func (l *liveSession) heard() bool {
	return !slices.Contains(slices.Collect(maps.Values(l.got)), nil)
}

// reply is the answer to what the server asks: what the client answered to what the tape asked, in that order.
func (l *liveSession) reply(id json.RawMessage) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.replies) == 0 {
		return errorAnswer(id, "the recorded client was not asked this")
	}
	line := renamed(l.replies[0].Raw, &recordedPart{ask: new(recordedAsk)}, &caller{id: id})
	l.replies = l.replies[1:]
	return line
}

// await waits until something is there, or the server is lost, as it is when ctx is done first.
func (l *liveSession) await(ctx context.Context, there func() bool) {
	err := lane.Hold(ctx, nil, func() (<-chan struct{}, time.Duration) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.lost != nil || there() {
			return nil, 0
		}
		return l.changed.Next(), lane.Forever
	}, nil)
	if err != nil {
		l.lose(ctx, err)
	}
}

// listen opens the stream of HTTP+SSE, and waits until that has said where messages are sent to, by requests like that.
func (l *liveSession) listen(send exchange.Sender, stream, like *exchange.Request) {
	ctx, end := context.WithCancelCause(l.ctx)
	first, stop := l.within(ctx)
	defer stop()
	defer context.AfterFunc(first, func() { end(context.Cause(first)) })()
	events, passed := io.Pipe()
	l.events = events
	context.AfterFunc(l.ctx, func() { events.Close() }) // perhaps nobody reads it
	res, err := send(ctx, l.mapped(stream, lastEvent))
	if err != nil {
		l.lose(ctx, err)
		passed.CloseWithError(err)
		end(nil)
		return
	}
	if res.StatusCode != http.StatusOK {
		l.lose(ctx, errors.New("it answered "+res.Status))
	}
	l.running.Go(func() {
		defer end(nil)
		defer res.Body.Close()
		err := eachUnit(stream.Method, res, func(u *unit) error {
			select {
			case <-l.ready:
				_, err := passed.Write(u.raw)
				return err
			default:
			}
			if u.event != nil && u.event.name == "endpoint" {
				return l.endpoint(stream.URL, string(u.event.data))
			}
			_ = l.hear(ctx, send, like, u)
			return nil
		})
		passed.CloseWithError(err)
		if errors.Is(err, io.EOF) {
			err = errors.New("its stream of events ended")
		}
		l.lose(ctx, err)
	})
	l.await(first, func() bool { return l.post != "" })
}

// endpoint notes where messages are sent to: nowhere else than where the stream is, for they hold what the client is known by.
func (l *liveSession) endpoint(base, ref string) error {
	from, err := url.Parse(base)
	if err != nil {
		return err
	}
	to, err := from.Parse(ref)
	if err != nil {
		return err
	} else if to.Scheme != from.Scheme || !strings.EqualFold(to.Host, from.Host) {
		return fmt.Errorf("it wants messages at %s://%s, and its events are at %s://%s: nothing is sent there", to.Scheme, to.Host, from.Scheme, from.Host)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.post = to.String()
	l.changed.Happened()
	return nil
}

// EachLine calls f for each line of messages in the answer to a request of a method over HTTP, until its error or the answer's end, which it
// returns. A line is valid until f returns.
func EachLine(method string, res *http.Response, f func(line []byte) error) error {
	return eachUnit(method, res, func(u *unit) error {
		if _, _, err := Parse(u.data()); err != nil {
			return nil
		}
		return f(u.data())
	})
}

// eachUnit calls f for each part of the answer to a request of a method, until its error or the answer's end, which it returns.
func eachUnit(method string, res *http.Response, f func(u *unit) error) error {
	reader := readerOf(method, res.Header)
	buf := make([]byte, relayBuffer)
	for reader != nil {
		n, err := res.Body.Read(buf)
		if err := cmp.Or(reader.take(buf[:n], err != nil, f), err); err != nil {
			return err
		}
	}
	return io.EOF
}

// GoOn implements exchange.Live: of a stream on which the client listens.
func (p *webExchange) GoOn(recorded exchange.Body, send exchange.Sender) exchange.Body {
	was := p.asked.Recorded.Exchange
	_, events := readerOf(was.Method, exchange.HeaderOf(was.ResponseHeaders)).(*eventReader)
	if p.conversation == nil || p.conversation.live == nil || !events || was.Method != http.MethodGet || was.Status != http.StatusOK {
		return nil
	}
	p.given.spliced = true
	live := p.conversation.live
	live.listens(1)
	return &splicedStream{p: p, live: live, wentOn: sync.OnceFunc(func() { live.listens(-1) }), send: send, recorded: recorded, buf: make([]byte, relayBuffer)}
}

// A splicedStream gives the recorded events of a stream, each when it is due, and past the tape what the server says.
type splicedStream struct {
	p        *webExchange
	live     *liveSession
	wentOn   func() // once it is the server's, or has ended
	send     exchange.Sender
	recorded exchange.Body
	reader   eventReader
	units    []*unit
	end      error         // of the recorded one
	far      io.ReadCloser // nil before that
	buf      []byte
}

// Next implements exchange.Body.
func (s *splicedStream) Next(ctx context.Context) ([]byte, error) {
	if s.far == nil {
		before, stop := context.WithCancel(ctx)
		defer stop()
		defer context.AfterFunc(s.live.left, stop)()
		b, err := s.next(before)
		if err == nil || s.live.left.Err() == nil || ctx.Err() != nil {
			return b, err
		}
		if s.far, err = s.leave(ctx); err != nil {
			return nil, err
		}
	}
	n, err := s.far.Read(s.buf)
	return s.buf[:n], err
}

// next is the next recorded event, or the recorded end.
func (s *splicedStream) next(ctx context.Context) ([]byte, error) {
	for len(s.units) == 0 && s.end == nil {
		b, err := s.recorded.Next(ctx)
		if ctx.Err() == nil {
			s.end = err
		}
		_ = s.reader.take(b, s.end != nil, func(u *unit) error {
			s.units = append(s.units, newUnit(bytes.Clone(u.raw)))
			return nil
		})
		if err != nil && s.end == nil {
			return nil, err
		}
	}
	g := &s.p.given
	if len(s.units) == 0 {
		if err := g.atEnd(ctx, true); err != nil {
			return nil, err
		}
		s.wentOn()
		return nil, s.end
	}
	u := s.units[0]
	if _, _, err := Parse(u.data()); err == nil {
		if err := g.await(ctx); err != nil {
			return nil, err
		}
	}
	s.units = s.units[1:]
	return u.raw, nil
}

// leave goes on with what the server says itself.
func (s *splicedStream) leave(ctx context.Context) (io.ReadCloser, error) {
	if err := s.live.begin(ctx, s.send); err != nil {
		return nil, err
	}
	s.p.given.on = false
	if far := s.live.events; far != nil {
		s.wentOn()
		context.AfterFunc(ctx, func() { far.Close() })
		return far, nil
	}
	res, err := s.send(ctx, s.live.mapped(s.p.asked.Request, lastEvent))
	if s.wentOn(); err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK { // it has nothing to say unasked
		res.Body.Close()
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return res.Body, nil
}

// Close implements exchange.Body.
func (s *splicedStream) Close() error {
	s.wentOn()
	err := s.recorded.Close()
	if s.far != nil {
		err = errors.Join(err, s.far.Close())
	}
	return err
}

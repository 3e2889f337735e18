package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/lane"
)

// replyPatience is how long the answer of a lenient Served waits for the client's response to what the server asked within it: a
// person may be asked.
const replyPatience = time.Minute

// Codes of JSON-RPC and of MCP.
const (
	codeParse    = -32700
	codeNoMethod = -32601
)

// A session is one lenient client. Each of its requests is a scene of its own: what the server said while it worked on that, and the
// answer, whatever other requests there are.
type session struct {
	s     *Served
	o     *ServeOptions
	index *lenientIndex
	gone  context.Context // done when the client says nothing more
	// unasked takes what the server said while it worked on no request of the client's; nil drops it.
	unasked outlet

	working sync.WaitGroup // on answers

	mu      sync.Mutex // guards what follows
	ended   bool
	asked   map[requestKey]int                // how often the client came with a request
	can     map[string]bool                   // what the client can be asked: "sampling", "roots", "elicitation"
	legacy  bool                              // the client has begun with initialize
	asks    int                               // requests of the server so far
	waiting map[string]chan struct{}          // for responses, by the id of the request
	opening *scene                            // that the client began with, until it says that it is initialized
	subs    map[*recordedCall][]*subscription // that are open
}

func newSession(gone context.Context, s *Served, o *ServeOptions) *session {
	return &session{
		s: s, o: o, index: s.looseIndex(), gone: gone, asked: make(map[requestKey]int), can: make(map[string]bool),
		waiting: make(map[string]chan struct{}), subs: make(map[*recordedCall][]*subscription),
	}
}

// work does something in the session's time. When the session has ended it is not done: nobody hears of it.
func (v *session) work(f func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.ended {
		v.working.Go(f)
	}
}

// rest lets nothing more begin, and waits for what goes on.
func (v *session) rest() {
	v.mu.Lock()
	v.ended = true
	v.mu.Unlock()
	v.working.Wait()
}

// An outlet takes messages for the client, whole and without a line end. That a client takes none any more shows by its context.
type outlet func(message []byte)

// tell takes a notification or a response of the client.
func (v *session) tell(m *Message) {
	var came chan struct{}
	var opening *scene
	v.mu.Lock()
	switch {
	case m.IsAnswer():
		came = v.waiting[idName(m.ID)]
		delete(v.waiting, idName(m.ID))
	case m.Method == notedInitialized:
		opening, v.opening = v.opening, nil
	}
	v.mu.Unlock()
	if came != nil {
		close(came)
	}
	if opening != nil {
		v.behind(opening)
	}
}

// silent reports whether nothing is said before the answer to a request, which therefore waits for nobody.
func (v *session) silent(m *Message) bool {
	c, _ := v.find(m)
	return c == nil || c.method != methodListen && len(c.inside) == 0
}

// answer answers a request, after what the server said while it worked on it.
func (v *session) answer(ctx context.Context, m *Message, out outlet) {
	switch m.Method {
	case methodPing:
		out(emptyAnswer(m.ID))
		return
	case methodInitialize:
		v.connect(m)
	default:
		v.capable(member(member(m.Params, "_meta"), metaPrefix+"clientCapabilities"))
	}
	who := &caller{id: m.ID, token: tokenOf(m.Params)}
	c, k := v.find(m)
	switch {
	case c == nil:
		out(v.unrecorded(m))
		return
	case c.method == methodListen:
		v.listen(ctx, c, who, out)
		return
	}
	v.mu.Lock()
	v.asked[k]++
	v.mu.Unlock()
	v.play(ctx, c, who, out)
	if c.method != methodInitialize {
		v.behind(c)
		return
	}
	v.mu.Lock()
	v.opening = c
	v.mu.Unlock()
}

// connect notes what a client says of itself.
func (v *session) connect(m *Message) {
	v.capable(member(m.Params, "capabilities"))
	v.mu.Lock()
	v.legacy = true
	v.mu.Unlock()
	want, has := str(member(m.Params, "protocolVersion")), ""
	for _, m := range v.index.results(methodInitialize) {
		has = str(member(m.Result, "protocolVersion"))
		break
	}
	switch {
	case v.o.Say == nil:
	case v.index.headless():
		v.o.Say("the tape does not hold what the server said of itself: the client is answered by what was asked of it")
	case want != has && has != "":
		v.o.Say(fmt.Sprintf("the client asks for protocol version %s and is answered by %s, which was recorded", want, has))
	}
}

func (v *session) capable(capabilities json.RawMessage) {
	if capabilities == nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, name := range []string{"sampling", "roots", "elicitation"} {
		v.can[name] = member(capabilities, name) != nil
	}
}

// redacted is a message of the client in the form of the tape.
func (v *session) redacted(m *Message) *Message {
	if red := v.s.book.log.Redact(Client, m.Raw); len(red.Messages) == 1 {
		return &red.Messages[0]
	}
	return m
}

// find is the recorded request that answers m: of equal ones the next, and after the last that one again; nil for none.
func (v *session) find(m *Message) (*scene, requestKey) {
	k := v.index.key(m.Method, v.redacted(m).Params)
	list := v.index.scenes[k]
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(list) == 0 {
		return nil, k
	}
	return list[min(v.asked[k], len(list)-1)], k
}

// play says what the server said while it worked on a request, and the answer. What the server asks holds up what is behind it until the
// client responds, or has gone.
func (v *session) play(ctx context.Context, c *scene, who *caller, out outlet) {
	told := false
	for _, p := range c.inside {
		if told = p.ask == nil; told {
			v.say(p, who, out)
		} else {
			v.await(ctx, v.ask(p, out))
		}
		if ctx.Err() != nil { // nobody takes more
			return
		}
	}
	if c.answer == nil {
		return
	}
	if told {
		_ = lane.Pause(ctx, nil, reading) // whoever writes the answer finds ctx done
	}
	v.say(c.answerPart(), who, out)
}

// say says what the server said to who asked. What cannot be read is missed by nobody, unless it answers.
func (v *session) say(p *recordedPart, who *caller, out outlet) {
	if v.index.subscribed[p] {
		v.publish(p)
		return
	}
	b, err := v.message(p, who)
	switch {
	case err != nil && p.answer:
		out(errorAnswer(who.id, "the recorded answer cannot be read: "+err.Error()))
	case err == nil && b != nil:
		out(b)
	}
}

// message is a recorded message as it is said here: on one line, which over HTTP it need not have been.
func (v *session) message(p *recordedPart, who *caller) ([]byte, error) {
	b, err := v.s.book.message(p, who, v.o.Reveal)
	if bytes.ContainsAny(b, "\r\n") { // only between its tokens
		b = bytes.Map(func(r rune) rune {
			if r == '\r' || r == '\n' {
				return ' '
			}
			return r
		}, b)
	}
	return b, err
}

// ask asks the client what the server asked, under an id of this session. came is closed when it responds; nil where it is not asked, for
// it did not say that it answers such a request, or this one cannot be read.
func (v *session) ask(p *recordedPart, out outlet) (came chan struct{}) {
	m, ok := messageOf(p.payload, v.s.book.store)
	if !ok {
		return nil
	}
	kind, _, _ := strings.Cut(m.Method, "/")
	v.mu.Lock()
	if !v.can[kind] {
		v.mu.Unlock()
		return nil
	}
	v.asks++
	id := fmt.Sprintf(`"tapedeck-%d"`, v.asks)
	came = make(chan struct{})
	v.waiting[id] = came
	v.mu.Unlock()
	v.say(p, &caller{id: json.RawMessage(id)}, out)
	return came
}

// await waits for a response, for as long as a person may take; not for none.
func (v *session) await(ctx context.Context, came <-chan struct{}) {
	if came == nil {
		return
	}
	select {
	case <-came:
	case <-time.After(replyPatience):
	case <-v.gone.Done():
	case <-ctx.Done():
	}
}

// unrecorded is the answer to a request that the tape does not hold: what the tape tells of the server all the same, or an error.
func (v *session) unrecorded(m *Message) []byte {
	if b := v.index.madeUp(m); b != nil {
		if v.o.Reveal != nil {
			b = v.o.Reveal(b)
		}
		return b
	}
	if m.Method == methodDiscover { // a server of the versions before: the client goes on with initialize
		return errorWith(m.ID, codeNoMethod, "server/discover is not on the tape: begin with initialize")
	}
	clean := v.redacted(m)
	why := v.s.book.closest(v.s.nearestTo(m.Method), clean)
	return errorAnswer(m.ID, notOnTape(clean, why))
}

// A subscription is where a client listens for what is said unasked.
type subscription struct {
	caller
	mu  sync.Mutex // held by who says something there
	out outlet
}

func (s *subscription) say(b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out(b)
}

// listen says that the client is heard, and holds its subscription until it leaves. The subscription begins before the client knows of
// it: it may do at once what it is to hear about.
func (v *session) listen(ctx context.Context, c *scene, who *caller, out outlet) {
	s := &subscription{caller: *who, out: out}
	s.mu.Lock()
	v.mu.Lock()
	v.subs[c.recordedCall] = append(v.subs[c.recordedCall], s)
	v.mu.Unlock()
	v.play(ctx, c, who, out) // what is published meanwhile comes behind
	s.mu.Unlock()
	select {
	case <-ctx.Done():
	case <-v.gone.Done():
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.subs[c.recordedCall] = slices.DeleteFunc(v.subs[c.recordedCall], func(other *subscription) bool { return other == s })
}

// behind says what the server said behind the answer to c, when it worked on nothing. Who does not listen misses it. A response to what
// it asked so is waited for by nobody.
func (v *session) behind(c *scene) {
	for _, p := range c.behind {
		switch {
		case v.unasked == nil && !v.index.subscribed[p]:
		case p.ask != nil:
			v.ask(p, v.unasked)
		default:
			v.say(p, new(caller), v.unasked)
		}
	}
}

// publish says a notification to those that listen as the client did that got it; to a client of the versions that do not listen, where
// it hears what is said unasked.
func (v *session) publish(p *recordedPart) {
	v.mu.Lock()
	subs, legacy := slices.Clone(v.subs[p.call]), v.legacy
	v.mu.Unlock()
	if legacy && v.unasked != nil {
		subs = []*subscription{{out: v.unasked}}
	}
	for _, s := range subs {
		if b, err := v.message(p, &s.caller); err == nil {
			s.say(b)
		}
	}
}

// messages takes what a client said in one go; those of a batch as if each had come alone. A request is answered before it returns, unless
// its answer waits for somebody.
func (v *session) messages(ctx context.Context, msgs []Message, out outlet) {
	for i := range msgs {
		m := &msgs[i]
		switch {
		case !m.IsRequest():
			v.tell(m)
		case v.silent(m):
			v.answer(ctx, m, out)
		default:
			v.work(func() { v.answer(ctx, m, out) })
		}
	}
}

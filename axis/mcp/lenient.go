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

	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
	"github.com/tapedeck-dev/tapedeck/internal/lane"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// replyPatience is how long the answer of a lenient Served waits for the client's response to what the server asked within it: a
// person may be asked.
const replyPatience = time.Minute

// Codes of JSON-RPC and of MCP.
const (
	codeParse          = -32700
	codeNoMethod       = -32601
	codeNoSuchProtocol = -32022
)

// A session is one lenient client: its own copy of what the tape holds.
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
	pos     map[requestKey]int
	can     map[string]bool // what the client can be asked: "sampling", "roots", "elicitation"
	legacy  bool            // the client has begun with initialize
	asked   int             // requests of the server so far
	waiting map[string]chan *Message
	opening *recordedCall                     // that the client began with, until it says that it is initialized
	subs    map[*recordedCall][]*subscription // that are open
}

func newSession(gone context.Context, s *Served, o *ServeOptions) *session {
	return &session{
		s: s, o: o, index: s.looseIndex(), gone: gone, pos: make(map[requestKey]int), can: make(map[string]bool),
		waiting: make(map[string]chan *Message), subs: make(map[*recordedCall][]*subscription),
	}
}

// work does something in the visit's time. When the visit has ended it is not done: nobody hears of it.
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

// An outlet takes messages for the client, whole and without a line end.
type outlet func(message []byte) error

// tell takes a notification or a response of the client.
func (v *session) tell(m *Message) {
	if m.IsAnswer() {
		v.mu.Lock()
		wait := v.waiting[idName(m.ID)]
		delete(v.waiting, idName(m.ID))
		v.mu.Unlock()
		if wait != nil {
			wait <- m
		}
		return
	}
	v.mu.Lock()
	opening := v.opening
	if m.Method == notedInitialized {
		v.opening = nil
	}
	v.mu.Unlock()
	if m.Method == notedInitialized {
		v.behind(opening)
	}
}

// silent reports whether nothing is said before the answer to a request, which therefore waits for nobody.
func (v *session) silent(m *Message) bool {
	c := v.peek(m)
	return c == nil || c.method != methodListen && len(v.index.inside[c]) == 0
}

// answer answers a request, after what the server said while it worked on it. An error is the outlet's.
func (v *session) answer(ctx context.Context, m *Message, out outlet) error {
	switch m.Method {
	case "ping":
		return out(answerOf(m.ID, "result", []byte("{}")))
	case methodInitialize:
		v.meet(m)
	default:
		v.capable(member(member(m.Params, "_meta"), metaPrefix+"clientCapabilities"))
	}
	c := v.take(m)
	if c != nil {
		return v.recorded(ctx, m, c, out)
	}
	if b := v.madeUp(m); b != nil {
		return out(b)
	}
	return out(v.unknown(m))
}

// meet notes what a client says of itself.
func (v *session) meet(m *Message) {
	v.capable(member(m.Params, "capabilities"))
	v.mu.Lock()
	v.legacy = true
	v.mu.Unlock()
	want, has := str(member(m.Params, "protocolVersion")), v.protocol()
	switch {
	case v.o.Say == nil:
	case v.index.headless():
		v.o.Say("the tape does not hold what the server said of itself: the client is answered by what was asked of it")
	case want != has && has != "":
		v.o.Say(fmt.Sprintf("the client asks for protocol version %s and is answered by %s, which was recorded", want, has))
	}
}

// protocol is the version that a legacy client is answered by.
func (v *session) protocol() string {
	for _, m := range v.index.results(methodInitialize) {
		return str(member(m.Result, "protocolVersion"))
	}
	return ""
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

// peek is the recorded request that answers m next; nil for none.
func (v *session) peek(m *Message) *recordedCall {
	c, _ := v.find(m)
	return c
}

// take is peek, and the next one is another.
func (v *session) take(m *Message) *recordedCall {
	c, k := v.find(m)
	if c != nil {
		v.mu.Lock()
		v.pos[k]++
		v.mu.Unlock()
	}
	return c
}

// find finds the recorded request that answers m: of equal ones the next, and after the last that one again.
func (v *session) find(m *Message) (*recordedCall, requestKey) {
	clean := *m
	if red := v.s.book.log.Redact(Client, m.Raw); len(red.Messages) == 1 {
		clean = red.Messages[0]
	}
	k := v.index.key(m.Method, clean.Params)
	list := v.index.calls[k]
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(list) == 0 {
		return nil, k
	}
	return list[min(v.pos[k], len(list)-1)], k
}

// recorded gives the answer of a recorded request, and then what the server said before it answered the next one.
func (v *session) recorded(ctx context.Context, m *Message, c *recordedCall, out outlet) error {
	who := caller{id: m.ID, token: tokenOf(m.Params)}
	if c.method == methodListen {
		return v.listen(ctx, c, who, out)
	}
	if err := v.before(ctx, c, &who, out); err != nil {
		return err
	}
	if n := len(v.index.inside[c]); n > 0 && v.index.inside[c][n-1].ask == nil {
		_ = lane.Pause(ctx, nil, reading) // whoever writes the answer finds ctx done
	}
	b, err := c.answer.Bytes(v.s.book.store)
	if err != nil {
		return out(errorAnswer(m.ID, "the recorded answer cannot be read: "+err.Error()))
	}
	err = out(v.reveal(renamed(b, &recordedPart{call: c, answer: true}, &who)))
	if c.method != methodInitialize {
		v.behind(c)
		return err
	}
	v.mu.Lock()
	v.opening = c
	v.mu.Unlock()
	return err
}

// before says what the server said before its answer to c.
func (v *session) before(ctx context.Context, c *recordedCall, who *caller, out outlet) error {
	for _, p := range v.index.inside[c] {
		if err := v.inside(ctx, p, who, out); err != nil {
			return err
		}
	}
	return nil
}

// reveal is a recorded message as it is said here: with the client's own secrets, and on one line, which over HTTP it need not have
// been.
func (v *session) reveal(b []byte) []byte {
	if v.o.Reveal != nil {
		b = v.o.Reveal(b)
	}
	if bytes.ContainsAny(b, "\r\n") { // only between its tokens
		b = bytes.Map(func(r rune) rune {
			if r == '\r' || r == '\n' {
				return ' '
			}
			return r
		}, b)
	}
	return b
}

// inside says what the server said before an answer. Of what it asked the client is asked what it can, under an id of this visit.
func (v *session) inside(ctx context.Context, p *recordedPart, who *caller, out outlet) error {
	if v.index.subscribed[p] {
		v.publish(p)
		return nil
	}
	b, err := p.payload.Bytes(v.s.book.store)
	if err != nil {
		return nil // it is missed by nobody
	}
	if p.ask == nil {
		if b = renamed(b, p, who); b == nil {
			return nil
		}
		return out(v.reveal(b))
	}
	msgs, _, err := Parse(b)
	if err != nil || len(msgs) != 1 || !v.canBeAsked(msgs[0].Method) {
		return nil
	}
	wait, err := v.ask(b, out)
	if err == nil {
		v.await(ctx, wait)
	}
	return err
}

// canBeAsked reports whether the client said that it answers such a request.
func (v *session) canBeAsked(method string) bool {
	kind, _, _ := strings.Cut(method, "/")
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.can[kind]
}

// ask asks the client; its response comes from wait.
func (v *session) ask(request []byte, out outlet) (wait <-chan *Message, err error) {
	id, wait := v.newRequest()
	return wait, out(v.reveal(edited(request, func(name string) []byte { return only(name == spotID, id) })))
}

// await waits for a response, but not for ever.
func (v *session) await(ctx context.Context, wait <-chan *Message) {
	t := time.NewTimer(replyPatience)
	defer t.Stop()
	select {
	case <-wait:
	case <-t.C:
	case <-ctx.Done():
	case <-v.gone.Done():
	}
}

func only(yes bool, b []byte) []byte {
	if yes {
		return b
	}
	return nil
}

// newRequest is an id that the client is asked under, and where its response arrives.
func (v *session) newRequest() (id json.RawMessage, wait chan *Message) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.asked++
	id = fmt.Appendf(nil, `"tapedeck-%d"`, v.asked)
	wait = make(chan *Message, 1)
	v.waiting[idName(id)] = wait
	return id, wait
}

// unknown is the error for what the tape lacks.
func (v *session) unknown(m *Message) []byte {
	if m.Method == methodDiscover { // a server of the versions before: the client goes on with initialize
		return errorWith(m.ID, codeNoMethod, "server/discover is not on the tape: begin with initialize")
	}
	clean := m
	if red := v.s.book.log.Redact(Client, m.Raw); len(red.Messages) == 1 {
		clean = &red.Messages[0]
	}
	why := v.s.book.closest(v.s.nearestTalk(m.Method), clean)
	return errorAnswer(m.ID, notOnTape(clean, why))
}

// madeUp is the answer to what a client begins with that was recorded with a client of another kind, or not at all; nil for none. What a
// server says of itself is the same to both kinds. Some clients set the level of the log before anything else, wherever the server has
// one.
func (v *session) madeUp(m *Message) []byte {
	switch {
	case m.Method == "logging/setLevel": // which asks for nothing that could be on a tape
		return answerOf(m.ID, "result", []byte("{}"))
	case v.index.headless():
		return v.guessed(m)
	case m.Method == methodInitialize:
		return v.discovered(m)
	}
	return nil
}

// discovered is the answer to initialize from one to server/discover.
func (v *session) discovered(m *Message) []byte {
	for _, d := range v.index.results(methodDiscover) {
		r := canonjson.Value{Kind: canonjson.Object}
		add := func(key string, value json.RawMessage) {
			if val, err := canonjson.Parse(value); err == nil {
				r.Members = append(r.Members, canonjson.Member{Key: key, Value: val})
			}
		}
		add("protocolVersion", []byte(`"`+wantedVersion(m)+`"`))
		add("capabilities", member(d.Result, "capabilities"))
		add("serverInfo", member(member(d.Result, "_meta"), metaPrefix+"serverInfo"))
		add("instructions", member(d.Result, "instructions"))
		return v.reveal(answerOf(m.ID, "result", r.Append(nil)))
	}
	return nil
}

// guessed is what a headless tape shows of its server: that it has what was asked of it, and of that what was named.
func (v *session) guessed(m *Message) []byte {
	has := make(map[string]any)
	var result map[string]any
	for _, o := range offers {
		if !v.index.asksOf(o.name) {
			continue
		}
		has[o.name] = struct{}{}
		if m.Method == o.list && len(v.index.results(o.list)) == 0 {
			result = map[string]any{o.name: v.index.named(o.use, o.by, o.entry)}
		}
	}
	if m.Method == methodInitialize {
		result = map[string]any{
			"protocolVersion": wantedVersion(m), "capabilities": has,
			"serverInfo": map[string]string{"name": tape.MCPServer(v.s.talk.Server), "version": "unknown"},
		}
	}
	b, err := json.Marshal(result)
	if result == nil || err != nil {
		return nil
	}
	return v.reveal(answerOf(m.ID, "result", b))
}

// listen says that the client is heard, and holds its subscription until it leaves. The subscription begins before the client knows of
// it: it may do at once what it is to hear about.
func (v *session) listen(ctx context.Context, c *recordedCall, who caller, out outlet) error {
	s := &subscription{caller: who, out: out}
	v.mu.Lock()
	v.subs[c] = append(v.subs[c], s)
	v.mu.Unlock()
	err := v.before(ctx, c, &who, out) // what is published meanwhile comes behind
	if err == nil {
		s.begin()
		select {
		case <-ctx.Done():
		case <-v.gone.Done():
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.subs[c] = slices.DeleteFunc(v.subs[c], func(other *subscription) bool { return other == s })
	return err
}

// behind says what the server said behind the answer to c, when it worked on nothing. c may be nil. Who does not listen misses it. A
// response to what it asked so is waited for by nobody.
func (v *session) behind(c *recordedCall) {
	for _, p := range v.index.behind[c] {
		b, err := p.payload.Bytes(v.s.book.store)
		switch {
		case err != nil:
		case v.index.subscribed[p]:
			v.publish(p)
		case v.unasked == nil:
		case p.ask == nil:
			_ = v.unasked(v.reveal(b))
		default:
			if msgs, _, err := Parse(b); err == nil && len(msgs) == 1 && v.canBeAsked(msgs[0].Method) {
				_, _ = v.ask(b, v.unasked)
			}
		}
	}
}

// publish says a notification to those that listen as the client did that got it; to a client of the versions that do not listen, where
// it hears what is said unasked.
func (v *session) publish(p *recordedPart) {
	b, err := p.payload.Bytes(v.s.book.store)
	if err != nil {
		return
	}
	v.mu.Lock()
	subs, legacy := slices.Clone(v.subs[p.call]), v.legacy
	v.mu.Unlock()
	if legacy && v.unasked != nil {
		_ = v.unasked(v.reveal(b))
		return
	}
	for _, s := range subs {
		s.say(v.reveal(renamed(b, p, &s.caller)))
	}
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

// messages takes what a client said in one go. A request is answered before it returns, unless its answer waits for somebody.
func (v *session) messages(ctx context.Context, msgs []Message, batch bool, out outlet) {
	if batch {
		v.work(func() { v.batch(ctx, msgs, out) })
		return
	}
	for i := range msgs {
		m := &msgs[i]
		switch {
		case !m.IsRequest():
			v.tell(m)
		case v.silent(m):
			_ = v.answer(ctx, m, out) // out never fails
		default:
			v.work(func() { _ = v.answer(ctx, m, out) })
		}
	}
}

// batch answers a batch by one.
func (v *session) batch(ctx context.Context, msgs []Message, out outlet) {
	var answers [][]byte
	for i := range msgs {
		if m := &msgs[i]; !m.IsRequest() {
			v.tell(m)
			continue
		}
		_ = v.answer(ctx, &msgs[i], func(b []byte) error {
			if answersTo(b, msgs[i].ID) {
				answers = append(answers, b)
				return nil
			}
			return out(b)
		})
	}
	if b := lineOf(answers, true); b != nil {
		_ = out(bytes.TrimSuffix(b, []byte("\n")))
	}
}

// answersTo reports whether b is the answer to the request of that id.
func answersTo(b, id []byte) bool {
	msgs, _, err := Parse(b)
	return err == nil && len(msgs) == 1 && msgs[0].IsAnswer() && idName(msgs[0].ID) == idName(id)
}

package mcp

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// Opened says what a conversation is with.
type Opened struct {
	Transport string // Stdio or HTTP
	Program   string // of stdio: what was executed, as it was spelled
	// Latest is asked for Program when the conversation begins, where it may have been found elsewhere by then than where it was looked
	// for first. Nil is not asked.
	Latest func() string
	Args   []string
	// Environ gives the variables of a server over stdio, NAME=VALUE: their secrets are learnt, they are not recorded. Nil where they
	// are not known.
	Environ func() []string
	// Given gives the variables that a server over stdio got beyond those of the program, NAME=VALUE, without secrets: it is asked once
	// those of Environ are learnt. Nil gives none.
	Given func() []string
	given []string
	// Begun is told the number of the conversation before anything is done about its first line. Nil is not.
	Begun func(conversation uint64)
	// Within is the number of the conversation of the server that holds this one as a client; 0 for the program.
	Within uint64
	PID    int    // of the server's process, as that knows it; 0 for none
	Cwd    string // "" where it is not known
	URL    string // of http
	// Recorded is, on a replay, the conversation that answers this one: it has its server and its number. Nil else.
	Recorded *Recorded
	// Before is called with the number of the conversation before a line of the server is put on the tape: what the server did beside
	// what it says comes first. An error ends the recorder. Nil is not.
	Before func(conversation uint64) error
	// Giving waits until the client has done what it does about what it got last, before it gets an answer or something else over stdio. What
	// it returns is called when that was written. Nil waits for nothing.
	Giving func(answer bool) (given func())
}

// Ended says how a conversation ended.
type Ended struct {
	// By is who ended it, "" the recorder. Where a Relay saw who closed its side first, that counts.
	By Side
	// Exited says that the server was a process, of which it is known how it ended: by ExitCode, 128+n where the signal n killed it.
	Exited   bool
	ExitCode int
	Signal   string // "SIGTERM"; "" for none
}

// A Conversation is one conversation with one server, from its first line to its end. Its methods may be called by several
// goroutines at once; those of a nil Conversation do nothing.
type Conversation struct {
	log    *Log
	opened Opened                           // redacted
	before func(conversation uint64) error  // nil for none
	giving func(answer bool) (given func()) // likewise
	raw    []tape.RawBytes
	number uint64

	mu      sync.Mutex
	naming  naming
	arrival uint64 // place of the line that came last
	calls   openCalls
	texts   [3]*text // of the client, the server, stderr
	part    []byte   // of a line on stderr that has not ended: names in it are looked at as a whole
	by      Side     // who ended it first
	went    bool     // the server was gone before it could learn that the client had left
	lost    string   // what of it is not on the tape
	ended   bool
}

// Begin begins a conversation. Nothing is written of it before the server has told its name, or something shows that it will not. It is
// nil of a Log that writes nothing.
func (l *Log) Begin(o *Opened) *Conversation {
	if l.rec == nil {
		return nil
	}
	if l.learn != nil {
		l.learn(o)
	}
	if o.Latest != nil {
		latest := *o
		latest.Program = o.Latest()
		o = &latest
	}
	c := &Conversation{log: l, number: l.number(o.Recorded), before: o.Before, giving: o.Giving}
	if o.Begun != nil {
		o.Begun(c.number)
	}
	c.opened, c.raw = l.redactOpened(o)
	for i, from := range []Side{Client, Server, stderrSide} {
		c.texts[i] = newText(from, l.scrubber)
	}
	if o.Recorded != nil {
		c.naming.server, c.naming.protocol = o.Recorded.Server, o.Recorded.Protocol
	}
	return c
}

// Server returns the name under which the conversation is recorded; "" before it is known.
func (c *Conversation) Server() string {
	if c == nil {
		return ""
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.naming.server
}

// give waits until something of the server may go out to its client: an answer, or what asks for nothing. told says that the latter went out
// last; settles is how long the client may take to read it where nobody knows what it does. given is called when it was written.
func (c *Conversation) give(out *os.File, answer, told bool, settles time.Duration) (given func()) {
	switch {
	case c != nil && c.giving != nil:
		return c.giving(answer)
	case answer && told:
		settle(out, settles)
	}
	return func() {}
}

// Line takes one line, in the order in which lines passed: a message, a batch, or text that is neither. Of stdio it has its line
// end, of HTTP it has none. via is the Arrival of the http_exchange that carries it, 0 for none. What passes is not to be passed on
// in whole before Line has returned: the record of an answer is then with the kernel (but of one that came before the server told
// its name). It does not keep line. An error is the recorder's, which has ended: nothing is to be passed on.
func (c *Conversation) Line(from Side, line []byte, via uint64) error {
	answered, err := c.line(from, line, via)
	if err == nil && answered {
		err = c.flush()
	}
	return err
}

// line is Line without the barrier. It reports whether the line holds an answer that is on the tape now.
func (c *Conversation) line(from Side, line []byte, via uint64) (answered bool, err error) {
	if c == nil {
		return false, nil
	}
	c.writeStderrOf(c.log.stderrBy.Load())
	if from == Server && c.before != nil {
		if err := c.before(c.number); err != nil {
			return false, err
		}
	}
	red := c.log.Redact(from, line)
	kept, err := c.log.keep(red)
	if err != nil {
		return false, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended || from == Client && c.by == Server { // a server that has ended is asked nothing more, though its client may write
		return false, nil
	}
	c.arrival++
	if len(red.Messages) == 0 {
		c.text(from, red.Text)
		return false, c.log.rec.Err()
	}
	c.writeTexts((*text).lines)
	for i := range red.Messages {
		answered = c.message(from, red, &kept[i], via) || answered
	}
	return answered && c.naming.done(), c.log.rec.Err()
}

// message takes one message of a line. It reports whether that answers something.
func (c *Conversation) message(from Side, red *Line, m *kept, via uint64) bool {
	switch {
	case m.IsRequest():
		c.ask(from, m, via)
		return false
	case m.IsNotification():
		c.tell(from, m, via)
		return false
	}
	k := c.calls.take(from.Other(), m.ID)
	if k == nil { // it answers nothing
		b := m.Raw
		if len(red.Messages) == 1 {
			b = red.Text
		}
		c.text(from, b)
		c.writeTexts((*text).rest)
		return false
	}
	c.answer(k, m, via)
	return true
}

// during does something of a conversation that goes on. What f writes goes to the recorder, which keeps its first error and writes nothing
// after it: that is what during returns.
func (c *Conversation) during(f func()) error {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return nil
	}
	f()
	return c.log.rec.Err()
}

// Text takes a line, or a part of one, that is no message whatever it holds: what a server that ended left without a line end.
func (c *Conversation) Text(from Side, b []byte) error {
	if len(b) == 0 {
		return nil
	}
	return c.during(func() {
		c.arrival++
		c.text(from, b)
	})
}

// Stderr takes what the server wrote to stderr. It is recorded before the next line, as text of that place, and before the next line of
// another conversation and what another server writes to its stderr: that may be the same file. A line that has not ended waits until it has.
func (c *Conversation) Stderr(b []byte) error {
	if c == nil {
		return nil
	}
	c.writeStderrOf(c.log.stderrBy.Swap(c))
	return c.during(func() {
		c.part = append(c.part, b...)
		n := bytes.LastIndexByte(c.part, '\n') + 1
		if len(c.part) >= maxText {
			n = len(c.part)
		}
		c.stderr(n)
	})
}

// writeStderrOf writes what the server of another conversation wrote to its stderr before something of c comes: a replay keeps the order
// of the two, and a client that saw what stood there may have waited for it before it went on with c.
func (c *Conversation) writeStderrOf(last *Conversation) {
	if last == c {
		return
	}
	_ = last.during(func() { // whoever goes on with c gets the recorder's error
		if slices.ContainsFunc(last.texts[:], func(t *text) bool { return t.from == stderrSide && t.any }) {
			last.writeTexts((*text).lines) // else texts of several lines would fall apart with each line elsewhere
		}
	})
}

// stderr takes the first n bytes of what came on stderr.
func (c *Conversation) stderr(n int) {
	if n > 0 {
		c.text(stderrSide, c.part[:n])
		c.part = append(c.part[:0], c.part[n:]...)
	}
}

// Lost says that a line of n bytes passed that is too long to be kept. What follows is recorded; that something is missing stands
// in the end of the conversation, and Log.Lost tells of it.
func (c *Conversation) Lost(from Side, n int64) {
	_ = c.during(func() { // nothing is written
		c.arrival++
		c.calls.lose(from.Other())
		c.lose(fmt.Sprintf("line %d, of %d bytes from the %s, is too long to be kept (at most %d bytes)", c.arrival, n, from, MaxLine))
	})
}

// lose says what of the conversation is not on the tape. mu is held.
func (c *Conversation) lose(why string) {
	c.lost = cmp.Or(c.lost, why)
	c.log.lose(fmt.Sprintf("MCP conversation %d: %s", c.number, why))
}

// Fault gives the oldest open request of a side with that id the reason that its record will have as its error: a replay says so
// why it refuses it, before it takes the answer by Line.
func (c *Conversation) Fault(from Side, id json.RawMessage, why string) {
	_ = c.during(func() { // nothing is written
		if k := c.calls.find(from, c.log.redactID(id)); k != nil {
			k.fault = c.log.str(why)
		}
	})
}

// Cut writes the record of the oldest open request of a side with that id: it gets no answer, for the reason why.
func (c *Conversation) Cut(from Side, id json.RawMessage, why string) error {
	return c.during(func() {
		if k := c.calls.take(from, c.log.redactID(id)); k != nil {
			c.unanswered(k, c.log.str(why))
		}
	})
}

// endedBy says who closed its side; the first counts. went says that the server was gone before what the client's end passes on to it.
func (c *Conversation) endedBy(side Side, went bool) {
	_ = c.during(func() { c.by, c.went = cmp.Or(c.by, side), c.went || went }) // nothing is written
}

// sentSignal reports whether a signal is one that other processes send, to end this one.
func sentSignal(name string) bool {
	switch name {
	case "SIGTERM", "SIGKILL", "SIGINT", "SIGHUP":
		return true
	}
	return false
}

// End ends the conversation: what is open gets its record, and all of it is with the kernel when End returns. A second End does
// nothing.
func (c *Conversation) End(e Ended) error {
	first := false
	err := c.during(func() {
		first = true
		c.end(&e)
	})
	if !first || err != nil {
		return err
	}
	return c.flush()
}

// end is End for who holds mu.
func (c *Conversation) end(e *Ended) {
	c.ended = true
	untold := e.Exited && !sentSignal(e.Signal) && e.Signal != "SIGPIPE" // as clients tell it, and the end of a program's world
	if c.by = cmp.Or(c.by, e.By); c.by == Client && c.went && untold {
		c.by = Server
	}
	c.stderr(len(c.part))
	c.writeTexts((*text).rest)
	why := cmp.Or(string(c.by), "recorder") + " ended"
	for _, k := range c.calls {
		c.unanswered(k, why)
	}
	c.name("")
	c.write(c.closing(e), nil)
}

// flush is the barrier before an answer is passed on.
func (c *Conversation) flush() error {
	if c == nil {
		return nil
	}
	return c.log.rec.Flush()
}

// The reasons that records have.
const (
	cancelled  = "cancelled"
	answerLost = "the answer was too long to be kept"
)

// An openCall is a request that has no answer yet.
type openCall struct {
	from   Side
	id     string
	record *tape.MCPJSONRPC // but for its answer
	began  time.Time
	cut    time.Time // when it was cancelled; zero for never
	fault  string
	lost   bool // a line came that is not kept, which may be its answer
}

// openCalls are the open requests of a conversation, in the order in which they came. A side may use an id twice at once, which none
// should: the oldest is answered first.
type openCalls []*openCall

// canonicalID is an id in one form.
func canonicalID(id json.RawMessage) string {
	if b, err := canonjson.Canonical(id); err == nil {
		id = b
	}
	return string(id)
}

func (c openCalls) index(from Side, id json.RawMessage) int {
	name := canonicalID(id)
	return slices.IndexFunc(c, func(k *openCall) bool { return k.from == from && k.id == name })
}

func (c openCalls) find(from Side, id json.RawMessage) *openCall {
	if i := c.index(from, id); i >= 0 {
		return c[i]
	}
	return nil
}

func (c *openCalls) take(from Side, id json.RawMessage) *openCall {
	i := c.index(from, id)
	if i < 0 {
		return nil
	}
	k := (*c)[i]
	*c = slices.Delete(*c, i, i+1)
	return k
}

// lose notes that a line which is not kept may have answered any of the requests of a side.
func (c openCalls) lose(from Side) {
	for _, k := range c {
		k.lost = k.lost || k.from == from
	}
}

// has reports whether a request of a method is open.
func (c openCalls) has(methods ...string) bool {
	return slices.ContainsFunc(c, func(k *openCall) bool { return slices.Contains(methods, k.record.Method) })
}

// ask takes a request.
func (c *Conversation) ask(from Side, m *kept, via uint64) {
	c.naming.asked(m.Message)
	c.calls = append(c.calls, &openCall{from: from, id: canonicalID(m.ID), record: c.record(from, m, via), began: time.Now()})
}

// tell takes a notification. That a request is cancelled shows only where no answer comes: one may be on its way.
func (c *Conversation) tell(from Side, m *kept, via uint64) {
	if m.Method == "notifications/cancelled" {
		if k := c.calls.find(from, member(m.Params, "requestId")); k != nil && k.cut.IsZero() {
			k.cut = time.Now()
		}
	}
	c.write(c.record(from, m, via), nil)
}

// answer takes the answer of a call.
func (c *Conversation) answer(k *openCall, m *kept, via uint64) {
	r := k.record
	r.Response, r.ResponseDigest, r.ResultDigest = m.payload, m.payload.Hash, m.digest
	r.LatencyMS, r.Answered, r.AnswerExchange = time.Since(k.began).Milliseconds(), c.arrival, via
	r.Error = k.fault
	if k.from == Client && !c.naming.done() {
		c.learnName(k, m.Message)
	}
	c.write(r, nil)
}

// unanswered writes the record of a call that gets no answer.
func (c *Conversation) unanswered(k *openCall, why string) {
	end := time.Now()
	if !k.cut.IsZero() {
		end, why = k.cut, cancelled
	}
	switch {
	case k.fault != "":
		why = k.fault
	case k.lost && k.cut.IsZero():
		why = answerLost
	}
	k.record.LatencyMS, k.record.Error = end.Sub(k.began).Milliseconds(), why
	c.write(k.record, nil)
}

// noBytes is the digest of what is not there.
var noBytes = cas.Sum(nil)

// kept is a message with what takes time to make of it.
type kept struct {
	*Message
	payload *tape.Payload
	digest  cas.Digest // of the params, the result or the error
}

// record is that of a request or a notification, without an answer.
func (c *Conversation) record(from Side, m *kept, via uint64) *tape.MCPJSONRPC {
	method, _ := tape.SafeString(m.Method)
	return &tape.MCPJSONRPC{
		Method: method, RequestDigest: m.payload.Hash, ResponseDigest: noBytes, Request: m.payload, From: string(from),
		Conversation: c.number, Transport: c.opened.Transport, Arrival: c.arrival, ParamsDigest: m.digest, Exchange: via,
	}
}

// text takes text at the place of the line that came last.
func (c *Conversation) text(from Side, b []byte) {
	for _, t := range c.texts {
		if t.from != from {
			continue
		}
		t.add(b, c.arrival)
		if t.full() {
			c.writeTexts((*text).lines)
		}
	}
}

// writeTexts writes what take gives of each text, by place.
func (c *Conversation) writeTexts(take func(*text) ([]byte, uint64)) {
	var all []*tape.MCPText
	for _, t := range c.texts {
		b, at := take(t)
		if len(b) == 0 {
			continue
		}
		p, _ := c.log.rec.Payload(b) // after an error of the recorder's nothing is written
		all = append(all, &tape.MCPText{Conversation: c.number, From: string(t.from), Arrival: at, Payload: p})
	}
	slices.SortStableFunc(all, func(a, b *tape.MCPText) int { return int(a.Arrival) - int(b.Arrival) })
	for _, k := range all {
		c.write(k, nil)
	}
}

// closing is the record of the end.
func (c *Conversation) closing(e *Ended) *tape.MCPClose {
	k := &tape.MCPClose{Conversation: c.number, Arrival: c.arrival, Signal: e.Signal, Error: c.lost, By: string(c.by)}
	if e.Exited {
		code := int64(e.ExitCode)
		k.ExitCode = &code
	}
	return k
}

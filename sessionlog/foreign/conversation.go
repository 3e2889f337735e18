package foreign

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/sessionlog"
)

// A conversation is handed to a sessionlog.Dialog piece by piece: it puts an answer together of what an agent keeps of it, and
// results that come together into one event. It begins with begin.
type conversation struct {
	r        *Report
	out      func(sessionlog.Event) error
	d        *sessionlog.Dialog // nil until it begins
	protocol string             // of the provider's blocks, as a provider_replay names it
	n        uint64             // events that were emitted
	failed   error              // that of out, or what is broken: after it nothing is emitted, and reading ends with the line under way

	answer   answer
	results  []sessionlog.ToolResult
	held     int                // bytes of results
	order    map[string]int     // the place of each call of the last answer
	after    []sessionlog.Event // to follow the results
	beside   []json.RawMessage  // what the model gets with the next prompt
	typed    command            // that stands open
	prompted bool               // there was a prompt
	reason   string             // why the run under way ends, "" where nothing says so
}

// An answer is one turn of the model's.
type answer struct {
	some   bool
	id     string // of the message, where the agent keeps it
	model  string
	tokens int64
	parts
	calls    []sessionlog.ToolCall
	thoughts []string
	native   []json.RawMessage // thoughts as the provider wants them back
}

// Bounds of what is held.
const (
	maxHeld   = 16 << 20 // bytes of results that wait for more of theirs
	maxBeside = 256      // what is kept for a prompt that may never come
)

// begin begins a conversation whose runs are called by a session's id, or by the format where there is none.
func (c *conversation) begin(id, protocol string) {
	c.d = sessionlog.NewDialog(cmp.Or(id, c.r.Format), c.emit)
	c.protocol = protocol
}

func (c *conversation) emit(e sessionlog.Event) error {
	if c.failed == nil {
		c.n++
		c.failed = c.out(e)
	}
	return c.failed
}

// with keeps what is no prompt for the next one, as an attachment of it.
func (c *conversation) with(block json.RawMessage) {
	if len(c.beside) < maxBeside {
		c.beside = append(c.beside, block)
		return
	}
	c.r.skip("what the model got beside a prompt", fmt.Sprintf("more than %d for one prompt", maxBeside), 0)
}

// ask begins a run with a prompt.
func (c *conversation) ask(e *sessionlog.RunStarted) {
	c.end("")
	c.prompted = true
	e.Attachments = append(c.beside, e.Attachments...)
	c.beside = nil
	_ = c.d.Ask(e) // failed has the errors of a Dialog, which are those of emit
}

// A command is what the person typed that may be for the program or for the model, until it shows whether the model hears of it.
type command struct {
	text string // "" for none
	line int
}

// commanded is called where the model answers: a command that stands open was for it.
func (c *conversation) commanded() {
	if goal := c.typed.text; goal != "" {
		c.typed.text = ""
		c.ask(&sessionlog.RunStarted{Goal: goal})
	}
}

// ignored counts a command that stands open as one that the model never heard of.
func (c *conversation) ignored() {
	if c.typed.text != "" {
		c.typed.text = ""
		c.r.skip("commands to the program", "the model was not asked", c.typed.line)
	}
}

// end ends the run under way, if any, for a reason as sessionlog.Dialog takes it.
func (c *conversation) end(reason string) {
	c.flush()
	reason = cmp.Or(reason, c.reason)
	c.reason = ""
	_ = c.d.End(reason)
}

// ended ends the conversation of a transcript that was read with err, and tells what there was.
func (c *conversation) ended(err error) error {
	if c.d == nil {
		return cmp.Or(err, error(&Error{Path: c.r.File, Err: fmt.Errorf("%w: no session in it", ErrEmpty)}))
	}
	if err == nil {
		c.end("")
		err = c.failed
		for range c.beside {
			c.r.skip("what the model would have got with the next prompt", "there is no next prompt", 0)
		}
	}
	n := c.d.Counts()
	c.r.Turns, c.r.Calls, c.r.Results = n.Turns, n.Calls, n.Results
	return err
}

// compressed says that all that was said so far is a summary for the model from here on.
func (c *conversation) compressed(action, summary string) {
	c.flush()
	e := &sessionlog.Compressed{Action: action, Summary: summary}
	e.Turn = c.d.Turn()
	if c.n > 0 {
		e.ArchivedSeqRange = []uint64{0, c.n - 1}
	}
	_ = c.emit(e)
}

// then emits an event of the turn under way, behind what its tools gave.
func (c *conversation) then(e sessionlog.Event) { c.after = append(c.after, e) }

// turn is a whole answer, and why the run ends where it is the last one; "" where nothing says so.
func (c *conversation) turn(a *answer, reason string) {
	c.flush()
	a.some = true
	c.answer, c.reason = *a, reason
	c.answered()
}

// saying is the answer under way, to be added to. What tools gave before it is passed on.
func (c *conversation) saying() *answer {
	if len(c.results) > 0 {
		c.flush()
	}
	c.answer.some = true
	return &c.answer
}

// answered ends the answer under way, if any.
func (c *conversation) answered() {
	a := c.answer
	if !a.some {
		return
	}
	c.answer = answer{}
	c.order = make(map[string]int, len(a.calls))
	for i, call := range a.calls {
		c.order[call.ID] = i
	}
	_ = c.d.Answer(&sessionlog.LLMCompleted{Message: a.message(), ProviderReplay: a.replay(c.protocol)}, a.tokens)
}

// result adds what a tool gave, which ends an answer.
func (c *conversation) result(r sessionlog.ToolResult) {
	c.answered()
	c.hold(r)
}

// hold adds what a tool gave, and lets the answer go on.
func (c *conversation) hold(r sessionlog.ToolResult) {
	c.results = append(c.results, r)
	if c.held += len(r.Output); c.held > maxHeld {
		c.flush()
	}
}

// flush passes on what came so far.
func (c *conversation) flush() {
	c.answered()
	if results := c.results; len(results) > 0 {
		c.results, c.held = nil, 0
		slices.SortStableFunc(results, func(a, b sessionlog.ToolResult) int { return c.place(a) - c.place(b) })
		_ = c.d.Results(results, nil)
	}
	after := c.after
	c.after = nil
	for _, e := range after {
		e.Base().Turn = c.d.Turn()
		_ = c.emit(e)
	}
}

// place is where a result stands among those of its answer: the model gets them in the order of their calls, whichever was
// there first. Those of other answers come before.
func (c *conversation) place(r sessionlog.ToolResult) int {
	if i, ok := c.order[r.CallID]; ok {
		return i
	}
	return -1
}

// think adds a thought: as text, which may be "", and as the provider's own block, whose memory is borrowed; nil for none.
func (a *answer) think(text string, native []byte) {
	if text != "" {
		a.thoughts = append(a.thoughts, text)
	}
	if native != nil {
		a.native = append(a.native, owned(native))
	}
}

// call adds a call, whose arguments are borrowed.
func (a *answer) call(id, name string, args []byte) {
	a.calls = append(a.calls, sessionlog.ToolCall{ID: id, Name: name, Arguments: orObject(args)})
}

// message is the answer as an event has it.
func (a *answer) message() sessionlog.Message {
	m := sessionlog.Message{Role: "assistant", ToolCalls: a.calls}
	if a.all == nil && len(a.texts) < 2 {
		m.Content = sessionlog.Text(strings.Join(a.texts, ""))
		return m
	}
	a.mix()
	m.Content = list(a.all)
	return m
}

// replay is what the provider needs to go on, nil where the answer has no thoughts.
func (a *answer) replay(protocol string) json.RawMessage {
	if a.native == nil && a.thoughts == nil {
		return nil
	}
	p := &sessionlog.ProviderReplay{
		Protocol: protocol, Model: a.model, NativeBlocks: a.native, ReasoningContent: strings.Join(a.thoughts, "\n"),
	}
	b, err := p.JSON()
	if err != nil {
		return nil // the answer stands without what was thought
	}
	return b
}

// The states of a sub-agent, as a recording tells them; an agent's own words for others stand as they are.
const (
	agentRunning = "running"
	agentJoined  = "joined"
)

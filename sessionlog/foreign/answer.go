package foreign

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/sessionlog"
)

// A talk hands a conversation to a sessionlog.Dialog: it puts an answer together of the pieces that an agent keeps of it, and
// results that come together into one event. The zero answer is none.
type talk struct {
	d        *sessionlog.Dialog
	protocol string // of the provider's blocks, as a provider_replay names it

	said    answer
	results []sessionlog.ToolResult
	held    int                // bytes of results
	order   map[string]int     // the place of each call of the last answer
	after   []sessionlog.Event // to follow the results

	emit func(sessionlog.Event) error
	n    uint64 // events that were emitted
}

// An answer is one turn of the model's.
type answer struct {
	some     bool
	id       string // of the message, where the agent keeps it
	model    string
	tokens   int64
	texts    []string
	blocks   []json.RawMessage // all, in order, once one is no text
	calls    []sessionlog.ToolCall
	thoughts []string
	native   []json.RawMessage // thoughts as the provider wants them back
}

// maxHeld bounds the results that wait for more of theirs, in bytes.
const maxHeld = 16 << 20

// start begins a conversation whose runs are called by id.
func (t *talk) start(id, protocol string, emit func(sessionlog.Event) error) {
	t.emit = func(e sessionlog.Event) error {
		t.n++
		return emit(e)
	}
	t.d, t.protocol = sessionlog.NewDialog(id, t.emit), protocol
}

// then emits an event of the turn under way, behind what its tools gave.
func (t *talk) then(e sessionlog.Event) { t.after = append(t.after, e) }

// compressed says that all that was said so far is a summary for the model from here on.
func (t *talk) compressed(action, summary string) error {
	if err := t.flush(); err != nil {
		return err
	}
	e := &sessionlog.Compressed{Action: action, Summary: summary}
	e.Turn = t.d.Turn()
	if t.n > 0 {
		e.ArchivedSeqRange = []uint64{0, t.n - 1}
	}
	return t.emit(e)
}

// ask begins a run.
func (t *talk) ask(e *sessionlog.RunStarted) error {
	if err := t.flush(); err != nil {
		return err
	}
	return t.d.Ask(e)
}

// result adds what a tool gave, which ends an answer.
func (t *talk) result(r sessionlog.ToolResult) error {
	if err := t.answer(); err != nil {
		return err
	}
	return t.hold(r)
}

// hold adds what a tool gave, and lets the answer go on.
func (t *talk) hold(r sessionlog.ToolResult) error {
	t.results = append(t.results, r)
	if t.held += len(r.Output); t.held > maxHeld {
		return t.flush()
	}
	return nil
}

// saying is the answer under way, to be added to. What tools gave before it is passed on.
func (t *talk) saying() (*answer, error) {
	var err error
	if len(t.results) > 0 {
		err = t.flush()
	}
	t.said.some = true
	return &t.said, err
}

// answer ends the answer under way, if any.
func (t *talk) answer() error {
	if !t.said.some {
		return nil
	}
	e := &sessionlog.LLMCompleted{Message: t.said.message(), ProviderReplay: t.said.replay(t.protocol)}
	tokens := t.said.tokens
	t.order = make(map[string]int, len(t.said.calls))
	for i, c := range t.said.calls {
		t.order[c.ID] = i
	}
	t.said = answer{}
	return t.d.Answer(e, tokens)
}

// flush passes on what came so far.
func (t *talk) flush() error {
	if err := t.answer(); err != nil {
		return err
	}
	if results := t.results; len(results) > 0 {
		t.results, t.held = nil, 0
		t.sort(results)
		if err := t.d.Results(results, nil); err != nil {
			return err
		}
	}
	after := t.after
	t.after = nil
	for _, e := range after {
		e.Base().Turn = t.d.Turn()
		if err := t.emit(e); err != nil {
			return err
		}
	}
	return nil
}

// sort puts results in the order of their calls, in which the model gets them, whichever was there first. Those of other answers
// come before.
func (t *talk) sort(results []sessionlog.ToolResult) {
	place := func(id string) int {
		if i, ok := t.order[id]; ok {
			return i
		}
		return -1
	}
	slices.SortStableFunc(results, func(a, b sessionlog.ToolResult) int { return place(a.CallID) - place(b.CallID) })
}

// end ends the run under way, if any, for a reason as sessionlog.Dialog takes it.
func (t *talk) end(reason string) error {
	if err := t.flush(); err != nil {
		return err
	}
	return t.d.End(reason)
}

// add adds a message's content.
func (a *answer) add(p parts) {
	switch {
	case p.others != nil:
		a.mix()
		a.blocks = append(a.blocks, p.all...)
	case a.blocks != nil:
		a.texts = append(a.texts, p.texts...)
		a.mix()
	default:
		a.texts = append(a.texts, p.texts...)
	}
}

// block adds one that is no text, whose memory is borrowed.
func (a *answer) block(b []byte) {
	a.mix()
	a.blocks = append(a.blocks, clone(b))
}

// mix makes blocks of the texts so far.
func (a *answer) mix() {
	for _, text := range a.texts {
		a.blocks = append(a.blocks, textBlock(text))
	}
	a.texts = nil
}

// think adds a thought: as text, which may be "", and as the provider's own block, whose memory is borrowed; nil for none.
func (a *answer) think(text string, native []byte) {
	if text != "" {
		a.thoughts = append(a.thoughts, text)
	}
	if native != nil {
		a.native = append(a.native, clone(native))
	}
}

// message is the answer as an event has it.
func (a *answer) message() sessionlog.Message {
	m := sessionlog.Message{Role: "assistant", ToolCalls: a.calls}
	switch {
	case a.blocks == nil && len(a.texts) < 2:
		m.Content = sessionlog.Text(strings.Join(a.texts, ""))
	default:
		a.mix()
		m.Content = list(a.blocks)
	}
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

func textBlock(s string) json.RawMessage {
	b := append([]byte(`{"type":"text","text":`), sessionlog.Text(s)...)
	return append(b, '}')
}

func list(items []json.RawMessage) json.RawMessage {
	n := 2
	for _, x := range items {
		n += len(x) + 1
	}
	b := append(make([]byte, 0, n), '[')
	for i, x := range items {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, x...)
	}
	return append(b, ']')
}

package derive

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/deck/account"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A Source is what a session log is derived from.
type Source struct {
	Path string          // of the tape
	ID   string          // what its runs are called by
	exit *recording.Exit // of the program; nil where it is not known
	Open bool            // the run has not ended: it is going on, or its recorder was killed

	Heard func(sessionlog.Event) error // told of each event before its line; nil for nobody
}

// A conversation derives the session log of one tape.
type conversation struct {
	src    *Source
	store  cas.Store
	lanes  *Survey
	main   *modelLane                   // nil where nothing was said
	emit   func(line []byte) error      // nil where nobody wants lines
	heard  func(sessionlog.Event) error // nil for nobody; told of each event, in order, before its line is given
	stale  bool                         // what was derived so far holds no longer, now that more of the tape is known
	failed error                        // of emit or heard: nothing is told after it
	notes  notes
	dialog *sessionlog.Dialog

	lines    int
	buf      []byte
	at       place // of the record that is read
	listener *llm.Listener
	lastID   string          // of the last answer, as the provider calls it
	system   string          // of the main lane
	tools    bool            // the main lane's requests declare some
	asked    int             // messages that the last request of a turn had
	before   int             // messages that the last request of the main lane had, 0 for none
	calls    int             // of the last answer
	began    int             // turn before the run
	known    map[string]bool // ids of calls that were made
	pending  *unsure         // an answer that may not have counted
	waiting  []*modelLane    // lanes that may be those of sub-agents
	subs     []*modelLane    // sub-agents that run
	gated    map[string]bool // actions that wait for leave
	archived int             // the first line that was not compressed
	summary  string          // what a call said that may have been a summary
	quoted   string          // the summary that the request at hand begins with; "" for none
	exit     *recording.Exit // of the program
}

// An unsure is a call of the main lane that is a turn only if the program goes on from it.
type unsure struct {
	said *llm.Said
	at   place
	cut  bool // else it declared no tools where those before did: a summary, unless the history goes on with it
}

// Derive gives the lines of the session log, in order, each valid until the next, and returns what of it could not be read. The errors are those of emit and of
// the tape.
func (src *Source) Derive(emit func(line []byte) error) (*notes, error) {
	d := newConversation(src, NewSurvey())
	d.emit, d.heard = emit, src.Heard
	err := d.run()
	return &d.notes, err
}

func newConversation(src *Source, lanes *Survey) *conversation {
	d := &conversation{src: src, lanes: lanes, store: lanes.Store, known: make(map[string]bool), gated: make(map[string]bool), listener: new(llm.Listener), exit: src.exit}
	d.dialog = sessionlog.NewDialog(src.ID, d.put)
	return d
}

func (d *conversation) run() error {
	if err := d.survey(); err != nil || d.main == nil {
		return err
	}
	t, err := tape.Open(d.src.Path, &tape.ReaderOptions{Tolerant: true})
	if err != nil {
		return err
	}
	defer t.Close()
	d.store = t.Store
	for rec, err := range t.Records() {
		if err == nil {
			err = d.record(rec)
		}
		if err != nil {
			return err
		}
	}
	d.end()
	return d.failed
}

// put gives an event its line. A Dialog gets the error, which is failed, and has no other.
func (d *conversation) put(e sessionlog.Event) error {
	d.putAt(e, d.at)
	return d.failed
}

func (d *conversation) putAt(e sessionlog.Event, at place) {
	if c := e.Base(); c.TapeSeq == nil {
		c.TapeSeq = &at.seq
	}
	if d.failed == nil && d.heard != nil {
		d.failed = d.heard(e)
	}
	if d.failed != nil {
		return
	}
	if d.emit == nil {
		d.lines++
		return
	}
	var err error
	d.buf, err = sessionlog.AppendEnvelope(d.buf[:0], uint64(d.lines), e, &sessionlog.Stamp{G: at.g, TMS: &at.ms})
	if err != nil {
		d.notes.add(at, err)
		return
	}
	d.buf = append(d.buf, '\n')
	d.lines++
	d.failed = d.emit(d.buf)
}

// record takes a record. The error is that of emit or heard.
func (d *conversation) record(rec *tape.Record) error {
	d.at = placeOf(rec)
	switch k := rec.Kind.(type) {
	case *tape.LLMCall:
		d.call(k)
	case *tape.PolicyVerdict:
		d.verdict(k)
	case *tape.ProcessSpawn: // the last one is the program
		if d.src.exit == nil {
			d.exit = &recording.Exit{Code: k.ExitCode, Signal: k.Signal}
		}
	}
	return d.failed
}

func (d *conversation) call(k *tape.LLMCall) {
	switch lane := d.lanes.lanes[k.Lane]; {
	case unmatched(k) || lane == nil:
	case lane.left: // it had not come to its end
		d.stale = true
	case lane == d.main:
		d.mainCall(k)
	default:
		d.besideCall(k, lane)
	}
}

// bodies are those of a call that was answered.
func (d *conversation) bodies(k *tape.LLMCall) (request, response []byte, err error) {
	if request, response, err = account.Bodies(k, d.store); err == nil && k.Response == nil {
		err = errors.New("its answer: was not kept")
	}
	return request, response, err
}

// mainCall reads a call of the main lane.
func (d *conversation) mainCall(k *tape.LLMCall) {
	request, response, err := d.bodies(k)
	var said *llm.Said
	if err == nil {
		said, err = d.listener.Read(k, request, response)
	}
	if errors.Is(err, llm.ErrNoTalk) {
		return
	}
	if err != nil {
		d.notes.add(d.at, err)
		return
	}
	d.settle(said)
	d.agents(k.Arrival)
	d.hear(said)
	d.before = said.Messages
}

// hear takes what is new in a call of the main lane.
func (d *conversation) hear(said *llm.Said) {
	d.system = said.System
	if summary := d.tools && !said.Tools; summary && said.Answer != nil {
		d.pending = &unsure{said: said, at: d.at}
		d.given(said.New)
		return
	}
	d.tools = d.tools || said.Tools
	d.compacted(said)
	d.user(said)
	switch {
	case said.Answer == nil:
		d.notes.say(d.at, "a call that failed, or ended before anything was said, is no turn")
	case !said.Answer.Whole:
		d.pending = &unsure{said: said, at: d.at, cut: true}
	default:
		d.turn(said, d.at)
	}
}

// settle decides on the call before, now that the next one shows what the program made of it.
func (d *conversation) settle(next *llm.Said) {
	p := d.pending
	if p == nil {
		return
	}
	d.pending = nil
	switch id := p.said.Answer.ID; {
	case next == nil || id != "" && next.Follows == id || lastSaid(next) >= 0:
		d.turn(p.said, p.at)
	case p.cut:
		d.notes.say(p.at, "an answer that was cut and that the program did not go on from is no turn")
	default:
		d.notes.say(p.at, "a call without tools that the program did not go on from, as for a summary, is no turn")
		d.summed(p.said)
	}
}

// lastSaid returns the index of the last new message that the model said, -1 for none.
func lastSaid(said *llm.Said) int {
	for i := len(said.New) - 1; i >= 0; i-- {
		if said.New[i].Role == llm.RoleAssistant {
			return i
		}
	}
	return -1
}

// turn is an answer that counts.
func (d *conversation) turn(said *llm.Said, at place) {
	a := said.Answer
	d.lastID, d.calls = a.ID, len(a.Message.ToolCalls)
	for _, c := range a.Message.ToolCalls {
		d.known[c.ID] = true
	}
	d.summed(said)
	was := d.at
	d.at = at
	_ = d.dialog.Answer(&sessionlog.LLMCompleted{
		Common: sessionlog.Common{TapeSeq: &at.seq}, Message: a.Message, ProviderReplay: replayOf(said),
	}, a.Tokens)
	d.at = was
}

// replayOf is what the provider wants back of an answer; nil where it thought nothing.
func replayOf(said *llm.Said) json.RawMessage {
	a := said.Answer
	if a.Reasoning == "" && len(a.Native) == 0 {
		return nil
	}
	p := &sessionlog.ProviderReplay{Protocol: said.Protocol, Model: said.Model, ReasoningContent: a.Reasoning}
	for _, block := range a.Native {
		p.NativeBlocks = append(p.NativeBlocks, block)
	}
	b, err := p.JSON()
	if err != nil {
		return nil // the answer stands without what its provider thought
	}
	return b
}

// given passes on the results in messages, those of calls that this recording saw made, and counts them.
func (d *conversation) given(heard []llm.Heard) int {
	var all []sessionlog.ToolResult
	for i := range heard {
		for _, r := range heard[i].Results {
			if !d.known[r.CallID] {
				d.notes.say(d.at, "the result of a call that was made before the recording, or not in this conversation, is left out")
				continue
			}
			all = append(all, r)
		}
	}
	_ = d.dialog.Results(all, &d.at.seq)
	return len(all)
}

// user takes what the user's side said: results, and prompts.
func (d *conversation) user(said *llm.Said) {
	fresh := said.New[lastSaid(said)+1:]
	d.given(said.New[:len(said.New)-len(fresh)])
	given := d.given(fresh)
	grown := said.Messages > d.asked
	d.asked = said.Messages
	if prompt := d.promptOf(fresh); prompt != nil && d.begins(given, grown) {
		e := &sessionlog.RunStarted{Goal: prompt.Texts[len(prompt.Texts)-1]}
		if d.dialog.Counts().Runs == 0 {
			e.SystemPrompt = said.System
		}
		for _, a := range prompt.Attachments {
			e.Attachments = append(e.Attachments, a)
		}
		d.began = d.dialog.Turn()
		_ = d.dialog.Ask(e)
	}
}

// begins reports whether a text of the user's begins a run. One that comes with results does not, nor one that is sent again
// after a failure.
func (d *conversation) begins(given int, grown bool) bool {
	switch {
	case d.dialog.Counts().Runs == 0:
		return true
	case d.dialog.Turn() == d.began:
		return grown
	case !grown: // the history was replaced in the middle of a run
		return d.calls == 0
	}
	return d.calls == 0 || given == 0
}

// promptOf returns the last message of the user's that has a text; nil for none, and where that is a summary.
func (d *conversation) promptOf(heard []llm.Heard) *llm.Heard {
	for i := len(heard) - 1; i >= 0; i-- {
		m := &heard[i]
		if m.Role != llm.RoleUser || len(m.Texts) == 0 {
			continue
		}
		if d.quoted != "" && strings.Contains(strings.Join(m.Texts, "\n"), d.quoted) {
			return nil // what stands before a summary was asked before
		}
		return m
	}
	return nil
}

// end ends the log.
func (d *conversation) end() {
	d.settle(nil)
	for _, l := range d.waiting { // nothing says that they came to their end
		d.agent(l, agentRunning, l.first)
	}
	if d.src.Open {
		return
	}
	reason := ""
	if d.exit != nil {
		switch {
		case d.exit.Signal != "":
			reason = sessionlog.ReasonInterrupted
		case d.exit.Code != 0:
			reason = sessionlog.ReasonError
		default:
			reason = sessionlog.ReasonCompleted
		}
	}
	_ = d.dialog.End(reason)
}

// CallsOf lists the tools that the model asked for in the record of a call, whose payloads are in store; none of any other record,
// and of one whose payloads are not there.
func CallsOf(rec *tape.Record, store cas.Store) []sessionlog.ToolCall {
	k, ok := rec.Kind.(*tape.LLMCall)
	if !ok {
		return nil
	}
	request, response, err := account.Bodies(k, store)
	if err != nil {
		return nil
	}
	said, err := llm.ReadCall(k, request, response)
	if err != nil || said.Answer == nil {
		return nil
	}
	return said.Answer.Message.ToolCalls
}

// minSummary is how long, in bytes, what a model said must be to be known again as a summary: a title may stand anywhere.
const minSummary = 40

// summed notes what a call beside the turns said: it may be a summary of the conversation.
func (d *conversation) summed(said *llm.Said) {
	if said.Answer == nil || len(said.Answer.Message.ToolCalls) > 0 {
		return
	}
	var text string
	if json.Unmarshal(said.Answer.Message.Content, &text) != nil {
		return // it is no text alone
	}
	if text = strings.TrimSpace(text); len(text) >= minSummary {
		d.summary = text
	}
}

// compacted tells that the history was replaced by a summary: it is shorter than it was, and the user's side says, word for word,
// what a call beside the turns had said. A history that became shorter otherwise tells nothing.
func (d *conversation) compacted(said *llm.Said) {
	d.quoted = ""
	if d.summary == "" || d.lines == d.archived || said.Messages >= d.before && d.before > 0 {
		return
	}
	quotes := func(text string) bool { return strings.Contains(text, d.summary) }
	if !slices.ContainsFunc(said.New, func(m llm.Heard) bool { return m.Role == llm.RoleUser && slices.ContainsFunc(m.Texts, quotes) }) {
		return
	}
	e := &sessionlog.Compressed{
		Common: sessionlog.Common{Turn: d.dialog.Turn()}, ArchivedSeqRange: []uint64{uint64(d.archived), uint64(d.lines - 1)},
		Summary: d.summary, PreservedRefs: []string{},
	}
	d.summary, d.quoted = "", d.summary
	d.putAt(e, d.at)
	d.archived = d.lines
}

// policyGate is who answers where no person does.
const policyGate = "policy_gate"

// A decision is what a policy says of an action.
type decision uint8

const (
	unclear decision = iota
	denied
	asks // a person, and the action waits
	allowed
)

var decisions = map[string]decision{
	"deny": denied, "denied": denied, "reject": denied, "rejected": denied,
	"escalate": asks, "escalated": asks, "ask": asks, "park": asks, "parked": asks,
	"allow": allowed, "allowed": allowed, "approve": allowed, "approved": allowed,
}

// verdict turns a decision of the policy into events: of a denial tool_denied, of a question tool_gated and permission_requested. The answer to
// what waited is permission_resolved. Anything else is left out and said: nothing is guessed about a permission.
func (d *conversation) verdict(k *tape.PolicyVerdict) {
	word, reason := verdictOf(k.Verdict)
	said := decisions[strings.ToLower(word)]
	base := sessionlog.Common{Turn: d.dialog.Turn()}
	var events []sessionlog.Event
	if d.gated[k.ActionID] && (said == denied || said == allowed) {
		events = append(events, &sessionlog.PermissionResolved{Common: base, Approved: said == allowed, Responder: policyGate})
	}
	switch said {
	case denied:
		events = append(events, &sessionlog.ToolDenied{Common: base, CallID: k.ActionID, ToolName: k.Tool, Reason: reason})
	case asks:
		events = append(events, &sessionlog.ToolGated{Common: base, CallID: k.ActionID, Tool: k.Tool, Reason: reason},
			&sessionlog.PermissionRequested{Common: base, Tool: k.Tool, Arguments: d.parameters(k), Reason: reason})
	case unclear:
		d.notes.say(d.at, "a verdict that is none of allow, deny and escalate is left out")
	}
	d.gated[k.ActionID] = said == asks
	for _, e := range events {
		d.putAt(e, d.at)
	}
}

// parameters are those of the action as text; "" where the tape has their digest alone.
func (d *conversation) parameters(k *tape.PolicyVerdict) string {
	if k.ParamsPayload == nil {
		return ""
	}
	b, err := account.Body(k.ParamsPayload, d.store)
	if err != nil {
		d.notes.add(d.at, err)
		return ""
	}
	return strings.ToValidUTF8(string(b), "\uFFFD")
}

// verdictOf reads a verdict, which is a word, or an object that has it as kind, decision or status, and a reason.
func verdictOf(verdict []byte) (word, reason string) {
	if json.Unmarshal(verdict, &word) == nil {
		return word, ""
	}
	var v map[string]json.RawMessage
	_ = json.Unmarshal(verdict, &v) // what is neither says nothing
	for _, key := range []string{"kind", "decision", "status"} {
		var said string
		if json.Unmarshal(v[key], &said) == nil && decisions[strings.ToLower(said)] != unclear {
			word = said
		}
	}
	_ = json.Unmarshal(v["reason"], &reason)
	return word, reason
}

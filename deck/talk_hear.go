package deck

import (
	"encoding/json"
	"strings"

	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
)

// hear takes what is new in a call of the main lane.
func (d *talk) hear(said *llm.Said) error {
	d.system = said.System
	if summary := d.tools && !said.Tools; summary && said.Answer != nil {
		d.pending = &unsure{said: said, at: d.at}
		return d.results(said)
	}
	d.tools = d.tools || said.Tools
	if err := d.compacted(said); err != nil {
		return err
	}
	if err := d.user(said); err != nil {
		return err
	}
	switch {
	case said.Answer == nil:
		d.notes.say(d.at, "a call that failed, or ended before anything was said, is no turn")
	case !said.Answer.Whole:
		d.pending = &unsure{said: said, at: d.at, cut: true}
	default:
		return d.turn(said, d.at)
	}
	return nil
}

// settle decides on the call before, now that the next one shows what the program made of it.
func (d *talk) settle(next *llm.Said) error {
	p := d.pending
	if p == nil {
		return nil
	}
	d.pending = nil
	id := p.said.Answer.ID
	if next == nil || id != "" && next.Follows == id || lastSaid(next) >= 0 {
		return d.turn(p.said, p.at)
	}
	if p.cut {
		d.notes.say(p.at, "an answer that was cut and that the program did not go on from is no turn")
	} else {
		d.notes.say(p.at, "a call without tools that the program did not go on from, as for a summary, is no turn")
		d.summed(p.said)
	}
	return nil
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
func (d *talk) turn(said *llm.Said, at place) error {
	a := said.Answer
	d.lastID, d.calls = a.ID, len(a.Message.ToolCalls)
	for _, c := range a.Message.ToolCalls {
		d.known[c.ID] = true
	}
	d.summed(said)
	was := d.at
	d.at = at
	err := d.dialog.Answer(&sessionlog.LLMCompleted{
		Common: sessionlog.Common{TapeSeq: &at.seq}, Message: a.Message, ProviderReplay: replayOf(said),
	}, a.Tokens)
	d.at = was
	return err
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

// results passes on what tools gave, and reports how many results of calls of this recording there were.
func (d *talk) results(said *llm.Said) error {
	_, err := d.given(said.New)
	return err
}

// given passes on the results in messages, those of calls that this recording saw made.
func (d *talk) given(heard []llm.Heard) (n int, err error) {
	var all []sessionlog.ToolResult
	for i := range heard {
		for _, r := range heard[i].Results {
			if !d.known[r.CallID] {
				d.notes.say(d.at, "the result of a call that was made before the recording, or not in this conversation, is left out")
				continue
			}
			n++
			all = append(all, r)
		}
	}
	if len(all) == 0 {
		return 0, nil
	}
	return n, d.dialog.Results(all, &d.at.seq)
}

// user takes what the user's side said: results, and prompts.
func (d *talk) user(said *llm.Said) error {
	fresh := said.New[lastSaid(said)+1:]
	if _, err := d.given(said.New[:len(said.New)-len(fresh)]); err != nil {
		return err
	}
	given, err := d.given(fresh)
	if err != nil {
		return err
	}
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
		return d.dialog.Ask(e)
	}
	return nil
}

// begins reports whether a text of the user's begins a run. One that comes with results does not, nor one that is sent again
// after a failure.
func (d *talk) begins(given int, grown bool) bool {
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
func (d *talk) promptOf(heard []llm.Heard) *llm.Heard {
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
func (d *talk) end() error {
	if err := d.settle(nil); err != nil {
		return err
	}
	for _, l := range d.waiting { // nothing says that they came to their end
		if err := d.agent(l, agentRunning, l.first); err != nil {
			return err
		}
	}
	if d.src.open {
		return nil
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
	return d.dialog.End(reason)
}

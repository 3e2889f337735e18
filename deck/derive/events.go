package derive

import (
	"encoding/json"
	"strings"

	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/deck/account"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
	"github.com/tapedeck-dev/tapedeck/tape"
)

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
func (d *conversation) compacted(said *llm.Said) error {
	d.quoted = ""
	if d.summary == "" || d.lines == d.archived || said.Messages >= d.before && d.before > 0 || !d.quotes(said) {
		return nil
	}
	e := &sessionlog.Compressed{
		Common: sessionlog.Common{Turn: d.dialog.Turn()}, ArchivedSeqRange: []uint64{uint64(d.archived), uint64(d.lines - 1)},
		Summary: d.summary, PreservedRefs: []string{},
	}
	d.summary, d.quoted = "", d.summary
	err := d.put(e)
	d.archived = d.lines
	return err
}

// quotes reports whether a new message of the user's holds the summary.
func (d *conversation) quotes(said *llm.Said) bool {
	for i := range said.New {
		for _, text := range said.New[i].Texts {
			if said.New[i].Role == llm.RoleUser && strings.Contains(text, d.summary) {
				return true
			}
		}
	}
	return false
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
func (d *conversation) verdict(k *tape.PolicyVerdict) error {
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
		if err := d.put(e); err != nil {
			return err
		}
	}
	return nil
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

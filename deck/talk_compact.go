package deck

import (
	"encoding/json"
	"strings"

	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
)

// minSummary is how long, in bytes, what a model said must be to be known again as a summary: a title may stand anywhere.
const minSummary = 40

// summed notes what a call beside the turns said: it may be a summary of the conversation.
func (d *talk) summed(said *llm.Said) {
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
func (d *talk) compacted(said *llm.Said) error {
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
func (d *talk) quotes(said *llm.Said) bool {
	for i := range said.New {
		for _, text := range said.New[i].Texts {
			if said.New[i].Role == llm.RoleUser && strings.Contains(text, d.summary) {
				return true
			}
		}
	}
	return false
}

package runview

import (
	"fmt"
	"strings"
)

// A Mark says how a turn came out, as far as the daemon knows: most tools are judged by nobody.
type Mark uint8

// The marks.
const (
	Ran      Mark = iota // a tool gave its output; nobody judged it
	Said                 // no tool was called
	Passed               // exit 0, or a check that passed
	Failed               // another exit, a check that failed, or a call that gave no output
	TimedOut             // the program was ended by its deadline
	Rejected             // a policy denied it: the tool never ran
)

var signs = [...]struct {
	sign  string
	style style
}{
	Ran: {"•", plain}, Said: {"›", dim}, Passed: {"✓", green}, Failed: {"✗", red}, TimedOut: {"!", yellow}, Rejected: {"⊘", refused},
}

// A Turn is what can be shown of one.
type Turn struct {
	Index  int
	Tool   string // "" for none
	Prompt string
	Params []Field
	Output []Field
	Mark   Mark
	Label  string // of the mark, in a few characters: "exit 1"
	Rule   string // of a policy's denial
	Param  string // which it spoke against, "" for none
	Reason string
	Error  *Field // why there is no output; nil where nothing is said
	Size   int    // bytes of the output
}

// verb is what a turn without a tool is listed as.
func (t *Turn) verb() string {
	if t.Tool == "" {
		return "(no tool)"
	}
	return t.Tool
}

// gist is a turn on one line: what was asked, and what came of it.
func (t *Turn) gist() string {
	const most = 600 // bytes: no line shows more
	asked := t.Prompt
	if asked == "" {
		asked = inline(t.Params, most)
	}
	came := inline(t.Output, most)
	if t.Error != nil {
		came = clip(t.Error.Text, most)
	}
	asked, came = oneLine(clip(asked, most)), oneLine(came)
	switch {
	case t.Mark == Rejected: // why it was is what people look for
		return strings.TrimSuffix(oneLine(t.denial())+" ← "+asked, " ← ")
	case came == "":
		return asked
	case asked == "":
		return "→ " + came
	}
	return asked + " → " + came
}

// denial says who denied a turn and why.
func (t *Turn) denial() string {
	text := t.Rule
	if t.Param != "" {
		text += fmt.Sprintf(" (%s)", t.Param)
	}
	if t.Reason != "" {
		text += ": " + t.Reason
	}
	return text
}

// oneLine joins the lines of a text.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

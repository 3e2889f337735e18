package runview

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/runtrace"
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

// MakeTurn is what can be shown of a turn; keep bytes are kept of each text, 0 keeps all.
func MakeTurn(t *runtrace.Turn, keep int) Turn {
	v := Turn{Index: t.Index, Tool: textAt(t.Tool), Prompt: textAt(t.Prompt), Size: len(t.Output)}
	v.Params, v.Output = fieldsOf(t.Parameters, keep), fieldsOf(t.Output, keep)
	if keep > 0 {
		v.Tool, v.Prompt = strings.Clone(clip(v.Tool, keep)), strings.Clone(clip(v.Prompt, keep))
	}
	if t.Error != nil {
		v.Error = &Field{Name: "error", Text: *t.Error, Len: len(*t.Error)}
		if keep > 0 {
			v.Error.Text = strings.Clone(clip(*t.Error, keep))
		}
	}
	v.judge(t)
	return v
}

// judge says how the turn came out.
func (v *Turn) judge(t *runtrace.Turn) {
	switch {
	case t.PolicyRejected != nil:
		v.Mark, v.Label = Rejected, "rejected"
		v.Rule, v.Param, v.Reason = t.PolicyRejected.Rule, textAt(t.PolicyRejected.Param), t.PolicyRejected.Reason
	case t.CLIOutcome != nil && t.CLIOutcome.Outcome == runtrace.OutcomeTimeout:
		v.Mark, v.Label = TimedOut, "timeout"
	case t.VerifierVerdict == runtrace.VerdictPass:
		v.Mark, v.Label = Passed, "pass"
	case t.VerifierVerdict == runtrace.VerdictFail:
		v.Mark, v.Label = Failed, "fail"
	case t.CLIOutcome != nil && t.CLIOutcome.Code != nil:
		v.Mark, v.Label = Passed, "exit "+strconv.Itoa(*t.CLIOutcome.Code)
		if *t.CLIOutcome.Code != 0 {
			v.Mark = Failed
		}
	case t.CLIOutcome != nil:
		v.Label = clip(t.CLIOutcome.Outcome, 2*labelWide)
	case t.Error != nil:
		v.Mark, v.Label = Failed, "failed"
	case t.Tool == nil:
		v.Mark = Said
	}
}

// asked is what the turn was given.
func (t *Turn) asked() []Field {
	var out []Field
	if t.Prompt != "" {
		out = append(out, Field{Name: "prompt", Text: t.Prompt, Len: len(t.Prompt)})
	}
	for _, f := range t.Params {
		if f.Name != "prompt" || f.Text != t.Prompt { // said already
			out = append(out, f)
		}
	}
	return out
}

// came is what came of the turn, under names that show it.
func (t *Turn) came() []Field {
	if t.Mark == Rejected {
		return []Field{{Name: "→ denied", Text: t.denial(), Len: len(t.denial())}}
	}
	out := make([]Field, 0, len(t.Output)+1)
	for _, f := range t.Output {
		f.Name = strings.TrimSuffix("→ "+f.Name, " ")
		out = append(out, f)
	}
	if t.Error != nil {
		f := *t.Error
		f.Name = "→ " + f.Name
		out = append(out, f)
	}
	return out
}

// Line is a turn as one line of text for a place that is no terminal. Nothing of it is cut but what is very long.
func (t *Turn) Line(colour bool) string {
	g := grid{index: 4, label: labelWide, tool: 16, gap: 2}
	return g.listRow(newRow(unlimited, colour), t, false).String()
}

package compare

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/axis/files"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/deck/account"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
)

// A Difference is the first turn at which a recording is another than the first one.
type Difference struct {
	Turn         int     `json:"turn"` // of its conversation, from 1
	Conversation string  `json:"conversation"`
	What         What    `json:"what"`
	Seq          *uint64 `json:"seq"`       // of the record in the first recording; null where it has no such turn
	OtherSeq     *uint64 `json:"other_seq"` // the same of this one
	First        string  `json:"first"`     // what stands there, for people; "" where nothing does
	Other        string  `json:"other"`
}

// What is what two turns differ in, the first of these that they do.
type What string

// What turns differ in.
const (
	ByModel  What = "model"
	ByPrompt What = "prompt"     // what was asked: other messages, system text or tools
	ByParams What = "parameters" // what else was asked for, such as a temperature
	ByError  What = "error"      // one was answered, the other was not
	ByTools  What = "tools"      // the answers ask for other tools, or with other arguments
	ByAnswer What = "answer"     // the answers say something else
	ByEnd    What = "end"        // one of them has no such turn
)

// A Tool is a tool that the models of a recording asked for.
type Tool struct {
	Name  string `json:"name"`
	Calls int    `json:"calls"`
	Other []Call `json:"other_arguments"` // calls with arguments that the first recording has none with, three at most
	More  int    `json:"more"`            // further ones
}

// A Call is one call of a tool.
type Call struct {
	Turn      int    `json:"turn"`
	Arguments string `json:"arguments"` // their first words
}

const maxOther = 3

// turnsOf are the answered turns of a conversation, or the last attempts of those that were not.
type turnsOf struct {
	lane  string
	steps []*account.Turn
}

// differences finds where each row leaves the first, and what it does from there on.
func (c *Comparison) differences() {
	first := c.Rows[0]
	var after []*account.Turn // of the first, from the earliest difference on
	for i, r := range c.Rows[1:] {
		l := leave(first.account, r.account)
		r.Leaves, r.Same, r.After = l.first, l.same, spent(l.after[1])
		if i == 0 || r.Same < c.Same {
			c.Same, after = r.Same, l.after[0]
		}
	}
	first.Same, first.After = c.Same, spent(after)
	for _, r := range c.Rows {
		r.Tools = toolsOf(r.account, argumentsOf(first.account))
	}
}

// pair pairs the conversations of two recordings. Where one of a pair has come to its end and the other recording has a conversation that
// none of the first's is paired with, it goes on there: another system text makes another lane.
func pair(a, b *account.Account) (pairs [][2]turnsOf) {
	taken := make(map[string]bool)
	byLane := make(map[string]*account.Conversation)
	for _, x := range b.Conversations {
		byLane[x.Lane] = x
	}
	for _, x := range a.Conversations {
		taken[x.Lane] = byLane[x.Lane] != nil
	}
	var left []*account.Conversation
	for _, x := range b.Conversations {
		if !taken[x.Lane] {
			left = append(left, x)
		}
	}
	next := func(t *turnsOf) {
		if len(left) > 0 {
			t.lane = cmp.Or(t.lane, left[0].Lane)
			t.steps = append(t.steps, left[0].Steps()...)
			left = left[1:]
		}
	}
	for _, x := range a.Conversations {
		p := [2]turnsOf{{x.Lane, x.Steps()}, {}}
		if y := byLane[x.Lane]; y != nil {
			p[1] = turnsOf{y.Lane, y.Steps()}
		}
		if len(p[1].steps) < len(p[0].steps) {
			next(&p[1])
		}
		pairs = append(pairs, p)
	}
	for len(left) > 0 {
		p := [2]turnsOf{}
		next(&p[1])
		pairs = append(pairs, p)
	}
	return pairs
}

// A leaving is how one recording leaves another.
type leaving struct {
	first *Difference        // by its place on the tapes; nil for none
	same  int                // turns before the first difference of each conversation
	after [2][]*account.Turn // the others of both
}

func leave(a, b *account.Account) (l leaving) {
	for _, p := range pair(a, b) {
		n := 0
		for n < len(p[0].steps) && n < len(p[1].steps) && whatDiffers(p[0].steps[n], p[1].steps[n]) == "" {
			n++
		}
		l.same += n
		for i := range p {
			l.after[i] = append(l.after[i], p[i].steps[min(n, len(p[i].steps)):]...)
		}
		if d := differenceAt(p, n); d != nil && (l.first == nil || d.before(l.first)) {
			l.first = d
		}
	}
	return l
}

// before reports whether d comes before e: in the first recording, or where that has no such turn in the other.
func (d *Difference) before(e *Difference) bool {
	if d.Seq != nil && e.Seq != nil {
		return *d.Seq < *e.Seq
	}
	if d.OtherSeq != nil && e.OtherSeq != nil {
		return *d.OtherSeq < *e.OtherSeq
	}
	return d.Seq != nil
}

// differenceAt is what differs behind the first n turns of two conversations; nil for nothing.
func differenceAt(p [2]turnsOf, n int) *Difference {
	d := &Difference{Turn: n + 1, Conversation: cmp.Or(p[0].lane, p[1].lane), What: ByEnd}
	var turns [2]*account.Turn
	for i := range p {
		if n < len(p[i].steps) {
			turns[i] = p[i].steps[n]
		}
	}
	switch {
	case turns[0] == nil && turns[1] == nil:
		return nil
	case turns[0] != nil && turns[1] != nil:
		d.What = whatDiffers(turns[0], turns[1])
	}
	if turns[0] != nil {
		d.Seq, d.First = &turns[0].Seq, shown(turns[0], d.What)
	}
	if turns[1] != nil {
		d.OtherSeq, d.Other = &turns[1].Seq, shown(turns[1], d.What)
	}
	return d
}

// whatDiffers says what two turns differ in first; "" for nothing.
func whatDiffers(a, b *account.Turn) What {
	switch {
	case a.Model != b.Model:
		return ByModel
	case a.Asked != b.Asked, !slices.Equal(a.Changed, b.Changed):
		return ByPrompt
	case a.Params != b.Params:
		return ByParams
	case a.Answered() != b.Answered():
		return ByError
	case !slices.Equal(a.Tools, b.Tools):
		return ByTools
	case a.Said != b.Said:
		return ByAnswer
	}
	return ""
}

// shown is what of a turn a difference is about.
func shown(t *account.Turn, what What) string {
	switch what {
	case ByModel:
		return t.Model
	case ByPrompt:
		if len(t.Changed) > 0 {
			return t.Prompt + " (the fork changed: " + strings.Join(t.Changed, ", ") + ")"
		}
		return t.Prompt
	case ByParams:
		return "parameters " + t.Params.Short()
	case ByError:
		if !t.Answered() {
			return t.Error
		}
	case ByTools:
		return cmp.Or(toolWords(t.Tools), "no tool")
	case ByEnd:
		return cmp.Or(toolWords(t.Tools), t.Answer, t.Prompt)
	}
	return cmp.Or(t.Answer, toolWords(t.Tools))
}

// toolWords are calls of tools in words; "" for none.
func toolWords(tools []account.ToolCall) string {
	words := make([]string, len(tools))
	for i, t := range tools {
		words[i] = t.Name + " " + t.Arguments
	}
	return strings.Join(words, "; ")
}

// spent adds up turns.
func spent(turns []*account.Turn) Spent {
	s := Spent{}
	known, usd := true, 0.0
	for _, t := range turns {
		if t.Answered() {
			s.Turns++
		}
		s.Tools += len(t.Tools)
		s.LatencyMS += t.LatencyMS
		switch {
		case t.Usage != nil:
			s.InputTokens += t.Usage.InputTokens
			s.OutputTokens += t.Usage.OutputTokens
		case t.Answered():
			s.uncounted++
		}
		switch {
		case t.CostUSD != nil:
			usd += *t.CostUSD
		case t.Answered():
			known = false
		}
	}
	if known {
		s.CostUSD = &usd
	}
	return s
}

// An argument is a tool and a digest of what it was called with.
type argument struct {
	tool   string
	digest cas.Digest
}

func argumentsOf(a *account.Account) map[argument]int {
	all := make(map[argument]int)
	for _, c := range a.Conversations {
		for _, t := range c.Turns {
			for _, call := range t.Tools {
				all[argument{call.Name, call.Digest}]++
			}
		}
	}
	return all
}

// toolsOf lists the tools of a recording by their first calls. had is what the first recording called; it is used up.
func toolsOf(a *account.Account, had map[argument]int) []Tool {
	out := []Tool{}
	for _, c := range a.Conversations {
		for _, t := range c.Turns {
			for _, call := range t.Tools {
				i := slices.IndexFunc(out, func(t Tool) bool { return t.Name == call.Name })
				if i < 0 {
					i = len(out)
					out = append(out, Tool{Name: call.Name, Other: []Call{}})
				}
				out[i].Calls++
				key := argument{call.Name, call.Digest}
				if had[key]--; had[key] >= 0 {
					continue
				}
				if len(out[i].Other) == maxOther {
					out[i].More++
					continue
				}
				out[i].Other = append(out[i].Other, Call{t.Number, call.Arguments})
			}
		}
	}
	return out
}

// A File is one that a run left otherwise than the first one. A state is the mode and the begin of the digest, "" where nothing stands.
type File struct {
	Path  string `json:"path"`
	First string `json:"first"`
	Other string `json:"other"`
}

// files finds what each run left otherwise than the first: among the files that either changed.
func (c *Comparison) files() error {
	first, err := endOf(c.Rows[0], nil)
	if err != nil {
		return err
	}
	c.Rows[0].found = first.found
	var others []int
	for i, r := range c.Rows[1:] {
		own, err := endOf(r, first)
		if err != nil {
			return err
		}
		if r.found = own.found; r.found != first.found {
			others = append(others, i+2)
		}
		paths := slices.Sorted(maps.Keys(r.account.Files))
		for path := range first.changed {
			if _, too := r.account.Files[path]; !too {
				paths = append(paths, path)
			}
		}
		slices.Sort(paths)
		for _, path := range paths {
			if was, is := first.state(path), own.state(path); was != is {
				r.Files = append(r.Files, File{path, was, is})
			}
		}
	}
	if len(others) > 0 {
		c.Notes = append(c.Notes, fmt.Sprintf("%s found another work tree than 1: files that neither run changed are not compared", numbers(others)))
	}
	return nil
}

// An end is what a run left in its work tree.
type end struct {
	changed map[string]account.File
	before  *files.Tree // nil where none was kept
	digest  cas.Digest  // of the file that holds it
	found   cas.Digest  // of before, without times
}

// endOf reads the work tree of a recording as it was found. That of forks is their parent's: where it is that of first it is read once.
func endOf(r *Row, first *end) (*end, error) {
	e := &end{changed: r.account.Files}
	b, err := os.ReadFile(filepath.Join(r.rec.Dir, recording.TreeName))
	if err != nil {
		return e, nil // there is none: what was not changed is not known
	}
	e.digest = cas.Sum(b)
	if first != nil && first.digest == e.digest {
		e.before, e.found = first.before, first.found
		return e, nil
	}
	if e.before, err = r.rec.Tree(); err != nil || e.before == nil {
		return e, err
	}
	entries := make([]files.Entry, len(e.before.Entries))
	for i, f := range e.before.Entries {
		f.MTime = 0
		entries[i] = f
	}
	e.found = cas.Sum(fmt.Append(nil, entries))
	return e, nil
}

// state is how a run left a file.
func (e *end) state(path string) string {
	if f, ok := e.changed[path]; ok {
		if f == (account.File{}) {
			return ""
		}
		return f.Mode + " " + f.Digest.Short()
	}
	if e.before == nil {
		return "as found"
	}
	was, ok := e.before.Lookup(path)
	switch {
	case !ok:
		return ""
	case was.Target != "":
		return was.Mode.Taped() + " " + cas.Sum([]byte(was.Target)).Short()
	}
	return was.Mode.Taped() + " " + was.Digest.Short()
}

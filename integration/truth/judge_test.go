package truth

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
)

// An outcome is what one replay came to.
type outcome struct {
	Seed    uint64 `json:"seed"`
	Index   uint64 `json:"index"`
	Mode    mode   `json:"mode"`
	Lang    string `json:"language"`
	Change  int    `json:"change"` // its number among the program's, -1 of an unchanged replay, -2 of one with its command line given
	Kind    string `json:"kind"`
	Place   string `json:"place"`
	Origin  string `json:"origin,omitempty"`
	Want    want   `json:"want"`
	Why     string `json:"why,omitempty"`
	Verdict string `json:"verdict"` // of the words below
	Said    string `json:"said,omitempty"`
}

// What a verdict can be, by the replay's status and what it said.
const (
	green     = "green"          // status 0, and no note names the change
	greenNote = "green, noted"   // status 0, and a note that was not there before names it
	red       = "red"            // status 2
	redNamed  = "red, named"     // status 2, and the first divergence names it
	broken    = "broken"         // another status
	unjudged  = "not judged"     // the unchanged program is red
	unmade    = "not recordable" // recording it failed
)

// isRed reports whether there was a replay and it said that something differs.
func (o *outcome) isRed() bool { return o != nil && (o.Verdict == red || o.Verdict == redNamed) }

// wrong reports whether the verdict is another than the documents say.
func (o *outcome) wrong() bool {
	switch {
	case o.Verdict == unjudged:
		return false
	case o.Verdict == broken || o.Verdict == unmade:
		return true
	case o.Want == harmless:
		return o.isRed()
	case o.Want == noted:
		return o.Verdict == green
	case o.Want == caught:
		return !o.isRed()
	}
	return false
}

// A trial is one program: recorded, replayed as it is, and with changes.
type trial struct {
	*stage
	with []*language
	how  int // how many changes; below 0 none at all
	all  bool
}

// run tries the program of a seed and an index.
func (t *trial) run(ctx context.Context, seed, index uint64, m mode) ([]*outcome, error) {
	p := generate(seed, index, m, t.with)
	b, err := t.box(p)
	if err != nil {
		return nil, err
	}
	if err := b.record(ctx); err != nil {
		o := p.outcome(-1)
		o.Verdict, o.Said = unmade, err.Error()
		return []*outcome{o}, ctx.Err()
	}
	plain := b.replay(ctx, "work", b.env(p), nil)
	outside := append(slices.Clone(b.env(p)), "TZ=Asia/Tokyo", "LANG=de_DE.UTF-8", "HOME="+filepath.Join(b.top, "elsewhere"))
	outcomes := []*outcome{p.unchanged(plain, "a moment later"), p.unchanged(b.replay(ctx, "elsewhere", outside, nil), "elsewhere: TZ, LANG, HOME, directory")}
	steady := outcomes[0].Verdict != red && outcomes[1].Verdict != red
	controls := map[string]*outcome{}
	for _, n := range t.choose(p) {
		q := generate(seed, index, m, t.with)
		o := q.outcome(n)
		outcomes = append(outcomes, o)
		if !steady || b.control(ctx, o.Origin, controls).isRed() {
			o.Verdict = unjudged
			continue
		}
		r, err := b.changed(ctx, q, n)
		if err != nil {
			return outcomes, err
		}
		o.judge(q.changes[n].words, r, plain)
	}
	for _, c := range controls {
		outcomes = append(outcomes, c)
	}
	return outcomes, ctx.Err()
}

// control is a replay of the program as it was recorded, given a command line as those changes are that reach it so, or nil where none
// is given: the program's own path and arguments are a note. What is red without a change tells nothing of one.
func (b *box) control(ctx context.Context, origin string, known map[string]*outcome) *outcome {
	command := b.given(b.program, origin)
	if command == nil {
		return nil
	}
	if known[origin] == nil {
		o := b.program.outcome(-1)
		o.Change, o.Kind, o.Place, o.Why = -2, "the same command line, given", "program: "+origin, "its own path and arguments are a note"
		r := b.replay(ctx, "work", b.env(b.program), command)
		o.judge(nil, r, r)
		known[origin] = o
	}
	return known[origin]
}

// given is the command line by which a user hands p another argument or variable, or nil.
func (b *box) given(p *program, origin string) []string {
	switch origin {
	case inArguments:
		return b.command(p)
	case inEnvironment:
		command := []string{"env"}
		for _, f := range p.environment {
			command = append(command, f.name()+"="+f.value)
		}
		return append(command, b.command(p)...)
	}
	return nil
}

// choose takes some of the changes of p: as many of the constants as of the rest, and one that nothing compares.
func (t *trial) choose(p *program) []int {
	var constants, others, aside []int
	for i, c := range p.changes {
		switch {
		case c.want == unseen || c.want == harmless:
			aside = append(aside, i)
		case slices.ContainsFunc(forms, func(f form) bool { return f.kind == c.kind }):
			constants = append(constants, i)
		default:
			others = append(others, i)
		}
	}
	if t.how < 0 {
		return nil
	}
	if t.all {
		return slices.Concat(constants, others, aside)
	}
	r := rand.New(rand.NewPCG(p.seed, ^p.index))
	for _, s := range [][]int{constants, others, aside} {
		r.Shuffle(len(s), func(i, j int) { s[i], s[j] = s[j], s[i] })
	}
	half := min(len(constants), t.how-min(len(others), t.how/2))
	return slices.Concat(constants[:half], others[:min(len(others), t.how-half)], aside[:min(len(aside), 1)])
}

// changed makes the change numbered n of q, which is the program anew, and replays as a user would: with the source edited, or
// with other arguments, or another environment, or other settings in HOME.
func (b *box) changed(ctx context.Context, q *program, n int) (result, error) {
	was := b.program
	c := q.changes[n]
	c.apply()
	if err := b.source(q); err != nil {
		return result{}, err
	}
	defer b.source(was)
	if c.origin == inSource && q.source() == was.source() {
		return result{}, fmt.Errorf("%d/%d: the change %q of %q changes nothing", q.seed, q.index, c.kind, c.place)
	}
	return b.replay(ctx, "work", b.env(was), b.given(q, c.origin)), nil
}

func (p *program) outcome(n int) *outcome {
	o := &outcome{Seed: p.seed, Index: p.index, Mode: p.mode, Lang: p.language.name, Change: n, Want: harmless}
	if n >= 0 {
		c := p.changes[n]
		o.Kind, o.Place, o.Origin, o.Want, o.Why = c.kind, c.place, c.origin, c.want, c.why
	}
	return o
}

// unchanged judges a replay of the program as it was recorded: it is green, or the alarm is false.
func (p *program) unchanged(r result, how string) *outcome {
	o := p.outcome(-1)
	o.Kind, o.Place = "nothing", how
	if len(p.varies) > 0 {
		o.Kind = strings.Join(p.varies, " + ")
	}
	o.judge(nil, r, r)
	return o
}

// judge takes the verdict of r on a change that words name; plain is that on the unchanged program.
func (o *outcome) judge(words []string, r, plain result) {
	switch {
	case r.Status == 2 && len(r.Report.Divergences) > 0 && names(r.Report.Divergences[0].All, words):
		o.Verdict = redNamed
	case r.Status == 2:
		o.Verdict = red
	case r.Status != 0:
		o.Verdict, o.Said = broken, fmt.Sprintf("status %d: %s", r.Status, r.Stderr)
		return
	case newNote(words, r, plain):
		o.Verdict = greenNote
	default:
		o.Verdict = green
	}
	if len(r.Report.Divergences) > 0 {
		d := r.Report.Divergences[0]
		o.Said = d.Category + ": " + d.Message + "; " + d.Cause
	} else if len(r.Report.Notes) > 0 {
		o.Said = strings.Join(r.Report.Notes, "; ")
	}
}

// names reports whether one of words stands in text, as it is or as it is written in a URL.
func names(text string, words []string) bool {
	lower := strings.ToLower(text)
	for _, w := range words {
		if strings.Contains(text, w) || strings.Contains(text, url.QueryEscape(w)) || strings.Contains(text, url.PathEscape(w)) {
			return true
		}
		if w == strings.ToLower(w) && strings.Contains(lower, w) {
			return true
		}
	}
	return false
}

// newNote reports whether something in the report names the change that did not stand in that of the unchanged program. The command
// line, which the user has just typed, names nothing.
func newNote(words []string, r, plain result) bool {
	before := texts(plain.Report.All)
	for t := range texts(r.Report.All) {
		if !before[t] && !strings.Contains(t, "/agent/program.") && names(t, words) {
			return true
		}
	}
	return false
}

// texts are all strings in v.
func texts(v any) map[string]bool {
	all := map[string]bool{}
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			all[v] = true
		case []any:
			for _, e := range v {
				walk(e)
			}
		case map[string]any:
			for k, e := range v {
				all[k] = true
				walk(e)
			}
		}
	}
	walk(v)
	return all
}

package gate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/deck"
	"github.com/tapedeck-dev/tapedeck/deck/endcheck"
	"github.com/tapedeck-dev/tapedeck/deck/library"
	"github.com/tapedeck-dev/tapedeck/deck/packed"
	"github.com/tapedeck-dev/tapedeck/deck/program"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/deck/verify"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/seal"
	"github.com/tapedeck-dev/tapedeck/tape"
	"github.com/tapedeck-dev/tapedeck/testbench/suite"
)

// endLimit is how long a replay whose program was ended for its time may take to compare what it did.
const endLimit = 30 * time.Second

// try tries one case: one result, or one a test of a script.
func (o *Options) try(ctx context.Context, c *Case) []*Result {
	begun := time.Now()
	dir, rules, err := o.rulesFor(c)
	if err != nil {
		return []*Result{{Case: *c, Name: c.Path, Status: Broken, Why: err.Error(), Err: err}}
	}
	limit := cmp.Or(o.Timeout, DefaultTimeout)
	if rules != nil && rules.Timeout > 0 {
		limit = rules.Timeout
	}
	whole, room := ctx, limit
	if c.Kind != Script {
		room += endLimit
	}
	ctx, cancel := context.WithTimeout(ctx, room)
	defer cancel()
	if c.Kind == Script {
		return o.script(ctx, c)
	}
	r := &Result{Case: *c, Name: c.Path}
	rec, err := o.replay(ctx, r, dir, rules, limit)
	if err != nil {
		r.Status, r.Why, r.Err = StatusOfError(err), err.Error(), err
		if ctx.Err() != nil {
			r.Status, r.Why = Hangs, fmt.Sprintf("not over after %v", limit)
		}
	}
	r.Took = time.Since(begun)
	if rec != nil && r.Status != Skipped && whole.Err() == nil {
		library.Judged(rec, library.Verdict{Status: string(r.Status), Summary: r.Why, By: "test"}, library.Judgement{Report: r.Report})
	}
	return []*Result{r}
}

// replay opens and replays the recording of a case and says in r what came of it. rec is nil where it could not be opened.
func (o *Options) replay(ctx context.Context, r *Result, dir string, rules *recording.TestRules, limit time.Duration) (rec *recording.Recording, err error) {
	rec, done, err := open(ctx, &r.Case)
	if err != nil {
		return nil, err
	}
	defer done()
	if o.Changed != nil && !o.Changed.touch(ctx, rec, r.Path, o.TreeNow, cmp.Or(o.treeOf(rec, &r.Case), rec.Manifest.Roots.Tree)) {
		r.Status, r.Why = Skipped, "nothing that it depends on has changed since "+o.Changed.Since
		return rec, ctx.Err()
	}
	if v, err := verify.Verify(ctx, rec.Dir, &verify.Options{ConfigDir: o.ConfigDir}); err != nil {
		return rec, err
	} else if problems := slices.DeleteFunc(v.Problems, BySomebodyElse); len(problems) > 0 {
		return rec, &damagedError{problems}
	}
	var stderr endcheck.Tail
	options, err := o.options(rec, &r.Case, dir, rules)
	if err != nil {
		return rec, err
	}
	options.Stderr, options.Limit = &stderr, limit
	v, err := deck.Replay(ctx, rec, options)
	if err != nil {
		r.Output = stderr.String()
		return rec, err
	}
	if ctx.Err() != nil {
		return rec, ctx.Err()
	}
	r.judge(v.Report, rules, cmp.Or(o.Now, time.Now()))
	if v.TimedOut {
		r.Status, r.Why, r.Output = Hangs, fmt.Sprintf("not over after %v", limit), stderr.String()
	}
	return rec, nil
}

// BySomebodyElse says of a problem that it is only whose seal the recording has: recordings of one repository are sealed by who made them.
func BySomebodyElse(p verify.Problem) bool { return p.Code == string(seal.CodeSigner) }

// ReplayOptions are those with which Run replays the recording at path: by its tapedeck.yaml, over its work tree.
func (o *Options) ReplayOptions(rec *recording.Recording, path string) (*deck.ReplayOptions, error) {
	c := &Case{Path: path, Kind: Recording}
	dir, rules, err := o.rulesFor(c)
	if err != nil {
		return nil, err
	}
	return o.options(rec, c, dir, rules)
}

func (o *Options) options(rec *recording.Recording, c *Case, dir string, rules *recording.TestRules) (out *deck.ReplayOptions, err error) {
	out = &deck.ReplayOptions{TreeNow: o.TreeNow, TreeAt: o.treeOf(rec, c), Config: dir, ConfigDir: o.ConfigDir, Own: o.Own, Env: o.Env}
	out.Watch = slices.Clone(o.Watch)
	if rules != nil {
		out.Watch = append(out.Watch, rules.Watch...)
	}
	out.Mode, err = o.mode(rules)
	return out, err
}

// treeOf is the work tree of a recording on this disk: that of the options, else the checkout that it lies in, unless it lies in the one that
// it was made in. For a replay over the recorded tree, of which the disk gives only what Git ignores, the recorded path comes first.
func (o *Options) treeOf(rec *recording.Recording, c *Case) string {
	made := rec.Manifest.Roots.Tree
	if o.TreeAt != "" || made == "" || !o.TreeNow && recording.IsDir(made) {
		return o.TreeAt
	}
	at, err := filepath.Abs(c.Path)
	if err != nil {
		return ""
	}
	if at = recording.Resolved(at); recording.Within(at, made) {
		return ""
	}
	for dir := filepath.Dir(at); dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if recording.Exists(filepath.Join(dir, ".git")) {
			return dir
		}
	}
	return ""
}

// nameOf is the name of a recording: that of its file or directory without what such names end in.
func nameOf(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	return strings.TrimSuffix(strings.TrimSuffix(filepath.Base(path), ".tar.zst"), ".rec")
}

// judge says what a report makes of a case.
func (r *Result) judge(report *fidelity.Report, rules *recording.TestRules, now time.Time) {
	var all bool
	r.Report, r.Why = report, report.String()
	r.Expect, all = expected(rules, nameOf(r.Path), report, now)
	r.First = first(report)
	switch r.Status = StatusOf(report); {
	case all && doubtful(report):
		r.Status = Unsure
	case all:
		r.Status = Expected
	}
}

// StatusOf is what a report makes of a case of which nothing is expected.
func StatusOf(r *fidelity.Report) Status {
	switch {
	case r.Total() > 0:
		return Diverged
	case doubtful(r):
		return Unsure
	}
	return Faithful
}

func doubtful(r *fidelity.Report) bool {
	return r.Doubtful() > 0 || len(r.Side) > 0 || len(r.NotCompared) > 0
}

// first is the first divergence for people, with its cause; of what could not be compared, and of masked places, those.
func first(r *fidelity.Report) string {
	var text, block strings.Builder
	if r.WriteText(&text, nil) != nil {
		return ""
	}
	in := false
	for line := range strings.Lines(text.String()) {
		if !strings.HasPrefix(line, " ") {
			in = strings.HasPrefix(line, "first divergence:") || strings.HasPrefix(line, "not compared") || strings.HasPrefix(line, "masked")
		}
		if in || strings.Contains(line, "project key") { // which is why random numbers are others
			block.WriteString(line)
		}
	}
	return strings.TrimRight(block.String(), "\n")
}

func (o *Options) mode(rules *recording.TestRules) (fidelity.Mode, error) {
	switch {
	case o.Mode != nil:
		return *o.Mode, nil
	case rules != nil && rules.Mode != "":
		return fidelity.ParseMode(rules.Mode)
	}
	return fidelity.Semantic, nil
}

// open opens the recording of a case; done lets go of what it was unpacked into.
func open(ctx context.Context, c *Case) (rec *recording.Recording, done func(), err error) {
	if c.Kind == Packed {
		if isPlaceholder(c.Path) {
			return nil, nil, fmt.Errorf("%w: it is empty or a pointer of Git LFS (git lfs pull fetches it)", packed.ErrDamaged)
		}
		return library.UnpackTemp(ctx, c.Path, nil)
	}
	rec, err = recording.Open(c.Path)
	return rec, func() {}, err
}

// A damagedError is what does not hold of a recording.
type damagedError struct{ problems []verify.Problem }

func (e *damagedError) Error() string {
	if more := len(e.problems) - 1; more > 0 {
		return fmt.Sprintf("%v (and %d more)", e.problems[0], more)
	}
	return e.problems[0].String()
}

// StatusOfError is what an error says of a recording.
func StatusOfError(err error) Status {
	var damaged *damagedError
	var blob *cas.CorruptError
	var missing *cas.MissingError
	var load *tape.LoadError
	var program *program.NotFoundError
	switch {
	case errors.Is(err, deck.ErrUnavailable):
		return NoJail
	case errors.Is(err, recording.ErrNewer), errors.Is(err, packed.ErrFormat), errors.Is(err, tape.ErrVersion):
		return Newer
	case errors.As(err, &program), errors.Is(err, fs.ErrNotExist) && strings.Contains(err.Error(), "exec"):
		return NoProgram
	case errors.Is(err, recording.ErrManifest), errors.Is(err, recording.ErrNotRecording), errors.Is(err, packed.ErrDamaged), errors.Is(err, packed.ErrNotPacked),
		errors.As(err, &blob), errors.As(err, &missing), errors.As(err, &load), errors.As(err, &damaged):
		return Damaged
	}
	return Broken
}

// script runs the tests of one file.
func (o *Options) script(ctx context.Context, c *Case) (out []*Result) {
	s, err := suite.Run(ctx, []string{c.Path}, nil)
	for _, t := range s.Results {
		r := &Result{Case: *c, Name: t.Name(), Took: t.Took, Output: t.Output}
		r.Status = map[suite.Status]Status{suite.Passed: Faithful, suite.Failed: Diverged, suite.Broken: Broken}[t.Status]
		if t.Err != nil {
			r.Why = t.Err.Error()
			r.First = strings.TrimPrefix(suite.Detail(t.Err), r.Why+"\n") // said already
		}
		out = append(out, r)
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		out = append(out, &Result{Case: *c, Name: c.Path, Status: Hangs, Why: "its time was up"})
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		out = append(out, &Result{Case: *c, Name: c.Path, Status: Broken, Why: err.Error(), Err: err})
	}
	return out
}

// rulesFor returns the directory of the tapedeck.yaml by which a case goes, and what it says of tests; "" and nil where there is none.
func (o *Options) rulesFor(c *Case) (dir string, rules *recording.TestRules, err error) {
	if dir = o.Rules; dir == "" {
		dir, err = nearestRules(c)
	}
	if dir == "" || err != nil {
		return "", nil, err
	}
	config, err := recording.ReadConfig(dir)
	if o.Plain {
		config.Test = nil
	}
	return dir, config.Test, err
}

// nearestRules is the directory of the tapedeck.yaml beside a case or above it; "" for none.
func nearestRules(c *Case) (dir string, err error) {
	at, err := filepath.Abs(c.Path)
	if err != nil {
		return "", err
	}
	for dir = filepath.Dir(at); ; dir = filepath.Dir(dir) {
		if recording.Exists(filepath.Join(dir, recording.ConfigName)) {
			return dir, nil
		}
		if recording.Exists(filepath.Join(dir, ".git")) || dir == filepath.Dir(dir) {
			return "", nil
		}
	}
}

// An Expectation is one of tapedeck.yaml's that a case has met, or has not.
type Expectation struct {
	Diverges string `json:"diverges"`
	Reason   string `json:"reason"`
	Until    string `json:"until,omitempty"`
	Met      int    `json:"met"`               // divergences that it stands for
	Expired  bool   `json:"expired,omitempty"` // it stands for none any more
}

// expected holds a report against what is expected of the recording called name on the day now. all says that every divergence is: one that
// follows from another needs an expectation of its own, for what it follows from may be the very change that nobody expects.
func expected(rules *recording.TestRules, name string, r *fidelity.Report, now time.Time) (met []Expectation, all bool) {
	if rules == nil {
		return nil, false
	}
	for _, e := range rules.Expect {
		if fits, _ := path.Match(e.Recordings, name); fits || e.Recordings == "" {
			met = append(met, Expectation{Diverges: e.Diverges, Reason: e.Reason, Until: e.Until, Expired: e.Over(now)})
		}
	}
	all = r.Total() > 0 && r.Omitted == 0
	for i := range r.Divergences {
		known := meets(met, &r.Divergences[i]) // counted in each
		all = all && known
	}
	return met, all
}

// meets counts a divergence for each expectation that stands for it.
func meets(all []Expectation, d *fidelity.Divergence) (met bool) {
	for i := range all {
		e := &all[i]
		if e.Diverges == string(d.Category) || strings.Contains(d.Message, e.Diverges) {
			e.Met++
			met = met || !e.Expired
		}
	}
	return met
}

// String says what became of an expectation.
func (e *Expectation) String() string {
	switch {
	case e.Expired:
		return fmt.Sprintf("expected until %s: %s (%s)", e.Until, e.Diverges, e.Reason)
	case e.Met == 0:
		return fmt.Sprintf("expected and not met: %s (%s)", e.Diverges, e.Reason)
	}
	return fmt.Sprintf("expected: %s (%s)", e.Diverges, e.Reason)
}

package deck

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// Outside the jail nobody gives a program its time and its randomness again, so a replay may differ from the recording by chance alone.
// Which of its words are chance the program says itself: it runs again, until two replays of it can be held against each other. A word
// that is another one in each is chance; one that both say and the recording does not is a change.

// maxRuns bounds how often a program runs for one verdict.
const maxRuns = 4

// varying returns the verdict on a replay that may differ by chance, once that is told from change; v where that tells nothing.
func (r *replayer) varying(ctx context.Context, v *Verdict) *Verdict {
	if !r.mayVary(v) {
		return v
	}
	best, first, of := v, r, v
	for runs := 2; runs <= maxRuns; runs++ {
		next := r.onceMore()
		defer func() { next.scratch.remove() }()
		e, err := next.unjudged(ctx)
		if err != nil {
			v.Notes = append(v.Notes, fmt.Sprintf("the program could not be run again, to tell chance from change: %v", err))
			return v
		}
		if e.signals > 0 {
			return v
		}
		if first == r && len(v.Refused) > 0 { // it was not run to its end
			first, of = next, &Verdict{Exit: e.exit, OpenLine: v.OpenLine}
			continue
		}
		report, err := first.compare(next)
		if err != nil {
			return v
		}
		n := report.Varying()
		if n == 0 {
			break
		}
		note := fmt.Sprintf("run %d times, to tell chance from change: values in every run of its own: %d", runs, n)
		if first != r {
			note += "; what was printed is of the first run, which was refused what it asked for"
		}
		report.Notes = append(report.Notes, note)
		if best = (&Verdict{Report: report, Exit: of.Exit, OpenLine: of.OpenLine}); best.Faithful() {
			break
		}
	}
	return best
}

// mayVary reports whether chance may be why a replay diverged, and can be found out: the program is no other one for having run again.
func (r *replayer) mayVary(v *Verdict) bool {
	return r.o.Proxy && !r.trial && r.fork == nil && r.rec.Manifest.TTY == nil && r.o.Out == "" && r.o.Keep == "" &&
		r.o.Mode == fidelity.Semantic && len(v.Divergences) > 0 && len(v.NotCompared) == 0 && r.asked > 0
}

// onceMore is the same replay once more, of which nobody sees anything. What the tape lacks is answered all the same.
func (r *replayer) onceMore() *replayer {
	o := *r.o
	o.Streams, o.Starting = Streams{Stdout: io.Discard, Stderr: io.Discard}, nil
	return &replayer{o: &o, rec: r.rec, roots: r.rec.Manifest.Roots, prepared: r.prepared, trial: true}
}

// unjudged runs a program without a verdict.
func (r *replayer) unjudged(ctx context.Context) (*ended, error) {
	if err := r.prepare(); err != nil {
		return nil, err
	}
	defer r.s.close()
	return r.perform(ctx)
}

// tells has what a replay did tell chance from change in another one, until done is called.
func (r *replayer) tells(o *fidelity.LaneOptions, now *recording.Comparing) (done func() error, err error) {
	masks, err := now.Masker(&r.roots)
	if err != nil {
		return nil, err
	}
	t, err := tape.Open(filepath.Join(r.dir, recording.TapeName), nil)
	if err != nil {
		return nil, err
	}
	o.Again = &fidelity.Again{
		Records: t.Records(), Masks: masks,
		Payload: func(p *tape.Payload) ([]byte, error) { return p.Bytes(t.Store) },
	}
	return t.Close, nil
}

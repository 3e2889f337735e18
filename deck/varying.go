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
	if !r.mayVary() || len(v.Divergences) == 0 || len(v.NotCompared) > 0 {
		return v
	}
	best := v
	for runs := 2; runs <= maxRuns; runs++ {
		next := r.onceMore()
		defer func() { next.scratch.remove() }()
		e, err := next.unjudged(ctx)
		if err != nil {
			v.Notes = append(v.Notes, fmt.Sprintf("the program could not be run again, to tell chance from change: %v", err))
			return v
		}
		if e.signals > 0 {
			v.NotCompared = append(v.NotCompared, "a signal came while the program ran again, to tell chance from change")
			return v
		}
		report, err := r.compare(next)
		if err != nil {
			return v
		}
		n := report.Varying()
		if n == 0 {
			break
		}
		report.Notes = append(report.Notes, fmt.Sprintf("run %d times, to tell chance from change: values in every run of its own: %d", runs, n))
		if best = (&Verdict{Report: report, Exit: v.Exit, OpenLine: v.OpenLine}); best.Faithful() {
			break
		}
	}
	return best
}

// mayVary reports whether what a replay did may be chance, and that can be found out: the program is no other one for having run again. Then what
// the tape lacks, but for words, is answered all the same, and is told when the runs are compared.
func (r *replayer) mayVary() bool {
	return r.o.Proxy && r.fork == nil && r.rec.Manifest.TTY == nil && r.o.Out == "" && r.o.Keep == "" && r.o.Mode == fidelity.Semantic && r.asked > 0
}

// onceMore is the same replay once more, of which nobody sees anything.
func (r *replayer) onceMore() *replayer {
	o := *r.o
	o.Streams, o.Starting = Streams{Stdout: io.Discard, Stderr: io.Discard}, nil
	return &replayer{o: &o, rec: r.rec, roots: r.rec.Manifest.Roots, prepared: r.prepared}
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

package deck

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/axis/terminal"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// maxStdin bounds, in bytes, the recorded stdin that Again gives a program.
const maxStdin = 256 << 20

// Again fills the fields of o that say what runs and what it reaches with what rec was recorded with; those that are set stay. Secrets
// are on no disk: the error names an argument or an upstream that held one, which the caller must give then.
func Again(rec *recording.Recording, o *RecordOptions) error {
	m := rec.Manifest
	if len(o.Argv) == 0 {
		if len(m.ArgSecrets) > 0 {
			return fmt.Errorf("%s held a secret, which the recording does not have: give the command line behind --", m.ArgSecrets[0].Name)
		}
		if m.Redacted != nil && slices.ContainsFunc(m.Argv, func(a string) bool { return string(scrub.Renumber([]byte(a))) != a }) {
			return errors.New("its command line was redacted: give the command line behind --")
		}
		for i, a := range m.Argv {
			o.Argv = append(o.Argv, m.Bytes(fmt.Sprintf("argv.%d", i), a))
		}
	}
	o.Dir, o.Tree, o.Writable, o.Proxy = m.Cwd, m.Roots.Tree, m.Writable, m.Proxy
	o.RealTime = !m.Axes[axisClock].On
	config, err := recording.ReadConfig(m.Roots.Tree)
	if err != nil {
		return err
	}
	if m.Again == nil && len(m.Ports) > 0 && len(o.Upstreams)+len(config.Upstreams) == 0 {
		return errors.New("it was recorded with upstreams, and by a version that did not keep them: give them with --upstream")
	}
	if a := m.Again; a != nil {
		o.Passthrough, o.Isolated = a.Passthrough, a.Isolated
		upstreams := make(map[string]string)
		maps.Copy(upstreams, a.Upstreams)
		for name, url := range config.Upstreams {
			if upstreams[name] == "" || slices.Contains(a.Configured, name) {
				upstreams[name] = url
			}
		}
		maps.Copy(upstreams, o.Upstreams)
		for name, url := range upstreams {
			if url == "" {
				return fmt.Errorf("the upstream of %s held a secret, which the recording does not have: give it with --upstream %[1]s=URL", name)
			}
		}
		o.Upstreams = upstreams
	}
	if m.TTY != nil {
		o.Terminal = terminal.Auto
		return nil
	}
	store, err := rec.Store()
	if err != nil {
		return err
	}
	in, err := rec.OpenStdin(store)
	if err != nil {
		return err
	}
	var stdin []byte
	if in != nil {
		defer in.Close()
		stdin, err = io.ReadAll(io.LimitReader(in, maxStdin+1))
	}
	if len(stdin) > maxStdin {
		return fmt.Errorf("the recorded stdin has more than %d bytes", maxStdin)
	}
	if err == nil && m.Stdin != nil {
		o.Stdin = bytes.NewReader(stdin)
	}
	return err
}

// configured are the upstreams of o that tapedeck.yaml names as well.
func configured(o *RecordOptions, config map[string]string) (names []string) {
	for name, url := range config {
		if o.Upstreams[name] == url {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// againOf is what a manifest keeps of o for Again. An upstream that holds a secret is kept by its name.
func againOf(o *RecordOptions, scrubbed func(string) string) *recording.Again {
	a := &recording.Again{Upstreams: make(map[string]string), Passthrough: slices.Clone(o.Passthrough), Isolated: o.Isolated}
	for name, url := range o.Upstreams {
		if visible.WithoutUser(url) != url || scrubbed(url) != url || strings.Contains(url, "?") {
			url = ""
		}
		a.Upstreams[name] = url
	}
	return a
}

// Worse says why fresh, which was recorded like old and with so many signals from outside, is hardly meant to take its place: how it ended,
// or requests that got an error for an answer where the old one got none. "" for nothing.
func Worse(old, fresh *recording.Recording, signals int) (string, error) {
	switch was, is := old.Manifest.Exit, fresh.Manifest.Exit; {
	case signals > 0:
		return "it was interrupted", nil
	case was != nil && is != nil && *was != *is:
		return fmt.Sprintf("it ended with %s, and the recorded one with %s", is, was), nil
	}
	before, asked, err := failures(old)
	if err != nil {
		return "", err
	}
	now, asks, err := failures(fresh)
	if err != nil {
		return "", err
	}
	if asked > 0 && asks == 0 {
		return fmt.Sprintf("it called no model, and the recorded one did so %d times", asked), nil
	}
	for _, f := range slices.SortedFunc(maps.Keys(now), func(a, b failure) int { return strings.Compare(a.from+a.what, b.from+b.what) }) {
		if now[f] > before[f] {
			return fmt.Sprintf("%s answered with %s, %d times instead of %d", f.from, f.what, now[f], before[f]), nil
		}
	}
	return "", nil
}

// A failure is an answer that is an error: the host that gave it, and its status, or why there was none.
type failure struct{ from, what string }

// failures counts the answers of a recording that are errors, and the calls of models.
func failures(rec *recording.Recording) (all map[failure]int, calls int, err error) {
	all = make(map[failure]int)
	for r, err := range rec.Records() {
		if err != nil {
			return nil, 0, err
		}
		if _, ok := r.Kind.(*tape.LLMCall); ok {
			calls++
		}
		x := tape.ExchangeOf(r.Kind)
		if x == nil || x.Error == tape.Cancelled || x.Status != 0 && x.Status < http.StatusBadRequest {
			continue
		}
		f := failure{strings.Clone(x.URL), cmp.Or(x.Error, "an error")}
		if u, err := url.Parse(x.URL); err == nil {
			f.from = u.Host
		}
		if x.Status != 0 {
			f.what = strings.TrimSpace(fmt.Sprintf("%d %s", x.Status, http.StatusText(x.Status)))
		}
		all[f]++
	}
	return all, calls, nil
}

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
	blobs := &layeredStore{t.Store, r.store}
	o.Again = &fidelity.Again{
		Records: t.Records(), Masks: masks,
		Payload: func(p *tape.Payload) ([]byte, error) { return p.Bytes(blobs) },
	}
	return t.Close, nil
}

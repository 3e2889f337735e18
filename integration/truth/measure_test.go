package truth

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// options are the flags.
type options struct {
	n, j, changes int
	seed          uint64
	only          string
	modes         string
	page          string
	tapedeck      string
	outcomes      string
	unchanged     bool
}

var flags options

func init() {
	flag.IntVar(&flags.n, "programs", 0, "programs of each mode")
	flag.IntVar(&flags.j, "jobs", runtime.NumCPU(), "programs at once")
	flag.IntVar(&flags.changes, "changes", 6, "changes of each program that the documents say compare")
	flag.Uint64Var(&flags.seed, "seed", 1, "seed of the generator")
	flag.StringVar(&flags.only, "only", "", "one program, `SEED/INDEX`, with all of its changes and what was said of them")
	flag.StringVar(&flags.modes, "modes", "jail,--proxy", "modes, by commas")
	flag.StringVar(&flags.page, "page", "", "`file`, from the root of the checkout, that gets the report")
	flag.StringVar(&flags.tapedeck, "tapedeck", "", "the `binary` under test, from the root of the checkout (default: built from this checkout)")
	flag.BoolVar(&flags.unchanged, "unchanged", false, "only programs with something that differs in every run, and no changes")
	flag.StringVar(&flags.outcomes, "outcomes", "", "`file`, from the root of the checkout, that gets every outcome as JSON")
}

// TestVerdicts tries programs, and fails on a verdict that is wrong and not known to be (known_test.go).
func TestVerdicts(t *testing.T) {
	o := &flags
	switch {
	case o.n > 0 || o.only != "":
	case o.page != "" || o.outcomes != "" || o.unchanged:
		t.Fatal("-programs N says how many are tried")
	default:
		t.Skip("-programs N or -only SEED/INDEX says which are tried")
	}
	ctx, stop := signal.NotifyContext(t.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if at, ok := t.Deadline(); ok { // else nothing is told of those that are through, and replays are left behind
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, at.Add(-10*time.Second))
		defer cancel()
	}
	outcomes, err := o.run(ctx, os.Stdout, os.Stderr)
	if err == nil {
		err = cmp.Or(ctx.Err(), o.keep(outcomes))
	}
	if err = errors.Join(err, o.tell(outcomes, os.Stderr)); err != nil {
		t.Fatal(err)
	}
}

// fromRoot is a path that is named from the root of the checkout, as it stands from here.
func fromRoot(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join("../..", path)
}

// run tries the programs that were asked for.
func (o *options) run(ctx context.Context, stdout, stderr io.Writer) ([]*outcome, error) {
	s, err := newStage(ctx, o.tapedeck)
	if err != nil {
		return nil, err
	}
	defer s.close()
	with, missing := languages()
	if missing != "" {
		fmt.Fprintln(stderr, missing)
	}
	t := &trial{stage: s, with: with, how: o.changes}
	if o.unchanged {
		t.how = -1
	}
	if o.only != "" {
		return o.one(ctx, t, stdout)
	}
	return o.every(ctx, t, stderr)
}

// ofMode are the languages that a mode can record: Node heeds no proxy variables before 24.
func (t *trial) ofMode(m mode) *trial {
	if m == proxied {
		return &trial{stage: t.stage, with: []*language{python}, how: t.how, all: t.all}
	}
	return t
}

// one shows a program and what becomes of it.
func (o *options) one(ctx context.Context, t *trial, stdout io.Writer) (all []*outcome, err error) {
	seed, index, ok := strings.Cut(o.only, "/")
	s, err := strconv.ParseUint(seed, 10, 64)
	i, err2 := strconv.ParseUint(index, 10, 64)
	if !ok || err != nil || err2 != nil {
		return nil, fmt.Errorf("-only %s: not SEED/INDEX", o.only)
	}
	t.all = true
	for _, m := range strings.Split(o.modes, ",") {
		t := t.ofMode(mode(m))
		p := generate(s, i, mode(m), t.with)
		fmt.Fprintf(stdout, "== %s, %s, %d/%d\n%s\n", m, p.language.name, s, i, p.body())
		outcomes, err := t.run(ctx, s, i, mode(m))
		if err != nil {
			return all, err
		}
		all = append(all, outcomes...)
		for _, c := range outcomes {
			fmt.Fprintf(stdout, "%s%3d  %s: %s (%s) is %s: %s\n", map[bool]string{true: "WRONG ", false: "      "}[c.wrong()], c.Change, c.Place, c.Kind, c.Want, c.Verdict, c.Said)
		}
	}
	return all, nil
}

// every tries all, several at once; the outcomes stand in the order of the programs. When it is interrupted they are those of the
// programs that were through.
func (o *options) every(ctx context.Context, t *trial, stderr io.Writer) ([]*outcome, error) {
	type job struct {
		at    int
		index uint64
		mode  mode
	}
	modes := strings.Split(o.modes, ",")
	jobs := make(chan job)
	results := make([][]*outcome, o.n*len(modes))
	errs := make([]error, len(results))
	var wg sync.WaitGroup
	progress := &progress{w: stderr, all: len(results)}
	for range max(1, o.j) {
		wg.Go(func() {
			for j := range jobs {
				results[j.at], errs[j.at] = t.ofMode(j.mode).run(ctx, o.seed, j.index, j.mode)
				progress.done(results[j.at])
			}
		})
	}
	for i := range results {
		index := uint64(i / len(modes))
		if o.unchanged {
			index = 3*index + 2
		}
		jobs <- job{i, index, mode(modes[i%len(modes)])}
		if ctx.Err() != nil {
			break
		}
	}
	close(jobs)
	wg.Wait()
	var outcomes []*outcome
	for i, r := range results {
		if errors.Is(errs[i], context.Canceled) || errors.Is(errs[i], context.DeadlineExceeded) {
			continue
		}
		if errs[i] != nil {
			return nil, errs[i]
		}
		outcomes = append(outcomes, r...)
	}
	return outcomes, nil
}

// progress says how far the run is.
type progress struct {
	mu                sync.Mutex
	w                 io.Writer
	all, ended, wrong int
}

func (p *progress) done(outcomes []*outcome) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended++
	for _, o := range outcomes {
		if o.wrong() {
			p.wrong++
		}
	}
	if p.ended%max(1, p.all/20) == 0 {
		fmt.Fprintf(p.w, "%d of %d programs, %d verdicts wrong\n", p.ended, p.all, p.wrong)
	}
}

// keep writes what was asked for.
func (o *options) keep(outcomes []*outcome) error {
	if o.outcomes != "" {
		b, err := json.MarshalIndent(outcomes, "", " ")
		if err == nil {
			err = os.WriteFile(fromRoot(o.outcomes), b, 0o644)
		}
		if err != nil {
			return err
		}
	}
	if o.page == "" {
		return nil
	}
	return os.WriteFile(fromRoot(o.page), []byte(o.document(outcomes)), 0o644)
}

// tell names the verdicts that are wrong; the error is that of check.
func (o *options) tell(outcomes []*outcome, stderr io.Writer) error {
	for _, c := range outcomes {
		if c.wrong() && (o.page != "" || !expected(c)) {
			fmt.Fprintf(stderr, "%s %s: %s (want %s) is %s; go test -v ./integration/truth -run Verdicts -modes=%s -only %d/%d\n", c.Mode, c.Place, c.Kind, c.Want, c.Verdict, c.Mode, c.Seed, c.Index)
		}
	}
	return check(outcomes, stderr)
}

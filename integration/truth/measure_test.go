package truth

import (
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
)

// options are the flags.
type options struct {
	n, j, changes int
	seed          uint64
	only          string
	modes         string
	page          string
	tapedeck      string
	json          bool
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
	flag.StringVar(&flags.tapedeck, "tapedeck", "", "the `binary` under test (default: built from this checkout)")
	flag.BoolVar(&flags.unchanged, "unchanged", false, "only programs with something that differs in every run, and no changes")
	flag.BoolVar(&flags.json, "outcomes", false, "every outcome as JSON on stdout")
}

// TestVerdicts tries programs, and fails on a verdict that is wrong and not known to be (known_test.go).
func TestVerdicts(t *testing.T) {
	o := &flags
	if o.n == 0 && o.only == "" {
		t.Skip("-programs N or -only SEED/INDEX says which are tried")
	}
	ctx, stop := signal.NotifyContext(t.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	outcomes, err := o.run(ctx, os.Stdout, os.Stderr)
	if err == nil && o.only == "" {
		err = o.tell(outcomes, os.Stdout, os.Stderr)
	}
	if err != nil {
		t.Fatal(err)
	}
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
		return nil, o.one(ctx, t, stdout)
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
func (o *options) one(ctx context.Context, t *trial, stdout io.Writer) error {
	seed, index, ok := strings.Cut(o.only, "/")
	s, err := strconv.ParseUint(seed, 10, 64)
	i, err2 := strconv.ParseUint(index, 10, 64)
	if !ok || err != nil || err2 != nil {
		return fmt.Errorf("-only %s: not SEED/INDEX", o.only)
	}
	t.all = true
	for _, m := range strings.Split(o.modes, ",") {
		t := t.ofMode(mode(m))
		p := generate(s, i, mode(m), t.with)
		fmt.Fprintf(stdout, "== %s, %s, %d/%d\n%s\n", m, p.language.name, s, i, p.body())
		outcomes, err := t.run(ctx, s, i, mode(m))
		if err != nil {
			return err
		}
		for _, c := range outcomes {
			fmt.Fprintf(stdout, "%s%3d  %s: %s (%s) is %s: %s\n", map[bool]string{true: "WRONG ", false: "      "}[c.wrong()], c.Change, c.Place, c.Kind, c.Want, c.Verdict, c.Said)
		}
	}
	return nil
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
	for range o.j {
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
		if errors.Is(errs[i], context.Canceled) {
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

// tell writes what was asked for; the error is that of check.
func (o *options) tell(outcomes []*outcome, stdout, stderr io.Writer) error {
	for _, c := range outcomes {
		if c.wrong() && (o.page != "" || !expected(c)) {
			fmt.Fprintf(stderr, "%s %s: %s (want %s) is %s; go test -v ./integration/truth -run Verdicts -modes=%s -only %d/%d\n", c.Mode, c.Place, c.Kind, c.Want, c.Verdict, c.Mode, c.Seed, c.Index)
		}
	}
	if o.json {
		e := json.NewEncoder(stdout)
		e.SetIndent("", " ")
		e.Encode(outcomes)
	}
	if o.page != "" {
		if err := os.WriteFile(filepath.Join("../..", o.page), []byte(o.document(outcomes)), 0o644); err != nil {
			return err
		}
	}
	return check(outcomes, stderr)
}

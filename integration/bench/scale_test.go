package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/scriptedllm"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// agentScale is a source: agents of the quickstart, each in a work tree of its own, that begin at once.
type agentScale struct{ at, few []int }

func (s agentScale) how(short bool) string {
	return fmt.Sprintf("%v agents of the quickstart begun at once, plain and recorded in turn, each in a work tree of its own; two model calls "+
		"each, answered at once by one scripted endpoint. The machine's share is the time until all have ended by how many there were; "+
		"the processors are %d", amounts(short, s.at, s.few), runtime.NumCPU())
}

func amounts(short bool, long, few []int) []int {
	if short {
		return few
	}
	return long
}

func (s agentScale) measure(ctx context.Context, e *env) (reading, error) {
	model := httptest.NewServer(scriptedllm.New(&scriptedllm.Options{Text: words(1200)}))
	defer model.Close()
	tapedeck, err := e.tapedeck(ctx)
	if err != nil {
		return reading{}, err
	}
	agent := []string{tapedeck, "quickstart", "agent", "write hello.txt"}
	c := &curve{X: "agents at once", Y: "ms", Lines: []curveLine{
		{Name: "a recorded run"}, {Name: "its share of the machine"}, {Name: "the same, plain"},
	}}
	for _, n := range amounts(e.short, s.at, s.few) {
		_, plain, err := e.atOnce(n, func(r *recorder) (time.Duration, error) {
			return r.plain(ctx, []string{"ANTHROPIC_BASE_URL=" + model.URL}, agent...)
		})
		if err != nil {
			return reading{}, err
		}
		each, all, err := e.atOnce(n, func(r *recorder) (time.Duration, error) {
			_, took, err := r.record(ctx, model.URL, nil, agent...)
			return took, err
		})
		if err != nil {
			return reading{}, err
		}
		at := float64(n)
		c.Lines[0].add(at, each.median()/1e6)
		c.Lines[1].add(at, float64(all)/1e6/at)
		c.Lines[2].add(at, float64(plain)/1e6/at)
	}
	return c.reading(1, 2), nil
}

// atOnce does something n times at once, with a recorder each, and returns how long each took and how long all.
func (e *env) atOnce(n int, do func(*recorder) (time.Duration, error)) (timings, time.Duration, error) {
	recorders := make([]*recorder, n)
	for i := range recorders {
		r, err := e.newRecorder("ANTHROPIC_API_KEY=sk-ant-benchmark-not-a-key")
		if err != nil {
			return nil, 0, err
		}
		recorders[i] = r
	}
	took, errs := make(timings, n), make(chan error, n)
	begun := time.Now()
	for i, r := range recorders {
		go func() { // its error is received below
			one, err := do(r)
			took[i] = float64(one)
			errs <- err
		}()
	}
	var err error
	for range recorders {
		err = errors.Join(err, <-errs)
	}
	return took, time.Since(begun), err
}

// reading is how a line grows: its last figure by that at an amount.
func (c *curve) reading(line int, from float64) reading {
	l := &c.Lines[line]
	first, last := l.Values[0], l.Values[len(l.Values)-1]
	for i, at := range l.At {
		if at == from {
			first = l.Values[i]
		}
	}
	return reading{value: last / first, beside: fmt.Sprintf("%s %s against %s", figure(last), c.Y, figure(first)), curve: c}
}

// recordScale is a source: tapes of ever more records written, loaded and compared, in time or in memory.
type recordScale struct {
	at, few []int
	from    float64 // the amount whose figure the last one is held against
	memory  bool
}

func (s recordScale) how(short bool) string {
	return fmt.Sprintf("tapes of %v small records (clocks and files), each written by a process, loaded by another, and compared with a "+
		"copy of itself by `tapedeck diff`: wall time and VmHWM of these processes, looked at every %v: one that ends before has none",
		amounts(short, s.at, s.few), watchEvery)
}

func (s recordScale) measure(ctx context.Context, e *env) (reading, error) {
	if e.recordCurves == nil {
		curves, err := s.both(ctx, e)
		if err != nil {
			return reading{}, err
		}
		e.recordCurves = curves
	}
	if s.memory {
		return e.recordCurves[1].reading(2, s.from), nil
	}
	r := e.recordCurves[0].reading(2, s.from)
	last := e.recordCurves[0].Lines[2].At
	r.value /= last[len(last)-1] / s.from // by record
	return r, nil
}

// both measures the curves of time and of memory.
func (s recordScale) both(ctx context.Context, e *env) ([]*curve, error) {
	tapedeck, err := e.tapedeck(ctx)
	if err != nil {
		return nil, err
	}
	dir, err := e.dir("tapes")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) // gigabytes
	a, b := filepath.Join(dir, "a.tape"), filepath.Join(dir, "b.tape")
	curves := []*curve{{X: "records", Y: "ms"}, {X: "records", Y: "MiB"}}
	for _, c := range curves {
		c.Lines = []curveLine{{Name: "write"}, {Name: "load"}, {Name: "tapedeck diff"}}
	}
	for _, n := range amounts(e.short, s.at, s.few) {
		commands := [][]string{e.jobArgs("tape-write", tapeOf{a, n}), e.jobArgs("tape-load", tapeOf{a, n}), {tapedeck, "diff", a, b}}
		for i, argv := range commands {
			peak, took, err := doPeak(e.command(ctx, dir, argv[0], argv[1:]...))
			if err != nil {
				return nil, err
			}
			curves[0].Lines[i].add(float64(n), float64(took)/1e6)
			if peak > 0 {
				curves[1].Lines[i].add(float64(n), float64(peak)/(1<<20))
			}
			if i == 0 { // the copy is the same file: nothing of a comparison depends on that
				if err := errors.Join(os.RemoveAll(b), os.Link(a, b)); err != nil {
					return nil, err
				}
			}
		}
	}
	return curves, nil
}

// tapeOf is the argument of the jobs that write and load a tape.
type tapeOf struct {
	Path    string
	Records int
}

func withTape(arg []byte, do func(tapeOf) error) error {
	var t tapeOf
	if err := json.Unmarshal(arg, &t); err != nil {
		return err
	}
	return do(t)
}

// writeTape is the job that writes one.
func writeTape(t tapeOf) error {
	f, err := os.Create(t.Path)
	if err != nil {
		return err
	}
	w, err := tape.NewWriter(f, &tape.Header{Producer: "bench"})
	if err != nil {
		return errors.Join(err, f.Close())
	}
	rec := tape.NewRecorder(w, nil)
	for i := range t.Records {
		var kind tape.Kind = &tape.ClockRead{Source: "wall", ValueMS: 1_700_000_000_000 + int64(i)}
		if i%4 == 3 {
			kind = &tape.FileRead{File: tape.File{Path: fmt.Sprintf("src/d%02d/f%04d.go", i%40, i%5000)}}
		}
		if err := rec.Record(kind); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	return errors.Join(rec.Flush(), f.Close())
}

// loadTape is the job that loads one.
func loadTape(t tapeOf) error {
	f, err := tape.Open(t.Path, nil)
	if err != nil {
		return err
	}
	defer f.Close()
	n := 0
	for _, err := range f.Records() {
		if err != nil {
			return err
		}
		n++
	}
	if n != t.Records {
		return fmt.Errorf("%s: %d records of %d", t.Path, n, t.Records)
	}
	return nil
}

// libraryScale is a source: a library with ever more recordings in it, listed, and recorded into.
type libraryScale struct {
	at, few []int
	runs    int
}

func (s libraryScale) how(short bool) string {
	return fmt.Sprintf("a work tree whose .tapedeck has %v recordings of `true`, copies of one but for their ids; `tapedeck list --json` and "+
		"`tapedeck record -- true` in it, medians of %d alternating runs after one of each that does not count", amounts(short, s.at, s.few), s.runs)
}

func (s libraryScale) measure(ctx context.Context, e *env) (reading, error) {
	tapedeck, err := e.tapedeck(ctx)
	if err != nil {
		return reading{}, err
	}
	r, err := e.newRecorder()
	if err != nil {
		return reading{}, err
	}
	record := func() (time.Duration, error) {
		return r.plain(ctx, nil, tapedeck, "record", "--tty", "off", "--", "true")
	}
	if _, err := record(); err != nil {
		return reading{}, err
	}
	c := &curve{X: "recordings", Y: "ms", Lines: []curveLine{{Name: "record -- true"}, {Name: "list"}}}
	for _, n := range amounts(e.short, s.at, s.few) {
		if err := growLibrary(filepath.Join(r.work, ".tapedeck"), n); err != nil {
			return reading{}, err
		}
		times, err := alternate(s.runs, record, func() (time.Duration, error) { return r.plain(ctx, nil, tapedeck, "list", "--json") })
		if err != nil {
			return reading{}, err
		}
		for i := range c.Lines {
			c.Lines[i].add(float64(n), times[i].median()/1e6)
		}
	}
	return c.reading(0, 1), nil
}

// growLibrary copies the oldest recording of a library until it has n or more.
func growLibrary(library string, n int) error {
	there, err := filepath.Glob(filepath.Join(library, "*.rec"))
	if err != nil || len(there) == 0 {
		return errors.Join(err, errors.New("the library has nothing to copy"))
	}
	id := strings.TrimSuffix(filepath.Base(there[0]), ".rec")
	about, err := os.ReadFile(filepath.Join(there[0], "recording.json"))
	if err != nil {
		return err
	}
	for i := len(there); i < n; i++ {
		copied := fmt.Sprintf("%s%012x", id[:len(id)-12], i)
		to := filepath.Join(library, copied+".rec")
		if err := os.CopyFS(to, os.DirFS(there[0])); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, "recording.json"), bytes.ReplaceAll(about, []byte(id), []byte(copied)), 0o644); err != nil {
			return err
		}
	}
	return nil
}

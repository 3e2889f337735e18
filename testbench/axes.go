package testbench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/files/overlay"
	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/axis/llm/fixture"
	"github.com/tapedeck-dev/tapedeck/axis/network/roundtrip"
	"github.com/tapedeck-dev/tapedeck/axis/process"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// commands are a run's: the watch is told of those that nothing answers.
type commands struct {
	*core

	files *overlay.FS
	next  process.Runner // nil denies
}

// open says what answers commands.
func (b *commands) open() (_ *process.Spawner, err error) {
	if b.next, err = b.runner(); err != nil {
		return nil, err
	}
	if path := b.conf.Processes.Record; path != "" {
		keeper := process.NewCalls(b.next)
		b.next = keeper
		b.writes = append(b.writes, func() error { return b.write(path, keeper.Calls()) })
	}
	s := process.NewSpawner(&process.SpawnerOptions{Runner: b, Wait: b.wait, Apply: b.apply})
	s.Record(b.rec)
	return s, nil
}

// runner returns what answers commands; nil where they are denied.
func (b *commands) runner() (process.Runner, error) {
	c := &b.conf.Processes
	switch {
	case b.from != nil:
		return process.NewTaped(b.from.all(), b.from.store, &process.TapedOptions{
			InOrder: b.from.foreign, NoStdin: b.from.bare, Clean: b.secrets.clean,
		})
	case c.Runner != nil:
		return c.Runner, nil
	case c.Tape != "":
		calls, err := readFile(c.Tape, process.ReadCalls)
		if err != nil {
			return nil, &ConfigError{"Processes.Tape", err}
		}
		return b.player(calls), nil
	case c.Calls != nil:
		return b.player(c.Calls), nil
	case c.Live || c.Record != "":
		return b.host(), nil
	}
	return nil, nil
}

// player answers from a process tape.
func (b *commands) player(calls []process.Call) process.Runner {
	p := process.NewPlayer(calls, &process.PlayerOptions{Clean: b.secrets.form})
	b.unused = append(b.unused, func() (out []string) {
		first, left := p.Unused()
		for i := range left {
			out = append(out, fmt.Sprintf("call %d of the process tape: %s", first+i, &process.Command{Program: left[i].Program, Args: left[i].Args}))
		}
		return out
	})
	return p
}

// host runs commands on this machine, on the run's files.
func (b *commands) host() process.Runner {
	o := &process.HostOptions{Env: b.conf.Env, Fill: b.files.Copy, Changes: b.changed, Outside: b.clock.Outside}
	if !b.clock.Paused() {
		o.Now = func() time.Duration {
			_, ms := b.clock.Stamp()
			return time.Duration(ms) * time.Millisecond
		}
	}
	h := process.NewHost(o)
	b.closers = append(b.closers, h.Close)
	return h
}

// write writes a process tape, without secrets.
func (b *commands) write(path string, calls []process.Call) error {
	var out bytes.Buffer
	for i := range calls {
		env := maps.Clone(calls[i].Env)
		for _, name := range sortedKeys(env) {
			env[name] = string(b.secrets.variable(name, env[name]))
		}
		calls[i].Env = env
		calls[i] = calls[i].Clean(b.secrets.clean)
	}
	err := process.WriteCalls(&out, calls)
	if err == nil {
		err = replace(path, out.Bytes())
	}
	if err != nil {
		return &ConfigError{"Processes.Record", err}
	}
	return nil
}

// Run implements process.Runner.
func (b *commands) Run(ctx context.Context, c *process.Command) (*process.Result, error) {
	if err := b.watch.gate(); err != nil {
		return nil, err
	}
	var res *process.Result
	var err error = &process.DeniedError{Command: *c.Clone()}
	if b.next != nil {
		res, err = b.next.Run(ctx, c)
	}
	return res, b.watch.see(err, func() tape.Kind { return b.spawnOf(c) })
}

// spawnOf is what the tape would say of a command, without what came of it.
func (b *commands) spawnOf(c *process.Command) tape.Kind {
	k, _ := process.SpawnOf(c)
	for _, s := range tape.Strings(k) {
		*s = b.cleanText(*s)
	}
	if len(c.Stdin) > 0 {
		k.Stdin = b.payload(c.Stdin)
	}
	return k
}

// A tree is a run's files.
type tree struct{ *core }

// open says what the tree begins as.
func (b *tree) open() (*overlay.FS, error) {
	o := &overlay.Options{Dir: b.conf.Files.Dir, Now: b.now}
	if b.from != nil {
		if dir := b.conf.Files.Read; dir != "" {
			if _, err := os.ReadDir(dir); err != nil {
				return nil, &ConfigError{"Files.Read", err}
			}
		}
		o.Tape = overlay.NewTaped(b.from.records, b.from.store, &overlay.TapedOptions{InOrder: b.from.foreign, Files: b.conf.Files.Read})
		o.Unknown = b.unknown
	}
	files, err := overlay.New(o)
	if err != nil {
		return nil, &ConfigError{"Files.Dir", err}
	}
	files.Record(b.rec)
	b.closers = append(b.closers, files.Close)
	if path := b.conf.Files.Diff; path != "" {
		b.writes = append(b.writes, func() error { return writeDiff(path, files) })
	}
	if b.conf.Files.WriteBack {
		b.writes = append(b.writes, func() error {
			if b.failed.Load() {
				return nil // half of a run is nobody's wish
			}
			if err := files.WriteBack(); err != nil {
				return &ConfigError{"Files.WriteBack", err}
			}
			return nil
		})
	}
	return files, nil
}

// unknown takes note of a path of which the tape of a replay does not tell what was asked.
func (b *tree) unknown(err *overlay.UnknownError) {
	if lostBlob(err) {
		b.watch.lose(err)
		return
	}
	b.watch.refuse(err, func() tape.Kind {
		path := b.cleanText(err.Path)
		switch err.Op {
		case "read":
			return &tape.FileRead{File: tape.File{Path: path}}
		case "list":
			return &tape.DirList{Path: path}
		case "removal":
			return &tape.FileDelete{File: tape.File{Path: path}}
		}
		return &tape.FileStat{Path: path}
	})
}

func writeDiff(path string, files *overlay.FS) error {
	diff, err := files.Diff()
	if err == nil {
		err = replace(path, diff)
	}
	if err != nil {
		return &ConfigError{"Files.Diff", err}
	}
	return nil
}

// changed lists what a command changed in a copy of the run's files.
func (b *commands) changed(dir string) ([]process.Change, error) {
	changes, err := b.files.Changed(dir)
	all := make([]process.Change, len(changes))
	for i := range changes {
		all[i] = process.Change(changes[i])
	}
	return all, err
}

// apply makes what a command changed true of the run's files.
func (b *commands) apply(spawn uint64, changes []process.Change) error {
	all := make([]overlay.Change, len(changes))
	for i := range changes {
		all[i] = overlay.Change(changes[i])
	}
	return b.files.Apply(spawn, all)
}

// A network is what HTTP requests of a run reach. Where there is none it is made by the first request: which is refused, or is a call of
// a model that the run's model answers.
type network struct {
	*core

	model *fixture.Caller
	once  sync.Once
	next  http.RoundTripper
	err   error
}

// open says what HTTP requests reach.
func (b *network) open() (http.RoundTripper, error) {
	if !b.has() {
		return b, nil
	}
	next, tr, err := b.make()
	if err != nil {
		return nil, err
	}
	b.late = append(b.late, tr.Close) // which records the answers that are still open
	if b.from == nil {
		b.unused = append(b.unused, func() (out []string) {
			for _, rec := range tr.Unasked() {
				out = append(out, fmt.Sprintf("%s: record %d: %s %s", b.conf.Net.Tape, rec.Seq, rec.Exchange.Method, rec.Exchange.URL))
			}
			return out
		})
	}
	return next, nil
}

// has reports whether something may answer requests as they are: what a masker of their volatile parts costs is half of a run that
// makes none.
func (b *network) has() bool {
	if b.from == nil {
		c := &b.conf.Net
		return c.Tape != "" || c.Allow != nil || c.Transport != nil
	}
	return slices.ContainsFunc(b.from.records, func(rec *tape.Record) bool {
		x := tape.ExchangeOf(rec.Kind)
		return x != nil && x.URL != ""
	})
}

// make makes what answers requests.
func (b *network) make() (http.RoundTripper, *roundtrip.Transport, error) {
	masker, err := bareMasker()
	if err != nil {
		return nil, nil, err
	}
	c := &b.conf.Net
	classifier := llm.NewClassifier(masker)
	o := &roundtrip.Options{
		Classifier: classifier, Scrubber: b.secrets.scrubber, Allow: c.Allow, Next: c.Transport,
		InOrder: b.from != nil && b.from.foreign, Timed: b.from != nil, Wait: b.wait, Outside: b.clock.Outside,
		NowMS: func() int64 { _, ms := b.clock.Stamp(); return ms },
	}
	switch {
	case b.from != nil:
		o.Tape = &roundtrip.Tape{Name: b.from.path, Records: b.from.records, Store: b.from.store}
	case c.Tape != "":
		if o.Tape, err = roundtrip.OpenTape(c.Tape); err != nil {
			return nil, nil, &ConfigError{"Net.Tape", err}
		}
	}
	tr, err := roundtrip.New(o)
	if err != nil {
		return nil, nil, &ConfigError{"Net", err}
	}
	tr.Record(b.rec)
	return b.speaking(&watchedTransport{watch: &b.watch, next: tr}, classifier), tr, nil
}

// RoundTrip implements http.RoundTripper.
func (b *network) RoundTrip(req *http.Request) (*http.Response, error) {
	b.once.Do(func() { b.next, _, b.err = b.make() })
	if b.err != nil {
		return refused(req, b.err)
	}
	return b.next.RoundTrip(req)
}

// refused closes the body of a request that is not sent, as every RoundTripper does.
func refused(req *http.Request, err error) (*http.Response, error) {
	if req.Body != nil {
		_ = req.Body.Close() // nobody reads it
	}
	return nil, err
}

// watchedTransport tells the watch of requests that nothing answers.
type watchedTransport struct {
	watch *watch
	next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (w *watchedTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := w.watch.gate(); err != nil {
		return refused(req, err)
	}
	res, err := w.next.RoundTrip(req)
	var missed *roundtrip.UnmatchedError
	asked := func() tape.Kind {
		if errors.As(err, &missed) {
			return missed.Asked
		}
		return nil
	}
	return res, w.watch.see(err, asked)
}

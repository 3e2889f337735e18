package bench

import (
	"context"
	"fmt"
	"path/filepath"
	"time"
)

// A workload is what people have agents do that changes many files.
type workload interface {
	// tell says in a few words what runs.
	tell(short bool) string
	// prepare makes what every run starts from, once: in p, and whatever else is only read in e's temporary directory.
	prepare(ctx context.Context, e *env, p *place) error
	// clean takes away what a run left in p; see putAway.
	clean(e *env, p *place) error
	// command is what runs in p's work tree, with what it needs in its environment beside the place's own.
	command(p *place) (argv, env []string)
}

// workRun is a source: how long a workload takes when it is recorded, by how long it takes when it is not, and the same
// under what a person would use in its place.
type workRun struct {
	load  workload
	runs  int // of each, recorded and not
	peers int // runs under each peer, and as many plain ones beside them
}

func (w workRun) counts(short bool) (runs, peers int) {
	if short {
		return 1, 1
	}
	return w.runs, w.peers
}

func (w workRun) how(short bool) string {
	runs, peers := w.counts(short)
	return fmt.Sprintf("%s; medians of alternating runs after one of each that does not count: %d, with the peers: %d",
		w.load.tell(short), runs, peers)
}

func (w workRun) measure(ctx context.Context, e *env) (reading, error) {
	t, err := newTrial(ctx, e, w.load)
	if err != nil {
		return reading{}, err
	}
	runs, peers := w.counts(e.short)
	ours, err := alternate(runs, t.plain(ctx), t.recorded(ctx))
	if err != nil {
		return reading{}, err
	}
	r := reading{value: ours[1].median() / ours[0].median()}
	r.beside = fmt.Sprintf("%s against %s; %s", ours[1], ours[0], t.world)
	r.peers, err = t.besides(ctx, peers)
	return r, err
}

// A trial is a workload in its place, ready to run.
type trial struct {
	e     *env
	load  workload
	place *place
	flags []string // of record
	world string   // where it records
	made  int
}

func newTrial(ctx context.Context, e *env, load workload) (*trial, error) {
	if _, err := e.tapedeck(ctx); err != nil {
		return nil, err
	}
	t := &trial{e: e, load: load}
	var err error
	if t.flags, t.world, err = e.world(ctx); err != nil {
		return nil, err
	}
	if t.place, err = e.newPlace(); err != nil {
		return nil, err
	}
	return t, load.prepare(ctx, e, t.place)
}

// begin makes the place as every run finds it, and brings to the disk what earlier ones wrote, so that none of them pays
// for another.
func (t *trial) begin() error {
	if err := t.load.clean(t.e, t.place); err != nil {
		return err
	}
	t.e.settle(t.place.root)
	return nil
}

// run runs the workload, or a program around it, in dir of p.
func (t *trial) run(ctx context.Context, p *place, around func(argv []string) []string) (time.Duration, error) {
	argv, env := t.load.command(p)
	argv = around(argv)
	cmd := t.e.command(ctx, t.place.work(), argv[0], argv[1:]...)
	if p.root != t.place.root {
		cmd.Dir = t.e.tmp // whoever shows the place elsewhere goes there
	}
	cmd.Env = append(append(cmd.Env, p.env()...), env...)
	return do(cmd)
}

// plain runs the workload as it is.
func (t *trial) plain(ctx context.Context) func() (time.Duration, error) {
	return func() (time.Duration, error) {
		if err := t.begin(); err != nil {
			return 0, err
		}
		return t.run(ctx, t.place, func(argv []string) []string { return argv })
	}
}

// recorded runs it under `tapedeck record`.
func (t *trial) recorded(ctx context.Context) func() (time.Duration, error) {
	return func() (time.Duration, error) {
		if err := t.begin(); err != nil {
			return 0, err
		}
		t.made++
		rec := filepath.Join(t.e.tmp, fmt.Sprintf("%s-%d.rec", filepath.Base(t.place.root), t.made))
		return t.run(ctx, t.place, func(argv []string) []string { return t.e.recording(rec, t.flags, argv) })
	}
}

// recording is the command line that records a program whose tapedeck has been built.
func (e *env) recording(rec string, flags, argv []string) []string {
	args := append([]string{e.built.text, "record", "-o", rec, "--tty", "off"}, flags...)
	return append(append(args, "--"), argv...)
}

// besides measures the workload under each peer, by plain runs in between.
func (t *trial) besides(ctx context.Context, n int) ([]peerReading, error) {
	programs := []func() (time.Duration, error){t.plain(ctx)}
	out := make([]peerReading, len(filePeers))
	at := make([]int, len(filePeers)) // in programs; 0 where it is not there
	for i, peer := range filePeers {
		out[i].Name = peer.name
		if out[i].Why = peer.missing(ctx, t.e); out[i].Why != "" {
			continue
		}
		at[i] = len(programs)
		programs = append(programs, func() (time.Duration, error) {
			if err := t.begin(); err != nil {
				return 0, err
			}
			return peer.run(ctx, t)
		})
	}
	times, err := alternate(n, programs...)
	if err != nil {
		return nil, err
	}
	for i := range out {
		if at[i] > 0 {
			ratio := times[at[i]].median() / times[0].median()
			out[i].Value = &ratio
		}
	}
	return out, nil
}

package deck

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/deck/derive"
	"github.com/tapedeck-dev/tapedeck/deck/program"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// keep puts the work tree as the replay left it where the caller wants it.
func (r *replayer) keep() error {
	if r.o.Keep == "" {
		return nil
	}
	if r.trees.after == nil {
		return fmt.Errorf("--keep %s: there is no work tree in this recording", r.o.Keep)
	}
	notes, err := r.trees.keep(r.o.Keep)
	r.notes = append(r.notes, notes...)
	return err
}

// adoptChanges puts into the replay's own store what its tape names, and the recording has as well.
func (r *replayer) adoptChanges() error {
	t, err := tape.Open(filepath.Join(r.dir, recording.TapeName), nil)
	if err != nil {
		return err
	}
	defer t.Close()
	for rec, err := range t.Records() {
		if err != nil {
			return err
		}
		if tape.ChangedFile(rec.Kind) == nil {
			continue // what it exchanged and printed went into its own store
		}
		for _, p := range tape.Payloads(rec.Kind) {
			if p.Inline {
				continue
			}
			if err := adoptBlob(r.s.store, r.trees.store, p.Hash); err != nil {
				return fmt.Errorf("record %d: %w", rec.Seq, err)
			}
		}
	}
	return nil
}

// describe makes the replay a recording of its own, where the caller wants it: a child of the one that it replayed.
func (r *replayer) describe(e *ended, l *rescrub) error {
	if r.o.Out == "" {
		return nil
	}
	m := *r.rec.Manifest
	fresh := recording.NewManifest(time.Now())
	m.Seed = m.SeededBy()
	m.ID, m.State, m.StartedAt, m.Host = fresh.ID, recording.StateFinished, fresh.StartedAt, fresh.Host
	m.Host.Name, m.Host.Proc = r.rec.Manifest.Host.Name, r.rec.Manifest.Host.Proc // which the program saw
	m.Parent, m.Exit, m.Sealed = &r.rec.Manifest.ID, &e.exit, false
	m.Masks, m.Records = r.s.mask.Used(), r.s.rec.Count()
	m.Secrets = l.marked(joinedSecrets(m.Secrets, r.s.scrub.Found()))
	m.Proxy, m.Axes = r.o.Proxy, ledgerFor(m.Axes, r.o.Proxy)
	clock := m.Axes[axisClock]
	clock.NotCovered = slices.Concat(clock.NotCovered, r.notGiven)
	m.Axes[axisClock] = clock
	m.LongFiles = r.long
	m.Daemon = nil // a replay is told to none
	delete(m.Axes, recording.AxisDaemon)
	if len(r.o.Argv) > 0 {
		m.Raw = maps.Clone(m.Raw)
		maps.DeleteFunc(m.Raw, func(key string, _ []byte) bool { return strings.HasPrefix(key, "argv.") })
		m.ArgSecrets = nil
		m.NoteArgs(r.s.scrub, r.o.Argv)
		m.Program = recording.Program{Path: r.moved.recorded(r.ran), Digest: program.DigestOf(r.ran).String()}
	}
	if err := errors.Join(r.trees.adopt(r.trees.store), r.adoptChanges()); err != nil {
		return err
	}
	if l != nil {
		rescrubManifest(&m, l.find)
		if err := l.sweep(); err != nil {
			return err
		}
	}
	if err := derive.WriteLog(r.dir, &m, r.s.logOptions(false, nil)); err != nil {
		return err
	}
	return m.Write(r.dir, false)
}

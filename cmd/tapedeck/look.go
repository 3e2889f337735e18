package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/pflag"
	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/deck/library"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/deck/team"
	"github.com/tapedeck-dev/tapedeck/internal/page"
)

// asked reports whether a run of a store is meant, which --store says.
func (o *storeFlags) asked(f *pflag.FlagSet) (bool, error) {
	if !f.Changed("store") && (f.Changed("blobs") || f.Changed("project")) {
		return false, errors.New("--project and --blobs are of a team's store: --store default, or --store URL, says that it is meant")
	}
	return f.Changed("store"), nil
}

// A looking is what it takes to look at runs of a store where they lie. It must be closed.
type looking struct {
	ctx     context.Context
	stop    func()
	store   team.Access
	project string
	temp    *recording.Temp
	dir     string // temp's, and no link
	std     *console

	mu   sync.Mutex
	runs map[string]string // ids by directory; guarded by mu
	ends []func()          // guarded by mu
}

func (o *storeFlags) look(ctx context.Context, std *console) (_ *looking, err error) {
	l := &looking{std: std, runs: make(map[string]string)}
	l.ctx, l.stop = interruptible(ctx)
	if l.store, err = o.open(l.ctx); err != nil {
		l.stop()
		return nil, err
	}
	l.project = o.project
	if l.temp, err = recording.NewTemp(os.TempDir(), library.OpenPrefix); err != nil {
		l.close()
		return nil, err
	}
	if l.dir, err = filepath.EvalSymlinks(l.temp.Dir); err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

func (l *looking) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, end := range l.ends {
		end()
	}
	if l.temp != nil {
		_ = l.temp.Remove()
	}
	l.store.Close()
	l.stop()
}

// at makes the directory of a run; with a seq it has that record alone.
func (l *looking) at(id, dir string, seq *uint64) error {
	p := l.std.progress()
	_, end, err := team.Look(l.ctx, l.store, l.project, id, dir, &team.LookOptions{Seq: seq, Progress: p.bytes("fetching a run that cannot be read in parts")})
	if p.end(); err != nil {
		return storeHint(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ends = append(l.ends, end)
	return nil
}

// maxShown is how many runs of a store a page lists, those that were pushed last.
const maxShown = 1000

// shown are the runs of the store's project as a page shows them.
func (l *looking) shown(prices *llm.Prices) *page.Stacks {
	return page.ShowElsewhere(l.store.Name(), &page.Elsewhere{Rows: l.rows, Fill: l.fill, Search: l.search}, prices)
}

func (l *looking) rows() ([]library.Row, error) {
	runs, err := l.store.Runs(l.ctx, &team.Query{Project: l.project, Limit: maxShown})
	if err != nil {
		return nil, err
	}
	ids := make([]string, len(runs))
	for i := range runs {
		ids[i] = runs[i].ID
	}
	verdicts, err := l.store.Verdicts(l.ctx, l.project, ids)
	if err != nil {
		return nil, err
	}
	out := make([]library.Row, 0, len(runs))
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range slices.Backward(runs) {
		r := &runs[i]
		m := recording.NewManifest(r.StartedAt)
		m.ID, m.State, m.Argv, m.Exit, m.Totals, m.Parent, m.ForkSeq, m.Sealed = r.ID, r.State, r.Argv, r.Exit, r.Totals, r.Parent, r.ForkSeq, r.Sealed
		row := library.Row{Totals: r.Totals, Verdict: r.Verdict}
		row.Name, row.Path = r.ID, filepath.Join(l.dir, r.Digest.String(), library.UnpackedName)
		row.Recording = &recording.Recording{Dir: row.Path, Manifest: m}
		if found := verdicts[r.ID]; len(found) > 0 {
			row.Verdict = workersVerdict(&found[0])
		}
		l.runs[row.Path] = r.ID
		out = append(out, row)
	}
	return out, nil
}

// fill makes the directory of a run that rows has listed, once.
func (l *looking) fill(dir string) error {
	l.mu.Lock()
	id, known := l.runs[dir]
	l.mu.Unlock()
	if recording.Exists(filepath.Join(dir, recording.ManifestName)) {
		return nil
	}
	if !known {
		return fmt.Errorf("%w: the run has been removed from the store", page.ErrNoDocument)
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	return l.at(id, dir, nil)
}

// search finds runs by the texts that the store has of them.
func (l *looking) search(ctx context.Context, text string) (*page.Found, error) {
	out := &page.Found{Hits: []page.Hit{}}
	if strings.TrimSpace(text) == "" {
		return out, nil
	}
	hits, err := l.store.Search(ctx, text, &team.Query{Project: l.project})
	if errors.Is(err, team.ErrNoWords) {
		return out, nil
	}
	for i := range hits {
		out.Hits = append(out.Hits, page.Hit{Run: hits[i].Run.ID, Where: hits[i].What, Text: hits[i].Excerpt})
	}
	out.More = len(hits) >= team.DefaultLimit
	return out, err
}

// lookAt is the directory of a run of a store, for a command that shows one; with a seq it has that record alone.
func (o *storeFlags) lookAt(ctx context.Context, id string, seq *uint64, std *console) (dir string, clean func(), err error) {
	l, err := o.look(ctx, std)
	if err != nil {
		return "", nil, err
	}
	dir = filepath.Join(l.dir, library.UnpackedName)
	if err := l.at(id, dir, seq); err != nil {
		l.close()
		return "", nil, err
	}
	return dir, l.close, nil
}

package deck

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/axis/files"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/internal/jail"
	"github.com/tapedeck-dev/tapedeck/internal/jail/changes"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A changing follows the files that one run changes. The jail tells it of each call before it happens, and what stands there
// then is kept; before a model is asked, and when the program has ended, what has changed since the last time goes on the
// tape. Outside the jail nothing is told: what the two snapshots of the work tree say is all there is.
type changing struct {
	s       *session
	trees   *trees
	roots   []recording.Followed
	passing bool                          // a replay whose tape is thrown away
	journal atomic.Pointer[files.Journal] // nil before the program's world stands
	opened  atomic.Pointer[[]openedRoot]  // in the journal's order; the jail asks for them from its own threads
	staged  *files.Staging                // what the run made, where the tape itself holds it
	held    io.Closer                     // the mounts of the program's world: they cover what must not be seen, for us too

	stamps   *stamps
	servers  servers
	barriers sync.Mutex // one at a time
}

// An openedRoot is a directory of the program's world, held open.
type openedRoot struct {
	dir  string
	root *os.Root
}

func newChanging(s *session, t *trees, roots []recording.Followed) *changing {
	c := &changing{s: s, trees: t, roots: roots}
	c.opened.Store(new([]openedRoot))
	c.stamps = &stamps{root: c.rootOf, began: time.Now(), known: make(map[string]bool), noted: make(map[string]int64)}
	s.asked = c.asked
	return c
}

// rootOf is the open directory that holds path, the deepest one, and where it lies in it; nil for none.
func (c *changing) rootOf(path string) (root *os.Root, rest string) {
	deepest := -1
	for _, o := range *c.opened.Load() {
		if below, ok := strings.CutPrefix(path, o.dir); ok && len(o.dir) > deepest && (below == "" || below[0] == '/') {
			deepest, root, rest = len(o.dir), o.root, cmp.Or(strings.TrimPrefix(below, "/"), ".")
		}
	}
	return root, rest
}

// begin opens the directories as the program of w will see them. end must follow.
func (c *changing) begin(w world) (err error) {
	if c.held, err = w.holdMounts(); err != nil {
		return fmt.Errorf("what the program's world covers: %w", err)
	}
	var roots []files.JournalRoot
	var opened []openedRoot
	defer func() { c.opened.Store(&opened) }()
	for _, f := range c.roots {
		root, err := w.openRoot(f.Dir)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNotSeen) {
			continue
		}
		if err != nil {
			return fmt.Errorf("%s, whose changes are to be recorded: %w", f.Dir, err)
		}
		opened = append(opened, openedRoot{f.Dir, root})
		j := files.JournalRoot{Dir: f.Dir, Prefix: f.Prefix, Root: root}
		if f.Dir == c.trees.root {
			j.Tree, j.TreeAt = c.trees.before, c.trees.at
		}
		roots = append(roots, j)
	}
	if c.staged, err = files.NewStaging(c.trees.store, c.s.dir); err != nil {
		return fmt.Errorf("what the program will change: %w", err)
	}
	c.trees.made, c.trees.journal = c.staged, c.journal.Load
	c.journal.Store(files.NewJournal(roots, &files.JournalOptions{
		Store: c.trees.store, Staged: c.staged, Scrubber: c.s.scrub, Masker: c.s.mask, Exclude: c.trees.exclude,
		By: c.servers.conversation,
	}))
	return nil
}

// Changing implements jail.Watcher. What cannot be kept ends the run.
func (c *changing) Changing(call *jail.FileCall) (then func() error, err error) {
	t := &files.Touch{
		Rename: call.Op == changes.OpRename || call.Op == changes.OpExchange, Exchange: call.Op == changes.OpExchange,
		Link: call.Op == changes.OpLink, Ends: call.Cuts || slices.Contains(ending, call.Op), By: c.servers.changing(call.PID), Paths: make([]files.TouchedPath, len(call.Paths)),
	}
	for i, p := range call.Paths {
		t.Paths[i] = files.TouchedPath(p)
		c.stamps.touched(p.Path)
	}
	later := c.journal.Load().Touch(t)
	if later == nil {
		return nil, nil
	}
	return func() error {
		err := later()
		if err != nil {
			c.s.fail(err)
		}
		return err
	}, nil
}

// ending are the operations that end what stands at their last path.
var ending = []changes.Op{changes.OpUnlink, changes.OpRmdir, changes.OpRename}

// asked is told of each request before it is sent on or answered: of a model's, what has changed by then goes on the tape.
func (c *changing) asked(k exchange.Key) error {
	j := c.journal.Load()
	if j == nil || k.Kind != exchange.LLM {
		return nil
	}
	err := c.record(j.Barrier())
	if err != nil {
		c.s.fail(err)
	}
	return err
}

// end puts the last changes on the tape. The work tree's are those of the snapshot after the run.
func (c *changing) end() error {
	j := c.journal.Load()
	if j == nil {
		return nil
	}
	return c.record(j.End(c.trees.after))
}

func (c *changing) record(changes func(func(tape.Record, error) bool)) error {
	c.barriers.Lock()
	defer c.barriers.Unlock()
	for rec, err := range changes {
		if err == nil {
			err = c.s.rec.RecordRaw(rec.Kind, rec.Raw)
		}
		if err != nil {
			return fmt.Errorf("what the program changed: %w", err)
		}
	}
	return nil
}

// hideLate hides what became known late in all that is known of files, and returns how much changed.
func (c *changing) hideLate(o *files.LateOptions) (changed int, err error) {
	var trees []*files.Tree
	for _, t := range []*files.Tree{c.trees.before, c.trees.after} {
		if t != nil {
			trees = append(trees, t)
		}
	}
	var before, last struct {
		items int
		bytes int64
	}
	own := *o
	own.Progress = func(n int, size int64) {
		last.items, last.bytes = before.items+n, before.bytes+size
		o.Progress(last.items, last.bytes)
	}
	if changed, err = files.HideLate(&own, trees...); err != nil {
		return changed, err
	}
	before = last
	journal := c.journal.Load()
	if journal == nil { // a conversation alone is recorded (mcp wrap): no file changes
		return changed, nil
	}
	n, err := journal.HideLate(&own)
	return changed + n, err
}

// write writes what the changes come to: workspace.diff, and what the run found at the paths that it changed and that the
// snapshot of the work tree does not have. A replay that is no recording of its own leaves neither.
func (c *changing) write(sync bool) error {
	if c.passing {
		return nil
	}
	for _, f := range c.roots {
		t := c.found(f)
		if t == nil {
			continue
		}
		if err := adoptBlobs(c.s.store, c.trees.store, t); err != nil {
			return err
		}
		if err := recording.WriteWith(filepath.Join(c.s.dir, f.Name), t.Encode, sync); err != nil {
			return err
		}
	}
	return c.trees.write(sync)
}

// long are the files that the run left and that are too large to keep.
func (c *changing) long() map[string]string {
	if j := c.journal.Load(); j != nil {
		return j.Long()
	}
	return nil
}

// found returns what the run found in f; nil for nothing.
func (c *changing) found(f recording.Followed) *files.Tree {
	i := slices.IndexFunc(*c.opened.Load(), func(o openedRoot) bool { return o.dir == f.Dir })
	if i < 0 {
		return nil
	}
	t := c.journal.Load().Found(i)
	if t == nil || len(t.Entries)+len(t.Absent)+len(t.NotCovered)+len(t.Moved) == 0 {
		return nil
	}
	return t
}

// close closes the directories.
func (c *changing) close() {
	if j := c.journal.Load(); j != nil {
		j.Close()
	}
	for _, o := range *c.opened.Load() {
		o.root.Close()
	}
	if c.held != nil {
		c.held.Close()
	}
	if c.staged != nil {
		c.staged.Close()
	}
}

// errNotSeen says that a world tells nothing of what happens in a directory.
var errNotSeen = errors.New("changes there are not seen")

func (j jailed) holdMounts() (io.Closer, error) { return j.HoldMounts() }

// openRoot opens a directory as the program inside sees it.
func (j jailed) openRoot(path string) (*os.Root, error) {
	dir, err := j.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return os.OpenRoot(fmt.Sprintf("/proc/self/fd/%d", dir.Fd()))
}

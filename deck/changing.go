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
	resting func(r *exchange.Request, do func()) // does something while who asks rests
	passing bool                                 // a replay whose tape is thrown away
	journal atomic.Pointer[files.Journal]        // nil before the program's world stands
	opened  atomic.Pointer[[]openedRoot]         // in the journal's order; the jail asks for them from its own threads
	staged  *files.Staging                       // what the run made, where the tape itself holds it
	held    io.Closer                            // the mounts of the program's world: they cover what must not be seen, for us too

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
	c := &changing{s: s, trees: t, roots: roots, resting: func(_ *exchange.Request, do func()) { do() }}
	c.opened.Store(new([]openedRoot))
	c.stamps = &stamps{root: c.rootOf, began: time.Now(), known: make(map[string]time.Time), calls: make(map[string]calls), noted: make(map[string]stamped)}
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
	if c.held, err = w.HoldMounts(); err != nil {
		return fmt.Errorf("what the program's world covers: %w", err)
	}
	var roots []files.JournalRoot
	var opened []openedRoot
	defer func() { c.opened.Store(&opened) }()
	for _, f := range c.roots {
		root, err := openRoot(w, f.Dir)
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
		Store: c.trees.store, Staged: c.staged, Scrubber: c.s.scrub, Exclude: c.trees.exclude,
		By: c.servers.conversation,
	}))
	return nil
}

// openRoot opens a directory as the program of w sees it.
func openRoot(w world, path string) (*os.Root, error) {
	dir, err := w.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return os.OpenRoot(recording.DescriptorPath(dir, path))
}

// Changing implements jail.Watcher. What cannot be kept ends the run.
func (c *changing) Changing(call *jail.FileCall) (then func() error, err error) {
	t := &files.Touch{
		Rename: call.Op == changes.OpRename || call.Op == changes.OpExchange, Exchange: call.Op == changes.OpExchange,
		Link: call.Op == changes.OpLink, Ends: call.Cuts || slices.Contains(ending, call.Op), By: c.servers.changing(call.PID), Paths: make([]files.TouchedPath, len(call.Paths)),
	}
	for i, p := range call.Paths {
		t.Paths[i] = files.TouchedPath(p)
		c.stamps.touched(call.Op, p.Path, call.Paths[0].Path)
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

// asked is told of each request before it is sent on or answered: of a model's, what has changed by then goes on the tape, once who asks rests.
func (c *changing) asked(r *exchange.Request, k exchange.Key) (err error) {
	j := c.journal.Load()
	if j == nil || k.Kind != exchange.LLM {
		return nil
	}
	c.resting(r, func() { err = c.record(j.Barrier()) })
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
		if err := c.trees.adoptBlobs(t); err != nil {
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

// stamps gives files that a run writes the times that the recorded run's had: tar, ls -l and make see them. They are looked at
// when a program begins and when one ends, for who wrote a file and who then asks for its times are mostly two, and one of them when a program
// asks for it by its path. A time that a program sets stays as it sets it.
type stamps struct {
	root  func(path string) (*os.Root, string) // the directory of the run that holds path, and the rest; nil for none
	began time.Time

	changing atomic.Bool // something was changed

	mu    sync.Mutex
	fresh []string             // paths of calls that change files, since the last look, and the directories that hold them
	known map[string]time.Time // of fresh: when the last such call was about to be made
	older []string             // of those before, the latest: they may be open still
	calls map[string]calls     // that have changed a file, by path
	noted map[string]stamped   // by path
}

// aboutToBe is how long a call may take that was about to make a file: who looks meanwhile finds none, and looks again.
const aboutToBe = time.Second

// tick is by how much the kernel's times of files may lie back.
const tick = 10 * time.Millisecond

// Bounds of what one look looks at, in paths.
const (
	maxFresh = 20_000
	maxOlder = 64
)

// A stamped is what was noted of a file last: when it was written, and by how many calls it had changed and its size then, for a write sets the time first.
type stamped struct {
	at      int64
	written string
}

// calls are those that have changed a file: how many, whether one of them sets times, and whether one changes when the file was changed (a
// name, a mode) but not when it was written.
type calls struct {
	n            int
	times, state bool
}

// touched is told of a path before it is changed, and of the first one of the same call. The directory that holds it may change with it.
func (s *stamps) touched(op changes.Op, path, from string) {
	if !strings.HasPrefix(path, "/") { // the source of a link that has no name: a descriptor
		return
	}
	s.changing.Store(true)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, path := range []string{path[:max(strings.LastIndexByte(path, '/'), 1)], path} {
		s.add(path, time.Now())
		if c, ok := s.calls[path]; ok || len(s.calls) < maxFresh {
			c.n++
			s.calls[path] = c
		}
	}
	if c, ok := s.calls[path]; ok {
		c.times = c.times || op == changes.OpTimes || s.calls[from].times
		c.state = c.state || op != changes.OpOpen && op != changes.OpTruncate && op != changes.OpTimes
		s.calls[path] = c
	}
}

func (s *stamps) add(path string, at time.Time) {
	_, known := s.known[path]
	if !known && len(s.fresh) >= maxFresh {
		return
	}
	if !known {
		s.fresh = append(s.fresh, path)
	}
	s.known[path] = at
}

func (s *stamps) isKnown(path string) bool { return !s.known[path].IsZero() }

// look is told that a process begins or ends, which what says. Times that differ from those at the last look are kept as answers to the
// process, and where it was recorded given again.
func (s *stamps) look(in *processInputs, what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	paths := slices.Concat(slices.DeleteFunc(s.older, s.isKnown), s.fresh)
	known := s.known
	s.known, s.fresh = make(map[string]time.Time), nil
	var files []string
	for _, path := range paths {
		root, rest := s.root(path)
		if root == nil {
			continue
		}
		st, err := root.Lstat(rest)
		switch {
		case err == nil:
			s.stamp(in, what, path, st, root, rest)
			if st.Mode().IsRegular() {
				files = append(files, path)
			}
		case time.Since(known[path]) < aboutToBe:
			s.add(path, known[path])
		}
	}
	s.older = files[max(0, len(files)-maxOlder):]
}

// A wrote is what a process was told of a file: when it was written, and when it is said to have been. On a replay these are two times.
type wrote struct{ at, said int64 }

// toldTimes are what one process was told. The lock of stamps guards them.
type toldTimes struct {
	last  map[string]wrote // by path
	order []wrote          // those that are said to be others, by when they were
}

// inOrder reports whether a file that was written at a time can be said to have been at another one, and holds to it from then on: none of
// which this process was told was written before it and is said to have been after it. Within a tick nothing is before anything.
func (t *toldTimes) inOrder(at, said int64) bool {
	n, _ := slices.BinarySearchFunc(t.order, at, func(w wrote, at int64) int { return cmp.Compare(w.at, at) })
	for i := n - 1; i >= 0; i-- {
		if w := t.order[i]; w.at < at-int64(tick) {
			if w.said > said+int64(tick) {
				return false
			}
			break
		}
	}
	for _, w := range t.order[n:] {
		if w.at > at+int64(tick) {
			if w.said < said-int64(tick) {
				return false
			}
			break
		}
	}
	t.order = slices.Insert(t.order, n, wrote{at, said})
	return true
}

// asked is told that a process asks for a file that the run wrote, of so many bytes, which the kernel says was written at a time, and changed
// otherwise then or later. Each time that differs from the one before is kept, with how many calls had changed the file and its size, and given
// again where the process was recorded and these are the same: how often it is asked for is chance, and when between two writes. What
// contradicts the order in which files were written is not given, for then it is another program.
func (s *stamps) asked(in *processInputs, path string, size, at, changed int64) int64 {
	path = filepath.Clean(path)
	s.mu.Lock()
	defer s.mu.Unlock()
	last, known := in.told.last[path]
	switch {
	case known && (at == last.at || at == last.said):
		return last.said
	case !known && len(in.told.last) >= maxFresh:
		return at
	}
	calls := s.calls[path]
	key := fmt.Sprintf("wrote %d %d %s", calls.n, size, in.of.s.roots.TapePath(path))
	how := "written"
	if !s.ours(path, at) || s.since(at) && at+int64(tick) < changed && (calls.times || !calls.state) { // an owner may have been set by a descriptor right after
		how = "set"
	}
	said := at
	var then int64
	var howThen string
	_, _ = fmt.Sscan(string(in.answers.Held(key)), &then, &howThen)
	if then != 0 && then != at && s.ours(path, at) && (how == "set" || howThen != "set") && in.told.inOrder(at, then) {
		said = then
	}
	if in.told.last == nil {
		in.told.last = make(map[string]wrote)
	}
	in.told.last[path] = wrote{at, said}
	in.answers.Gave(key, fmt.Append(nil, said, " ", how))
	return said
}

// stamp looks at one path. Times are kept as "written accessed how calls size", in ns since 1970: how says whether the program set them. Who
// of several that begin and end beside each other is first to see what one of them wrote is chance, so they are given again by the calls that
// had changed the file, and its size, where nothing is recorded of this process. A file that was only read since is left alone: a
// program that reads it may watch whether it changes.
func (s *stamps) stamp(in *processInputs, what, path string, st fs.FileInfo, root *os.Root, rest string) {
	at, read := st.ModTime().UnixNano(), recording.Accessed(st).UnixNano()
	where := in.of.s.roots.TapePath(path)
	asked, written := what+" "+where, fmt.Sprint(s.calls[path].n, " ", st.Size())
	var wasAt, wasRead int64
	var how, calls, size string
	n, _ := fmt.Sscan(string(in.answers.Held(asked)), &wasAt, &wasRead, &how, &calls, &size)
	set := !s.ours(path, at)
	if st.Mode().IsRegular() && n == 5 && calls+" "+size != written { // it saw what was there before, or later
		n, wasAt, how = 0, 0, ""
	}
	if n < 2 && !set && st.Mode().IsRegular() {
		wasAt, wasRead = in.of.again.wrote(written + " " + where)
	}
	if wasAt != 0 && how != "set" && wasAt != at && !set && files.SetTimes(root, rest, wasRead, wasAt) == nil {
		at, read = wasAt, wasRead
	}
	if now := (stamped{at, written}); s.noted[path] != now {
		s.noted[path] = now
		how = "written"
		if set && !st.IsDir() {
			how = "set"
		}
		in.answers.Gave(asked, fmt.Append(nil, at, " ", read, " ", how, " ", written))
	}
}

// ours reports whether a time is that of a write of this run, as the kernel or a look says: who looks may give a file the time of what was
// there before just as it is written.
func (s *stamps) ours(path string, at int64) bool { return s.since(at) || s.noted[path].at == at }

// since reports whether a file may have been written at a time, in ns since 1970, by this run: other times were set, or found. The kernel's lie
// up to a tick back.
func (s *stamps) since(at int64) bool {
	return at >= s.began.Add(-tick).UnixNano() && at <= time.Now().UnixNano()
}

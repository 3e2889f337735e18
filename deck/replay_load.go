package deck

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/axis/files"
	"github.com/tapedeck-dev/tapedeck/deck/library"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/deck/screen"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/internal/jail"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// openSession begins the replay's own tape, with the secrets, masks and settings that the recorded run had.
func (r *replayer) openSession() error {
	m := r.rec.Manifest
	env := r.o.Env
	if env == nil {
		env = os.Environ()
	}
	r.played = playOf(m, env)
	r.played.env = r.moved.env(r.played.env)
	if len(r.o.Argv) > 0 {
		r.played.argv = r.o.Argv
	}
	g, err := newReplayRedactor(r.o.ConfigDir, m.Cwd, r.played, &r.roots, m.Masking)
	if err != nil {
		return err
	}
	if r.recorded, err = r.rec.Tree(); err != nil {
		return err
	}
	late := r.played.late(m.Secrets)
	r.noteKey(len(late))
	g.learnFiles(r.recorded, r.store, m.Roots.Tree)
	for dir, t := range r.found {
		g.learnFiles(t, r.store, dir)
	}
	g.learnSettings(m.Roots.Tree, r.recorded)
	g.scrub.Seek(late)
	g.begun = g.scrub.Mark()
	if err := r.loadConversations(g); err != nil {
		return err
	}
	r.s, err = newSession(&sessionOptions{
		redactor: g, dir: r.dir, script: m.Program.Path, args: r.played.argv[1:], roots: r.roots, replay: true, live: r.fork.live(), log: r.o.Log,
		recorded: r.conversations,
	})
	return err
}

// noteKey notes what another key than the recording's cannot tell: files, and so many secrets that are sought.
func (r *replayer) noteKey(late int) {
	n := recording.CountKeyed(r.recorded)
	for _, t := range r.found {
		n += recording.CountKeyed(t)
	}
	for _, said := range []string{r.rec.OtherKeyIn(r.o.ConfigDir, n), r.rec.UntoldSecrets(r.o.ConfigDir, late)} {
		if said != "" {
			r.notes = append(r.notes, said)
		}
	}
}

// loadTree reads the work tree as recorded. The replay's snapshot adds to the recording's blobs only what is new.
func (r *replayer) loadTree() (err error) {
	m := r.rec.Manifest
	lib := library.Of(m.Roots.LibraryRoot(m.Cwd))
	r.trees = &trees{
		s: r.s, root: r.roots.Tree, store: &layeredStore{r.s.store, r.store},
		cache: filepath.Join(lib.Dir, library.StatCacheName), exclude: append(r.hidden(lib), r.dir),
	}
	if r.o.TreeNow {
		return r.treeNow()
	}
	r.trees.before = r.recorded
	if r.trees.before == nil && m.Roots.Tree != "" {
		return fmt.Errorf("%s: %s is missing: the work tree cannot be restored", r.rec.Dir, recording.TreeName)
	}
	return nil
}

// hidden lists what the program may not see: recordings, and what is written to meanwhile. Of a work tree that lies elsewhere than where it was recorded it is in both places:
// one is read, the other is what the program sees.
func (r *replayer) hidden(lib *library.Library) []string {
	out := slices.Concat(lib.Hidden(r.rec.Dir), r.o.Own, OutputFiles(r.o.Stdout, r.o.Stderr))
	root, at := r.rec.Manifest.Roots.Tree, recording.Resolved(r.o.TreeAt)
	if at == "" || at == root {
		return out
	}
	for _, path := range append(library.Of(at).Hidden(recording.Resolved(r.rec.Dir)), out...) {
		out = append(out, path)
		if recording.Within(path, at) {
			out = append(out, root+strings.TrimPrefix(path, at))
		}
		if recording.Within(path, root) {
			out = append(out, at+strings.TrimPrefix(path, root))
		}
	}
	return out
}

// treeNow takes the work tree as it is for the one that the run found.
func (r *replayer) treeNow() (err error) {
	root := r.rec.Manifest.Roots.Tree
	tree := r.onDisk(root)
	if root == "" || !recording.IsDir(tree) {
		return fmt.Errorf("there is no work tree at %q now: replay over the recorded one", tree)
	}
	r.notes = append(r.notes, "replayed over the work tree as it is now, not as recorded")
	r.trees.at = time.Now()
	if r.trees.before, err = r.trees.snap(tree, files.SnapOptions{Store: r.trees.store, KeepCache: true}); err != nil {
		return fmt.Errorf("work tree as it is now: %w", err)
	}
	if r.trees.before.Root = root; r.recorded != nil { // a checkout has times of its making, and no recordings beside it
		r.trees.before.TakeTimes(r.recorded)
		if name := r.unseenLibrary(); name != "" {
			r.trees.before.LeaveOut(name, files.Excluded)
		}
	}
	return nil
}

// unseenLibrary is where recordings lay in the work tree, so that a listing showed it, where nothing stands now; else "".
func (r *replayer) unseenLibrary() string {
	tree, name := r.rec.Manifest.Roots.Tree, library.Name
	if _, err := os.Lstat(filepath.Join(r.onDisk(tree), name)); !errors.Is(err, fs.ErrNotExist) || r.recorded == nil || r.recorded.Covers(name) {
		return ""
	}
	return name
}

// onDisk is where a recorded directory lies on this machine's disk.
func (r *replayer) onDisk(dir string) string {
	if r.o.TreeAt != "" && dir == r.rec.Manifest.Roots.Tree {
		return r.o.TreeAt
	}
	return dir
}

// loadBook reads what answers the program over HTTP and WebSockets.
func (r *replayer) loadBook() error {
	f, err := r.rec.OpenTape()
	if err != nil {
		return err
	}
	defer f.Close()
	r.changed, r.removed, r.again = make(map[string]bool), make(map[string]bool), newRecordedProcesses(r.store)
	records := func(yield func(*tape.Record, error) bool) {
		for rec, err := range f.Records() {
			if err == nil {
				r.again.add(rec.Kind)
				r.survey(rec.Kind)
				r.fork.asks(rec.Kind)
			}
			if !yield(rec, err) {
				return
			}
		}
	}
	if r.book, err = exchange.NewBook(records, r.s.class, r.store); err != nil {
		return err
	}
	now, err := r.rec.Manifest.ComparingNow(r.config())
	if err != nil {
		return err
	}
	r.side = now.Side
	r.book.TellSideTraffic(r.side)
	if errFork := r.fork.divide(r); errFork != nil {
		return errFork
	}
	r.book.KeepOrder()
	if r.mayVary() {
		r.book.AnswerAlike()
	}
	if r.o.Proxy && r.rec.Manifest.Proxy && r.asked == 0 {
		r.gaps = append(r.gaps, NothingCame)
	}
	return err
}

// survey remembers what the recorded run changed, and counts what it asked for.
func (r *replayer) survey(k tape.Kind) {
	if tape.ExchangeOf(k) != nil {
		r.asked++
	}
	if f := tape.ChangedFile(k); f != nil {
		r.changed[f.Path] = true
	}
	if f, ok := k.(*tape.FileDelete); ok {
		r.removed[f.Path] = true
	}
}

// loadScreens says how the terminals compare. The replay's own is there by its end.
func (r *replayer) loadScreens() (err error) {
	m := r.rec.Manifest
	if r.rowMask, err = m.Masking.ScreenMasker(&r.roots); err != nil {
		return err
	}
	r.shown = [2]*screen.Side{screen.SideOf(r.rec), {Dir: r.dir, Finished: true}}
	if r.o.Screens && r.o.Mode == fidelity.Outcome {
		return errors.New("--tty compares screens, and --mode outcome nothing that was printed: leave out one of them")
	}
	r.screens, err = screen.Screens(m.TTY, r.rowMask, r.o.Screens, r.shown)
	return err
}

// watcher are those of a replay whose screens are compared; nil for none.
func (r *replayer) watcher() (*screen.Watcher, error) {
	if !r.o.Screens {
		return nil, nil
	}
	seen, err := r.shown[fidelity.Recorded].Show()
	if err != nil {
		return nil, err
	}
	return screen.NewWatcher(r.rec.Manifest.TTY, r.screens, seen), nil
}

// checkBlobs lists the blobs that the recording names and does not hold: what compares by digest alone would be green
// without them.
func (r *replayer) checkBlobs() error {
	missing, err := r.rec.MissingBlobs(r.store)
	r.gaps = append(r.gaps, missing...)
	return err
}

// loadConversations reads the conversations with MCP servers.
func (r *replayer) loadConversations(g *redactor) (err error) {
	if !r.rec.Manifest.FollowsMCP() {
		return nil
	}
	g.followMCP()
	var reveal func([]byte) []byte
	if r.played.reveals() {
		reveal = g.scrub.Reveal
	}
	if r.conversations, err = newRecordedConversations(g, r.rec.Records(), r.store, reveal, r.o.Patience); err != nil {
		return err
	}
	if r.o.Proxy && r.conversations.stdio > 0 {
		return fmt.Errorf("%s: %w", r.rec.Dir, errConversationsInJail)
	}
	return nil
}

// giveAgain returns what gives time and randomness to the processes of a replay; nil where they are not on the recording.
func (r *replayer) giveAgain(c *changing) (*processes, error) {
	m := r.rec.Manifest
	if !m.Axes[axisClock].On || r.o.Proxy {
		return nil, nil
	}
	seed, err := r.rec.Seed(r.s.key)
	if err != nil && !errors.Is(err, recording.ErrNoSeed) {
		return nil, err
	}
	r.again.sort()
	r.processes = replayProcesses(r.s, c, seed, r.again, m.StartedAt, r.o.Out != "")
	r.s.answered = r.processes.answered
	order := r.book.Order()
	r.processes.began, r.processes.over = order.ProcessBegan, order.ProcessEnded
	r.processes.wakes, r.processes.woken = order.Wakes, order.Woken
	r.processes.leaves, r.processes.ending, r.processes.reached = order.ProcessLeaves, order.ProcessEnding, order.Reached
	return r.processes, nil
}

// reveal returns what puts the values of this replay in the place of the recording's placeholders; nil where there is no
// secret.
func (r *replayer) reveal() func([]byte) []byte {
	if !r.played.reveals() {
		return nil
	}
	return r.s.scrub.Reveal
}

// overlaid lists the directories that the program may change: they get layers, so that nothing outlives the replay. Those of
// which something is recorded are among them even where their paths are absent here.
func (r *replayer) overlaid() []string {
	m := r.rec.Manifest
	dirs := m.Roots.Writable(m.Writable)
	for _, f := range m.Roots.Followed(m.Writable) {
		recorded := r.found[f.Dir] != nil || f.Dir == m.Roots.Tree
		if recorded && !slices.Contains(dirs, f.Dir) {
			dirs = append(dirs, f.Dir)
		}
	}
	return dirs
}

// mountPlan lays a layer over every directory that the program may change, and what the run found there over the disk.
func (r *replayer) mountPlan(p *run) error {
	r.mounts, _ = jail.MountsBelow()
	for i, d := range r.overlaid() {
		dir := filepath.Join(r.scratch.Dir, strconv.Itoa(i))
		lowers, err := r.lowers(d, dir)
		if err != nil {
			return err
		}
		o, err := overlayOver(d, dir, lowers...)
		if err != nil {
			return err
		}
		if t := r.trees.before; t != nil && t.MTime != 0 && d == r.rec.Manifest.Roots.Tree {
			if err := os.Chtimes(o.Upper, time.Time{}, time.Unix(0, t.MTime)); err != nil {
				return err
			}
		}
		p.overlays = append(p.overlays, o)
	}
	return nil
}

// lowers lists the layers that a directory is shown with, topmost first: what the run found there, and the directory as it is
// now. Where the run renamed directories what it found is in the upper layer: an overlay renames none of a lower one.
func (r *replayer) lowers(d, dir string) (out []string, err error) {
	t := r.found[d]
	if d == r.rec.Manifest.Roots.Tree && r.trees.before != nil {
		if t = r.trees.before; r.found[d] != nil {
			t = t.With(r.found[d])
		}
	}
	if t != nil {
		o := files.LayerOptions{Upper: r.inUpper(t, d)}
		layer := filepath.Join(dir, "recorded")
		if o.Upper {
			layer = upperOf(dir)
		} else {
			out = append(out, layer)
		}
		if err := r.layer(t, d, layer, &o); err != nil {
			return nil, err
		}
	}
	switch disk := r.onDisk(d); {
	case recording.IsDir(disk):
		return r.ordered(d, dir, append(out, disk))
	case len(out) == 0: // an overlay has a lower layer
		empty := filepath.Join(dir, "empty")
		if err := os.MkdirAll(empty, 0o700); err != nil {
			return nil, err
		}
		out = append(out, empty)
	}
	return out, nil
}

// ordered adds to lowers what has directories listed as on the disk, where the run wrote to that and not to an overlay.
func (r *replayer) ordered(d, dir string, lowers []string) ([]string, error) {
	m := r.rec.Manifest
	layered := m.Again != nil && m.Again.Isolated || m.Fork != nil || r.fork != nil
	if layered || r.mountedBelow(d) {
		return lowers, nil
	}
	shown := lowers
	if upper := upperOf(dir); recording.IsDir(upper) {
		shown = append([]string{upper}, lowers...)
	}
	order := filepath.Join(dir, "order")
	ok, err := files.BuildOrder(order, pathsIn(r.followed(d), r.changed), shown...)
	if ok {
		lowers = append(lowers, order)
	}
	return lowers, err
}

// mountedBelow reports whether something is mounted below d on the host, or that cannot be told.
func (r *replayer) mountedBelow(d string) bool { return r.mounts == nil || r.mounts(d) }

// inUpper reports whether the upper layer of d can hold what the run found, and need do so.
func (r *replayer) inUpper(t *files.Tree, d string) bool {
	if len(t.Moved) == 0 {
		return false
	}
	if r.mountedBelow(d) {
		r.notes = append(r.notes, fmt.Sprintf("something is mounted below %s: renaming a directory there (%s) fails on a replay", d,
			strings.Join(t.Moved[:min(len(t.Moved), 3)], ", ")))
		return false
	}
	return true
}

// layer makes what the run found in a directory, as far as it is not there now.
func (r *replayer) layer(t *files.Tree, real, layer string, o *files.LayerOptions) error {
	isTree := real == r.rec.Manifest.Roots.Tree
	if isTree && !r.o.TreeNow {
		r.trees.at = time.Now()
	}
	o.Scrubber, o.Exclude, o.Reveal = r.s.scrub, r.trees.exclude, r.reveal()
	o.Gone = append(library.Of(r.rec.Manifest.Roots.LibraryRoot(r.rec.Manifest.Cwd)).Later(r.rec.Manifest.SeededBy()), r.dir)
	for _, path := range OutputFiles(r.o.Stdout, r.o.Stderr) {
		if rest, ok := strings.CutPrefix(path, real+"/"); ok && !r.o.TreeNow && t.Covers(rest) { // the run's went elsewhere
			o.Gone = append(o.Gone, path)
		}
	}
	o.Exclude = slices.DeleteFunc(slices.Clone(o.Exclude), func(path string) bool { return slices.Contains(o.Gone, path) })
	o.Changed, o.Removed = pathsIn(r.followed(real), r.changed), pathsIn(r.followed(real), r.removed)
	if isTree {
		o.ScrubID, o.CachePath = r.s.id, r.trees.cache
	}
	stats, err := files.BuildLayer(t, r.trees.store, r.onDisk(real), layer, o)
	switch {
	case err != nil:
		return fmt.Errorf("restoring what the run found in %s: %w", real, err)
	case isTree:
		return errors.Join(r.showLibrary(layer), r.noteLayer(stats))
	}
	r.noteFound(real, stats)
	return nil
}

// showLibrary has a listing of the work tree show that recordings lie there, as the jail shows them.
func (r *replayer) showLibrary(layer string) error {
	name := r.unseenLibrary()
	if name == "" {
		return nil
	}
	path := filepath.Join(layer, name)
	err := os.MkdirAll(path, 0o700)
	if err == nil {
		err = os.WriteFile(filepath.Join(path, ".gitignore"), []byte("*\n"), 0o444)
	}
	if errors.Is(err, fs.ErrPermission) { // of a checkout that nobody may write to
		return nil
	}
	return err
}

// noteFound notes what of a directory outside the work tree differs on the disk.
func (r *replayer) noteFound(dir string, stats *files.LayerStats) {
	for _, n := range stats.Notes {
		r.altered = true
		r.unshown = true
		r.notes = append(r.notes, fmt.Sprintf("%s was not shown as the run found it (%s)", r.followed(dir).Prefix+n.Path, n.Why))
	}
	if stats.Differing > 0 {
		r.notes = append(r.notes, fmt.Sprintf("what the run changed in %s was shown as it found it; on the disk %s; what it only "+
			"read there is as it is now", dir, differNow(stats, r.followed(dir).Prefix)))
	}
}

func (r *replayer) followed(dir string) recording.Followed {
	m := r.rec.Manifest
	all := m.Roots.Followed(m.Writable)
	return all[slices.IndexFunc(all, func(f recording.Followed) bool { return f.Dir == dir })]
}

// pathsIn are those of paths that lie in a directory, relative to it.
func pathsIn(f recording.Followed, paths map[string]bool) map[string]bool {
	out := make(map[string]bool)
	for path := range paths {
		if rel, ok := strings.CutPrefix(path, f.Prefix); ok {
			out[rel] = true
		}
	}
	return out
}

// noteLayer notes what of the work tree is not shown as recorded, and what of it differs on the disk.
func (r *replayer) noteLayer(stats *files.LayerStats) error {
	var scrubbed []string
	r.altered = r.altered || len(stats.Notes) > 0
	for _, n := range stats.Notes {
		r.unshown = true
		r.notes = append(r.notes, fmt.Sprintf("%s was not shown as recorded (%s)", n.Path, n.Why))
		if _, covered := r.trees.before.Lookup(n.Path); n.Why == files.NoteScrubbed && covered {
			scrubbed = append(scrubbed, n.Path)
		}
	}
	if stats.Differing > 0 && recording.IsDir(r.onDisk(r.rec.Manifest.Roots.Tree)) {
		r.notes = append(r.notes, fmt.Sprintf("the work tree was shown as recorded; on the disk %s, which --tree now would show",
			differNow(stats, "")))
	}
	var err error
	r.trees.before, err = r.trees.before.WithStandIns(scrubbed, r.trees.store, r.s.scrub, r.reveal())
	return err
}

// differNow says how many files differ, and which are the first, each behind prefix.
func differNow(stats *files.LayerStats, prefix string) string {
	var names []string
	for _, p := range stats.Differ {
		names = append(names, prefix+p)
	}
	first := strings.Join(names, ", ")
	switch more := stats.Differing - len(names); {
	case stats.Differing == 1:
		return fmt.Sprintf("one file differs now (%s)", first)
	case more > 0:
		return fmt.Sprintf("%d files differ now (%s and %d more)", stats.Differing, first, more)
	}
	return fmt.Sprintf("%d files differ now (%s)", stats.Differing, first)
}

// restoreMoved puts the recorded work tree where it is moved to. What the snapshot does not cover shows through as it is
// now, as it does in the jail: as a link.
func (r *replayer) restoreMoved() error {
	if r.moved.to == "" || r.trees.before == nil {
		return nil
	}
	secret, err := files.Restore(r.trees.before, r.trees.store, r.moved.to)
	if err != nil {
		return fmt.Errorf("restoring the work tree: %w", err)
	}
	root, err := os.OpenRoot(r.moved.to)
	if err != nil {
		return err
	}
	defer root.Close()
	var scrubbed []string
	for _, path := range secret {
		own, err := r.restoreSecret(root, path)
		if err != nil {
			return fmt.Errorf("restoring %s: %w", path, err)
		}
		if !own {
			scrubbed = append(scrubbed, path)
		}
	}
	if r.trees.before, err = r.trees.before.WithStandIns(scrubbed, r.trees.store, r.s.scrub, r.reveal()); err != nil {
		return err
	}
	left := copyBudget{files: maxCopiedFiles, bytes: maxCopiedBytes}
	for _, n := range r.trees.before.NotCovered {
		path := filepath.FromSlash(n.Path)
		if n.Reason != files.Excluded {
			r.showUncovered(root, path, &left)
		} else if path == library.Name || recording.IsDir(filepath.Join(r.moved.from, path)) { // a listing showed that recordings are there
			if err := root.MkdirAll(path, 0o700); err != nil {
				r.notes = append(r.notes, fmt.Sprintf("%s is not there (%v)", path, err))
			}
		}
		if err := r.trees.before.Retime(root, filepath.Dir(path)); err != nil {
			return err
		}
	}
	return nil
}

// showUncovered shows what the snapshot left out as it is now: a copy, so that the disk keeps its own, or a link where that
// would be too much.
func (r *replayer) showUncovered(root *os.Root, path string, left *copyBudget) {
	r.trees.exclude = append(r.trees.exclude, filepath.Join(r.moved.to, path))
	from := filepath.Join(r.moved.from, path)
	if left.fits(from) {
		if err := copyInto(root, path, from); err != nil {
			r.notes = append(r.notes, fmt.Sprintf("%s is not there as it is on the disk (%v)", path, err))
		}
		return
	}
	if err := root.Symlink(from, path); err != nil {
		r.notes = append(r.notes, fmt.Sprintf("%s is not there (%v)", path, err))
		return
	}
	r.notes = append(r.notes, path+" is the disk's own, for it is too large to copy: what the replay wrote there stays")
}

// restoreSecret takes a file that holds a secret from the disk, while it is the recorded one; else its scrubbed form.
func (r *replayer) restoreSecret(root *os.Root, path string) (own bool, err error) {
	e, ok := r.trees.before.Lookup(path)
	if !ok {
		return true, nil
	}
	local := filepath.FromSlash(path)
	b, err := os.ReadFile(filepath.Join(r.moved.from, local))
	own = err == nil && r.s.scrub.KeyedDigest(b) == e.Secret
	if !own {
		r.altered = true
		r.unshown = true
		r.notes = append(r.notes, path+" was not shown as recorded (it holds a secret, and is not on the disk as it was)")
		if b, err = r.store.Get(e.Digest); err != nil {
			return false, err
		}
		if reveal := r.reveal(); reveal != nil {
			b = reveal(b)
		}
	}
	return own, root.WriteFile(local, b, e.Mode.FileMode().Perm())
}

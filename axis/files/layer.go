package files

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/tapedeck-dev/tapedeck/cas"
)

// LayerOptions says how a layer is built. Nil and zero work.
type LayerOptions struct {
	// Scrubber tells whether a secret file is still the recorded one; nil cannot, and then its scrubbed form is shown.
	Scrubber Scrubber
	// ScrubID and CachePath name the stat cache of the last snapshot, as in SnapOptions. It is only read.
	ScrubID   string
	CachePath string
	// Exclude lists absolute paths that are left as they are, beside the directory .tapedeck at the root.
	Exclude []string
	// Gone lists absolute paths that the run did not find, whatever the tree covers: they are covered up, and count as nothing that differs.
	Gone []string
	// Reveal makes of the stored bytes of a secret file what is shown where the true ones are not to be had: values that work
	// in the place of its placeholders. Nil shows the placeholders.
	Reveal func(stored []byte) []byte
	// Upper says that the layer is the overlay's upper one: it then holds whole what the tree says was moved, for an overlay
	// renames no directory that lies in a lower layer.
	Upper bool
	// Changed holds the paths that the recorded run changed itself: that they differ now is no news. Removed holds those of them that it
	// removed or renamed: that what stood there and below is missing is no news either.
	Changed, Removed map[string]bool
}

// LayerStats says what a layer holds.
type LayerStats struct {
	Unchanged int      // files and links that stand as recorded
	Written   int      // files and links that the layer holds
	Hidden    int      // paths that exist now, were not recorded, and are hidden with what lies below
	Bytes     int64    // length of the files that the layer holds
	Differing int      // of what is written or hidden: not in LayerOptions.Changed
	Differ    []string // the first of these, at most maxDiffer paths
	Notes     []LayerNote
}

// maxDiffer is how many paths a LayerStats names.
const maxDiffer = 3

// A LayerNote is a path that the layer does not show as it was recorded.
type LayerNote struct {
	Path string
	Why  NoteReason
}

// A NoteReason says why a path is not shown as recorded.
type NoteReason string

// The reasons of notes.
const (
	// NoteScrubbed is a secret file that is no longer the recorded one, or is gone: its scrubbed form is shown.
	NoteScrubbed NoteReason = "scrubbed"
	// NoteUnreadable is a path of a partial tree that cannot be looked at now: it is shown as it is.
	NoteUnreadable NoteReason = "unreadable"
	// NoteMode is a secret file whose bytes are those recorded but whose permissions are not: it is shown as it is.
	NoteMode NoteReason = "mode"
)

// BuildLayer fills layerDir, which must be empty or absent, so that an overlay of it above realRoot shows the recorded
// tree: it holds what is missing or differs now, and hides by whiteouts what was not there. What the tree lists as not
// covered shows through as it is now. A secret file is left as it is while its bytes are those recorded. Where realRoot
// does not exist the layer is the whole tree.
//
// The layer of a partial tree shows its entries as they were recorded, hides its absent paths, and leaves everything else as it
// is now. Directories of it that are absent now are made. A path that cannot be looked at is noted.
//
// A file that stands unchanged costs a stat where the cache knows it, else a reading. The overlay must be mounted with
// userxattr, as one in a user namespace is. Whiteouts need Linux: elsewhere hiding a path is errors.ErrUnsupported.
//
// Errors: those of Restore.
func BuildLayer(t *Tree, store cas.Store, realRoot, layerDir string, opts *LayerOptions) (*LayerStats, error) {
	if err := t.Validate(); err != nil {
		return nil, err
	}
	l := &layerer{tree: t, store: store, stats: &LayerStats{}, made: map[string]bool{"": true}}
	if opts != nil {
		l.opts = *opts
	}
	l.above = aboveAll(l.opts.Changed)
	if err := l.open(realRoot, layerDir); err != nil {
		return nil, fmt.Errorf("files: layer: %w", err)
	}
	defer l.close()
	if err := l.dir("", l.real != nil); err != nil {
		return nil, fmt.Errorf("files: layer: %w", err)
	}
	return l.stats, l.finish()
}

// A layerer compares the tree with what stands on the disk, directory by directory.
type layerer struct {
	tree     *Tree
	store    cas.Store
	opts     LayerOptions
	cache    *statCache
	real     *os.Root // nil where it does not exist
	top      folder   // real, for what package os does not read
	layer    *os.Root
	exclude  map[string]bool
	gone     map[string]bool
	children map[string][]*Entry // of each directory of the tree, by its path
	absent   map[string][]string // names, by the directory that holds none such
	rootPerm fs.FileMode
	made     map[string]bool // directories that the layer has
	dirs     []*Entry        // the same, to get their permissions at the end; each behind the one that holds it
	retimed  int             // files that the layer holds for their times alone
	whole    bool            // within a directory that the layer holds whole
	hidden   string          // the whiteout that was made last; "" for none
	above    map[string]bool // directories above what LayerOptions.Changed holds
	stats    *LayerStats
}

func (l *layerer) open(realRoot, layerDir string) error {
	l.cache, _ = loadCache(l.opts.CachePath, l.opts.ScrubID) // without one more is read
	l.children = make(map[string][]*Entry)
	for i := range l.tree.Entries {
		e := &l.tree.Entries[i]
		l.children[parentOf(e.Path)] = append(l.children[parentOf(e.Path)], e)
	}
	l.absent = make(map[string][]string)
	for _, p := range l.tree.Absent {
		l.absent[parentOf(p)] = append(l.absent[parentOf(p)], baseOf(p))
	}
	l.rootPerm = 0o755
	real, err := os.OpenRoot(realRoot)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err == nil {
		l.real = real
		if l.top, err = topFolder(real); err != nil {
			l.close()
			return err
		}
		l.exclude = newWalker(real, realRoot, l.opts.Exclude).exclude
		l.gone = below(realRoot, l.opts.Gone)
		if info, err := real.Lstat("."); err == nil {
			l.rootPerm = info.Mode().Perm()
		}
	}
	if l.layer, err = OpenEmpty(layerDir); err != nil {
		l.close()
	}
	return err
}

func (l *layerer) close() {
	if l.real != nil {
		l.top.letGo()
		l.real.Close()
	}
	if l.layer != nil {
		l.layer.Close()
	}
}

// finish gives the directories of the layer what the overlay shows of them in place of those below.
func (l *layerer) finish() error {
	if err := finishDirs(l.layer, l.dirs); err != nil {
		return fmt.Errorf("files: layer: %w", err)
	}
	return l.layer.Chmod(".", l.rootPerm)
}

// dir brings one directory of the tree into the layer. onDisk says that a directory stands there now.
func (l *layerer) dir(path string, onDisk bool) error {
	now := make(map[string]fs.FileInfo)
	switch {
	case onDisk && l.tree.Partial:
		l.look(path, now)
	case onDisk:
		if err := l.list(path, now); err != nil {
			return err
		}
	}
	for _, e := range l.children[path] {
		name := baseOf(e.Path)
		if info, ok := now[name]; ok && info == nil {
			continue // it is noted
		}
		if err := l.entry(e, now[name]); err != nil {
			return fmt.Errorf("%s: %w", e.Path, err)
		}
		delete(now, name)
	}
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if now[name] == nil {
			continue // as above, or there is nothing
		}
		if err := l.hide(join(path, name)); err != nil {
			return fmt.Errorf("%s: %w", join(path, name), err)
		}
	}
	return nil
}

// list notes what stands in a directory now. One that cannot be read any more is covered whole.
func (l *layerer) list(path string, now map[string]fs.FileInfo) error {
	entries, err := ListDir(l.real, path)
	if errors.Is(err, fs.ErrPermission) {
		return l.opaque(path)
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			now[e.Name()] = info
		}
	}
	return nil
}

// look notes what stands in a directory now at the paths that a partial tree names; nil where that is not to be told. Directories
// may hold much else.
func (l *layerer) look(path string, now map[string]fs.FileInfo) {
	see := func(name string) {
		p := join(path, name)
		info, err := l.real.Lstat(localName(p))
		switch {
		case err == nil:
			now[name] = info
		case !isGone(err):
			now[name] = nil
			l.stats.Notes = append(l.stats.Notes, LayerNote{Path: p, Why: NoteUnreadable})
		}
	}
	for _, e := range l.children[path] {
		see(baseOf(e.Path))
	}
	for _, name := range l.absent[path] {
		see(name)
	}
}

// hide covers a path that was not recorded, unless the recording says nothing about it.
func (l *layerer) hide(path string) error {
	if _, ok := l.tree.Lookup(parentOf(path)); l.gone[path] && (ok || parentOf(path) == "") && !l.whole {
		return errors.Join(l.mkdirs(parentOf(path)), l.whiteout(path))
	}
	wasAbsent := slices.Contains(l.absent[parentOf(path)], baseOf(path))
	if l.exclude[path] || !wasAbsent && !l.tree.Covers(path) {
		return nil
	}
	if l.whole { // nothing shows through
		l.stats.Hidden++
		return l.differsBelow(path)
	}
	if err := l.mkdirs(parentOf(path)); err != nil {
		return err
	}
	l.stats.Hidden++
	return errors.Join(l.differsBelow(path), l.whiteout(path))
}

func (l *layerer) whiteout(path string) error {
	err := whiteout(l.layer, path, l.hidden)
	if err == nil {
		l.hidden = path
	}
	return err
}

func (l *layerer) opaque(path string) error {
	if err := l.mkdirs(path); err != nil {
		return err
	}
	return makeOpaque(l.layer, path)
}

// mkdirs makes the directories that lead to path, and path.
func (l *layerer) mkdirs(path string) error {
	if l.made[path] {
		return nil
	}
	if err := l.mkdirs(parentOf(path)); err != nil {
		return err
	}
	e, ok := l.tree.Lookup(path)
	if !ok {
		return fmt.Errorf("files: %s: %w", path, errParent)
	}
	l.made[path] = true
	dir := *e
	if info, err := l.lstat(path); err == nil && dir.MTime == 0 {
		dir.MTime = info.ModTime().UnixNano()
	}
	l.dirs = append(l.dirs, &dir)
	return l.layer.Mkdir(localName(path), 0o700)
}

// lstat looks at what stands on the disk.
func (l *layerer) lstat(path string) (fs.FileInfo, error) {
	if l.real == nil {
		return nil, fs.ErrNotExist
	}
	return l.real.Lstat(localName(path))
}

// entry brings one entry of the tree into the layer; info is what stands there now, nil for nothing.
func (l *layerer) entry(e *Entry, info fs.FileInfo) error {
	var mode Mode
	if info != nil {
		mode, _ = ModeOf(info.Mode())
	}
	if e.Mode.IsDir() {
		if !l.whole && l.isMoved(e.Path) {
			return l.holdWhole(e.Path, mode.IsDir())
		}
		if l.whole || !mode.IsDir() || l.otherDir(e, info, mode) {
			if err := l.mkdirs(e.Path); err != nil {
				return err
			}
		}
		return l.dir(e.Path, mode.IsDir())
	}
	same, err := l.same(e, info, mode)
	if err != nil {
		return err
	}
	if same {
		l.stats.Unchanged++
		if l.whole || l.otherTime(e, info) {
			return l.copy(e, info)
		}
		return nil
	}
	if info != nil || !l.wasRemoved(e.Path) {
		l.differs(e.Path)
	}
	return l.write(e)
}

// otherDir reports whether a directory is not as it was recorded, what it holds left aside.
func (l *layerer) otherDir(e *Entry, info fs.FileInfo, mode Mode) bool {
	return mode != e.Mode || e.MTime != 0 && e.MTime != info.ModTime().UnixNano() || l.attrs(e.Path) != e.Attrs
}

// attrs are the extended attributes that stand on the disk.
func (l *layerer) attrs(path string) string { return rootAttrs(l.top, path).encode(l.opts.Scrubber) }

// write puts a file or link into the layer that does not stand on the disk as it was recorded.
func (l *layerer) write(e *Entry) error {
	l.stats.Written++
	if e.Secret == "" {
		return l.create(e)
	}
	l.note(e, NoteScrubbed)
	b, err := l.store.Get(e.Digest)
	if err != nil {
		return err
	}
	if l.opts.Reveal != nil {
		b = l.opts.Reveal(b)
	}
	return l.fill(e, bytes.NewReader(b), e.Mode.FileMode())
}

// create puts a file or link into the layer as the store has it.
func (l *layerer) create(e *Entry) error {
	if err := l.mkdirs(parentOf(e.Path)); err != nil {
		return err
	}
	n, err := create(l.layer, e.Path, e, e.Mode.FileMode(), l.store)
	l.stats.Bytes += n
	if err != nil {
		return err
	}
	return e.setTime(l.layer)
}

// fill puts a file into the layer that holds what r gives.
func (l *layerer) fill(e *Entry, r io.Reader, perm fs.FileMode) error {
	if err := l.mkdirs(parentOf(e.Path)); err != nil {
		return err
	}
	n, err := Fill(l.layer, e.Path, r, perm)
	l.stats.Bytes += n
	return errors.Join(err, setAttrs(l.layer, e.Path, e.Attrs), e.setTime(l.layer))
}

// differs counts a path that is not now as it was recorded.
func (l *layerer) differs(path string) {
	if l.opts.Changed[path] {
		return
	}
	l.stats.Differing++
	if len(l.stats.Differ) < maxDiffer {
		l.stats.Differ = append(l.stats.Differ, path)
	}
}

// wasRemoved reports whether the recorded run took away what stood at path, or a directory above.
func (l *layerer) wasRemoved(path string) bool {
	for path != "" && !l.opts.Removed[path] {
		path = parentOf(path)
	}
	return path != ""
}

// differsBelow is differs for a path that is hidden. A directory that the recorded run changed something in was made by it, or
// for it: of such a one what stands there now counts, file by file.
func (l *layerer) differsBelow(path string) error {
	if !l.above[path] {
		l.differs(path)
		return nil
	}
	return fs.WalkDir(l.real.FS(), path, func(p string, d fs.DirEntry, err error) error {
		switch {
		case isGone(err):
			return nil
		case err != nil: // cannot be looked into
			l.differs(p)
			return nil
		case !d.IsDir() || !l.above[p] && !l.opts.Changed[p]:
			l.differs(p)
		default:
			return nil
		}
		if d.IsDir() {
			return fs.SkipDir
		}
		return nil
	})
}

// aboveAll returns the directories above paths.
func aboveAll(paths map[string]bool) map[string]bool {
	above := make(map[string]bool)
	for p := range paths {
		for p = parentOf(p); p != "" && !above[p]; p = parentOf(p) {
			above[p] = true
		}
	}
	return above
}

func (l *layerer) note(e *Entry, why NoteReason) {
	l.stats.Notes = append(l.stats.Notes, LayerNote{Path: e.Path, Why: why})
}

// same reports whether a file, link or FIFO stands on the disk as it was recorded. info and mode are what stands there now.
func (l *layerer) same(e *Entry, info fs.FileInfo, mode Mode) (bool, error) {
	if info == nil || mode&TypeMask != e.Mode&TypeMask {
		return false, nil
	}
	if e.Mode.IsLink() {
		target, err := l.real.Readlink(localName(e.Path))
		return err == nil && filepath.ToSlash(target) == e.Target, nil
	}
	if e.Mode.IsFIFO() || e.Secret == "" && mode != e.Mode {
		return mode == e.Mode, nil
	}
	if l.attrs(e.Path) != e.Attrs {
		return false, nil
	}
	same, err := l.sameBytes(e, info)
	if lost(err) {
		return false, nil
	}
	if err == nil && same && mode != e.Mode {
		l.note(e, NoteMode)
	}
	return same, err
}

// lost reports whether err says that a file cannot be read: it is then shown from the store.
func lost(err error) bool {
	return isGone(err) || errors.Is(err, fs.ErrPermission) || errors.Is(err, errNotRegular) || errors.Is(err, errTooLarge)
}

// sameBytes compares the content of a regular file, by its stamp where the cache knows it.
func (l *layerer) sameBytes(e *Entry, info fs.FileInfo) (bool, error) {
	if st, ok := stampOf(info); ok {
		// A cache that was made before a secret was known has the file as one without.
		if c, hit := l.cache.get(e.Path, st); hit && (e.Secret == "" || c.secret != "") {
			return sameContent(e, &Entry{Mode: e.Mode, Digest: c.digest, Size: c.size, Secret: c.secret}), nil
		}
	}
	if e.Secret != "" {
		return l.sameSecret(e, info)
	}
	if info.Size() != e.Size {
		return false, nil
	}
	d, err := digestOf(l.real, e.Path)
	return d == e.Digest, err
}

func (l *layerer) sameSecret(e *Entry, info fs.FileInfo) (bool, error) {
	if l.opts.Scrubber == nil {
		return false, nil
	}
	b, err := ReadRegular(l.real, e.Path, max(info.Size(), DefaultMaxFileSize))
	return err == nil && l.opts.Scrubber.KeyedDigest(b) == e.Secret, err
}

// isMoved reports whether the layer must hold a directory whole.
func (l *layerer) isMoved(path string) bool {
	_, moved := slices.BinarySearch(l.tree.Moved, path)
	return moved && l.opts.Upper
}

// holdWhole brings a directory into the layer with everything that stood in it, so that nothing of it lies in a layer below.
func (l *layerer) holdWhole(path string, onDisk bool) error {
	if err := l.opaque(path); err != nil {
		return err
	}
	l.whole = true
	defer func() { l.whole = false }()
	return l.dir(path, onDisk)
}

// copy puts a file or link that stands on the disk as it was recorded into the layer. A secret's true bytes are on the disk alone.
func (l *layerer) copy(e *Entry, info fs.FileInfo) error {
	if e.Secret == "" {
		return l.create(e)
	}
	from, _, err := OpenRegular(l.real, e.Path)
	if err != nil {
		return err
	}
	defer from.Close()
	return l.fill(e, from, info.Mode().Perm())
}

// What a layer holds for the sake of times alone; files beyond that are shown with those that they have now.
const (
	maxRetimedFiles = 20_000
	maxRetimedBytes = 256 << 20
)

// otherTime reports whether a file or link that stands on the disk as it was recorded was written at another time, and is to be shown
// with the recorded one.
func (l *layerer) otherTime(e *Entry, info fs.FileInfo) bool {
	if e.MTime == 0 || info.ModTime().UnixNano() == e.MTime ||
		l.retimed >= maxRetimedFiles || l.stats.Bytes+e.Size > maxRetimedBytes {
		return false
	}
	l.retimed++
	return true
}

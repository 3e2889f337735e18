package files

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tapedeck-dev/tapedeck/cas"
)

// DefaultMaxFileSize is the length in bytes of the longest file that a snapshot takes by itself: 64 MiB.
const DefaultMaxFileSize = 64 << 20

// A Scrubber takes secrets out of what is written; *scrub.Scrubber is one. Its methods are called by several goroutines.
type Scrubber interface {
	// Bytes returns b with a placeholder for each secret, and whether there was one.
	Bytes(b []byte) (out []byte, found bool)
	// KeyedDigest identifies b to whoever holds the project's key, and says nothing to anyone else.
	KeyedDigest(b []byte) string
	// CredentialFile reports whether the file at a path with slashes holds credentials by its place or name.
	CredentialFile(path string) bool
}

// SnapOptions says how a snapshot is taken. Nil and zero work.
type SnapOptions struct {
	// Store takes the contents; nil takes digests only. With a *cas.Dir the contents of files that did not change since
	// the snapshot of CachePath are hard links into the store of that one.
	Store cas.Store
	// Scrubber finds secrets; nil finds none, and then files that hold credentials by their name are not covered.
	Scrubber Scrubber
	// ScrubID names what Scrubber looks for. A cache made under another is not used.
	ScrubID string
	// Known is an earlier tree, whose contents Store has. A file that it has as secret, and whose true bytes are still those, is taken as it stands
	// there: the run that looks at it now may not know the secret.
	Known *Tree
	// Journal, when not nil, is of the run whose end this snapshot is of, with RootName among its roots. A file that it read
	// already, and that is as it was then, is not read again; Store has what the journal stored.
	Journal *Journal
	// Exclude lists absolute paths that are never taken, beside the directory .tapedeck at the root.
	Exclude []string
	// RootName is the path that the tree is known by; "" is that of the root itself. Exclude is relative to it, and a
	// snapshot through /proc/self/fd/N needs it.
	RootName string
	// CachePath is the file of the stat cache; "" is none.
	CachePath string
	// CacheFailed, when not nil, is told why the stat cache cannot be used; the snapshot is taken without it.
	CacheFailed func(error)
	// KeepCache leaves the stat cache as it is: it is read only.
	KeepCache bool
	// Times notes when each path was last written (Entry.MTime).
	Times bool
	// MaxFileSize is the length in bytes of the longest file taken; 0 is DefaultMaxFileSize.
	MaxFileSize int64
	// Progress, when not nil, is called now and then with the number of files done and of bytes read, never by two
	// goroutines at once.
	Progress func(files int, bytes int64)
}

// Snap takes a snapshot of the directory root. A file that vanishes meanwhile was never there; one that cannot be read is
// listed in NotCovered. The error is that of the root or of the store: nothing is reported as taken that is not in it.
//
// Memory grows with the number of files, not with their contents; one long file per worker is held at a time.
func Snap(root string, opts *SnapOptions) (*Tree, error) {
	o := opts.withDefaults(root)
	dir, err := os.OpenRoot(root)
	if err != nil {
		return nil, fmt.Errorf("files: snapshot: %w", err)
	}
	defer dir.Close()
	w := newWalker(dir, o.RootName, o.Exclude)
	cache, errCache := loadCache(o.CachePath, o.ScrubID)
	s, err := newSnapper(dir, &o, cache)
	if err != nil {
		return nil, fmt.Errorf("files: snapshot: %w", err)
	}
	defer s.top.letGo()
	began := time.Now()
	if err := s.readAll(w.walk); err != nil {
		return nil, fmt.Errorf("files: snapshot of %s: %w", o.RootName, err)
	}
	tree := &Tree{Root: o.RootName}
	if info, err := dir.Stat("."); err == nil && o.Times {
		tree.MTime = info.ModTime().UnixNano()
	}
	tree.Entries, tree.NotCovered = s.taken()
	tree.NotCovered = append(tree.NotCovered, w.notCovered...)
	hideNames(tree, o.Scrubber)
	tree.settle()
	if o.renewsCache() && errCache == nil {
		errCache = s.newCache(began.UnixNano()).save(o.CachePath)
	}
	if errCache != nil && o.CacheFailed != nil {
		o.CacheFailed(errCache)
	}
	return tree, nil
}

// withDefaults returns a copy of o in which every field has its value.
func (o *SnapOptions) withDefaults(root string) SnapOptions {
	var out SnapOptions
	if o != nil {
		out = *o
	}
	if out.RootName == "" {
		out.RootName = root
		if abs, err := filepath.Abs(root); err == nil {
			out.RootName = abs
		}
	}
	if out.MaxFileSize <= 0 {
		out.MaxFileSize = DefaultMaxFileSize
	}
	return out
}

// errSkipped says that a file is not to be taken, for the reason given.
type errSkipped struct{ reason Reason }

func (e *errSkipped) Error() string { return string(e.reason) }

// reasonOf returns why a file that could not be taken is not covered; ok is false for an error that ends the snapshot.
func reasonOf(err error) (why Reason, ok bool) {
	var skipped *errSkipped
	if errors.As(err, &skipped) {
		return skipped.reason, true
	}
	return "", false
}

// A snapper reads what a walk finds, while it is still walking.
type snapper struct {
	root  *os.Root
	top   folder // root, for what package os does not read
	opts  *SnapOptions
	cache *statCache
	dir   *cas.Dir // opts.Store where it is a directory
	from  string   // the store of the snapshot that cache is of; "" where it is opts.Store itself, or not known

	bags []bag // one of each worker
	pool pool
}

// A bag is what one worker took, in no order. There may be very many entries: no more is kept of them than will be asked for.
type bag struct {
	entries []Entry
	left    []NotCovered
	stamps  []stampOfEntry // for the next cache, where there will be one
	at      visit
}

// A visit holds open the directory that was looked into last, for what lies in one comes together.
type visit struct {
	dir  string
	f    folder
	open bool
}

func (v *visit) enter(top folder, dir string) (folder, error) {
	if v.open && v.dir == dir {
		return v.f, nil
	}
	v.leave()
	f, err := top.open(dir)
	v.dir, v.f, v.open = dir, f, err == nil
	return f, err
}

func (v *visit) leave() {
	if v.open {
		v.f.close()
	}
	v.open = false
}

// A stampOfEntry is the stamp of a file among the entries.
type stampOfEntry struct {
	entry int
	stamp stamp
}

// A slot is what became of one found path.
type slot struct {
	entry Entry
	stamp stamp
	keep  bool // stamp may go into the next cache
}

func newSnapper(root *os.Root, opts *SnapOptions, cache *statCache) (*snapper, error) {
	top, err := topFolder(root)
	if err != nil {
		return nil, err
	}
	s := &snapper{root: root, top: top, opts: opts, cache: cache, pool: pool{workers: numWorkers(), progress: opts.Progress}}
	s.dir, _ = opts.Store.(*cas.Dir)
	if s.dir != nil && cache.store != storeDir(s.dir) {
		s.from = cache.store
	}
	return s, nil
}

// readAll takes each path that walk hands to its argument.
func (s *snapper) readAll(walk func(take func(found)) error) error {
	s.bags = make([]bag, s.pool.workers)
	defer func() {
		for i := range s.bags {
			s.bags[i].at.leave()
		}
	}()
	return each(&s.pool, walk, func(worker int, f found) error { return s.one(&f, &s.bags[worker]) })
}

// one takes f into a bag. An error ends the snapshot.
func (s *snapper) one(f *found, into *bag) error {
	var out slot
	err := s.take(f, &out, &into.at)
	why, skipped := reasonOf(err)
	switch {
	case err == nil:
		if out.keep && s.opts.renewsCache() {
			into.stamps = append(into.stamps, stampOfEntry{len(into.entries), out.stamp})
		}
		into.entries = append(into.entries, out.entry)
	case errors.Is(err, errGone):
	case skipped:
		into.left = append(into.left, NotCovered{Path: f.path, Reason: why})
	default:
		return err
	}
	return nil
}

func (s *snapper) take(f *found, out *slot, at *visit) error {
	mode, _ := ModeOf(f.info.Mode())
	out.entry = Entry{Path: f.path, Mode: mode}
	if s.opts.Times && !mode.IsFIFO() {
		out.entry.MTime = f.info.ModTime().UnixNano()
	}
	switch {
	case mode.IsFIFO():
		return nil
	case mode.IsLink():
		target, err := s.root.Readlink(localName(f.path))
		out.entry.Target = filepath.ToSlash(target)
		return unreadable(err)
	}
	if mode.IsDir() {
		s.attrs(f, out)
		return nil
	}
	return s.file(f, out, at)
}

// attrs takes the extended attributes, in four system calls: a file that the cache knows to have none does not come here.
func (s *snapper) attrs(f *found, out *slot) {
	out.entry.Attrs = rootAttrs(s.top, f.path).encode(s.opts.Scrubber)
}

// file takes a regular file, from the cache where its stamp is known there.
func (s *snapper) file(f *found, out *slot, at *visit) error {
	if f.info.Size() > s.opts.MaxFileSize {
		return &errSkipped{TooLarge}
	}
	st, ok := stampOf(f.info)
	if ok {
		if c, hit := s.cache.get(f.path, st); hit && s.has(f.path, c) {
			out.fill(c)
			out.keep = true
			if !c.bare {
				s.attrs(f, out)
			}
			return nil
		}
	}
	if ok {
		if c, hit := s.opts.Journal.read(s.opts.RootName, f.path, st); hit {
			out.fill(c)
			s.attrs(f, out)
			return nil
		}
	}
	err := s.read(f, out, at)
	out.keep = out.keep && ok
	return err
}

// has reports whether the store has the content of an unchanged file, which it may bring there without reading the file.
func (s *snapper) has(path string, c cached) bool {
	e := s.opts.Known.at(path)
	if e != nil && e.Secret != "" && e.Secret != c.secret {
		return false // the cache was made before the secret was known
	}
	if s.opts.Store == nil || e != nil && e.Digest == c.digest {
		return true
	}
	if s.from != "" {
		// An error means that the earlier recording is gone or lies elsewhere: unless the blob is there already, the file
		// is read instead.
		n, err := s.dir.Link(c.digest, filepath.Join(s.from, c.digest.String()))
		if err == nil {
			return n == c.size
		}
	}
	n, err := s.opts.Store.Size(c.digest)
	return err == nil && n == c.size
}

// read reads, scrubs and stores a regular file.
func (s *snapper) read(f *found, out *slot, at *visit) error {
	dir, err := at.enter(s.top, parentOf(f.path))
	if err != nil {
		return unreadable(err)
	}
	file, now, err := dir.found(s.root, f.path)
	if err != nil {
		return unreadable(err)
	}
	defer file.Close()
	if now.size > s.opts.MaxFileSize {
		return &errSkipped{TooLarge}
	}
	out.entry.Attrs = file.attrs().encode(s.opts.Scrubber)
	t := taker{store: s.opts.Store, scrubber: s.opts.Scrubber, limit: s.opts.MaxFileSize}
	was := s.opts.Known.at(f.path)
	got, err := t.take(file, now.size, f.path, was)
	if err != nil {
		return err
	}
	s.pool.bytes.Add(got.length)
	after, err := file.now()
	if err != nil {
		return unreadable(err)
	}
	out.fill(cached{stamp: now.stamp, digest: got.digest, size: got.size, secret: got.secret})
	out.entry.Mode = now.mode
	settled := got.length == now.size && after.size == now.size && after.mtime == now.mtime
	out.keep = settled && (was == nil || was.Secret == "")
	return nil
}

func (o *slot) fill(c cached) {
	o.stamp = c.stamp
	o.entry.Digest, o.entry.Size, o.entry.Secret = c.digest, c.size, c.secret
}

// errGone says that a file vanished before it was read. It is not the file system's own error, which a store may give too.
var errGone = errors.New("file vanished")

// unreadable turns the failure to read a file into errGone, or into the reason why it is not covered.
func unreadable(err error) error {
	switch {
	case err == nil:
		return nil
	case isGone(err):
		return errGone
	case errors.Is(err, errTooLarge):
		return &errSkipped{TooLarge}
	case errors.Is(err, errNotRegular):
		return &errSkipped{Special}
	}
	return &errSkipped{Unreadable}
}

// taken returns the entries, and the paths that could not be taken, in no order.
func (s *snapper) taken() (entries []Entry, left []NotCovered) {
	n := 0
	for i := range s.bags {
		n += len(s.bags[i].entries)
	}
	entries = make([]Entry, 0, n)
	for i := range s.bags {
		entries, left = append(entries, s.bags[i].entries...), append(left, s.bags[i].left...)
	}
	return entries, left
}

// renewsCache reports whether the snapshot leaves a stat cache.
func (o *SnapOptions) renewsCache() bool { return o.CachePath != "" && !o.KeepCache }

// newCache returns what the next snapshot may believe.
func (s *snapper) newCache(began int64) *statCache {
	c := &statCache{scrubID: s.opts.ScrubID, began: began, entries: make(map[string]cached)}
	if s.dir != nil {
		c.store = storeDir(s.dir)
	}
	for i := range s.bags {
		for _, at := range s.bags[i].stamps {
			e := &s.bags[i].entries[at.entry]
			c.entries[e.Path] = cached{stamp: at.stamp, digest: e.Digest, size: e.Size, secret: e.Secret, bare: e.Attrs == ""}
		}
	}
	return c
}

// storeDir returns the absolute path of a store's directory.
func storeDir(d *cas.Dir) string {
	dir := filepath.Dir(d.Path(cas.Digest{}))
	if abs, err := filepath.Abs(dir); err == nil {
		return abs
	}
	return dir
}

const (
	bigFile       = 8 << 20 // bytes from which a content is read alone
	progressEvery = 256     // files lie between two calls of a progress
	foundAhead    = 256     // files may be found that no worker has begun
)

// A pool reads files or contents side by side, and counts them.
type pool struct {
	workers  int
	progress func(files int, bytes int64) // nil for nobody
	bytes    atomic.Int64
	big      sync.Mutex // held while a long file is in memory: one at a time

	mu   sync.Mutex
	done int   // guarded by mu, under which progress is called
	err  error // the first failure, which ends the rest; guarded by mu
}

// numWorkers is how many files are read at once: one for each processor, at least 2 and at most 4.
func numWorkers() int { return min(max(runtime.GOMAXPROCS(0), 2), 4) }

// each does do for whatever give hands to its argument; worker, from 0, says whose it is. It owns its workers, and returns
// when give and all of them have ended. After a failure give comes to its end, and nothing more is done.
func each[T any](p *pool, give func(take func(T)) error, do func(worker int, item T) error) error {
	todo := make(chan T, foundAhead)
	var wg sync.WaitGroup
	for worker := range p.workers {
		wg.Go(func() {
			for item := range todo {
				if !p.finish(do(worker, item)) {
					break
				}
			}
			for range todo {
				continue
			}
		})
	}
	err := give(func(item T) { todo <- item })
	close(todo)
	wg.Wait()
	if err = cmp.Or(err, p.err); err != nil {
		return err
	}
	if p.progress != nil {
		p.progress(p.done, p.bytes.Load())
	}
	return nil
}

// finish counts one file and reports whether to go on.
func (p *pool) finish(err error) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.err = err
	}
	p.done++
	if p.err == nil && p.progress != nil && p.done%progressEvery == 0 {
		p.progress(p.done, p.bytes.Load())
	}
	return p.err == nil
}

// A stamp is what the file system says about a file without its content being read. Two equal stamps of one path mean
// the same content, but for the racy case that statCache describes.
type stamp struct {
	mode         Mode
	size         int64
	mtime, ctime int64 // Unix epoch ns
	ino          uint64
}

// stampOf returns the stamp of a file; ok is false where this system does not give all of it.
func stampOf(info fs.FileInfo) (stamp, bool) {
	mode, isKnown := ModeOf(info.Mode())
	ctime, ino, ok := InodeOf(info)
	return stamp{mode: mode, size: info.Size(), mtime: info.ModTime().UnixNano(), ctime: ctime, ino: ino}, ok && isKnown
}

// racyWindow is how long before the beginning of a snapshot a file must have been left alone for its stamp to be
// believed: file systems stamp with a clock that ticks, some once in two seconds.
const racyWindow = 2 * time.Second

// Unchanged reports whether a file is as it was when a and b were taken of it, by size, times and inode; false where the system does
// not tell.
func Unchanged(a, b fs.FileInfo) bool {
	was, ok := stampOf(a)
	now, isKnown := stampOf(b)
	return ok && isKnown && was == now
}

package files

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/tapedeck-dev/tapedeck/cas"
)

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
	s := &snapper{root: root, top: top, opts: opts, cache: cache, pool: pool{workers: opts.Workers, progress: opts.Progress}}
	s.dir, _ = opts.Store.(*cas.Dir)
	if s.dir != nil && cache.store != storeDir(s.dir) {
		s.from = cache.store
	}
	return s, nil
}

// readAll takes each path that walk hands to its argument.
func (s *snapper) readAll(walk func(take func(found)) error) error {
	s.bags = make([]bag, s.opts.Workers)
	return each(&s.pool, walk, func(worker int, f found) error { return s.one(&f, &s.bags[worker]) })
}

// one takes f into a bag. An error ends the snapshot.
func (s *snapper) one(f *found, into *bag) error {
	var out slot
	err := s.take(f, &out)
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

func (s *snapper) take(f *found, out *slot) error {
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
	out.entry.Attrs = rootAttrs(s.top, f.path).encode(s.opts.Scrubber)
	if mode.IsDir() {
		return nil
	}
	return s.file(f, out)
}

// file takes a regular file, from the cache where its stamp is known there.
func (s *snapper) file(f *found, out *slot) error {
	if f.info.Size() > s.opts.MaxFileSize {
		return &errSkipped{TooLarge}
	}
	st, ok := stampOf(f.info)
	if ok {
		if c, hit := s.cache.get(f.path, st); hit && !s.marked(f.path, c) && s.link(c) {
			out.fill(c)
			out.keep = true
			return nil
		}
		if c, hit := s.opts.Journal.read(s.opts.RootName, f.path, st); hit {
			out.fill(c)
			return nil
		}
	}
	return s.read(f, out)
}

// link brings the content of an unchanged file into the store without reading it, and reports whether it is there.
func (s *snapper) link(c cached) bool {
	if s.opts.Store == nil {
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
func (s *snapper) read(f *found, out *slot) error {
	file, info, err := openRegular(s.root, f.path)
	if err != nil {
		return unreadable(err)
	}
	defer file.Close()
	if info.Size() > s.opts.MaxFileSize {
		return &errSkipped{TooLarge}
	}
	t := taker{store: s.opts.Store, scrubber: s.opts.Scrubber, limit: s.opts.MaxFileSize}
	got, err := t.take(file, info.Size(), f.path, s.opts.known(f.path))
	if err != nil {
		return err
	}
	s.pool.bytes.Add(got.length)
	after, err := file.Stat()
	if err != nil {
		return unreadable(err)
	}
	st, ok := stampOf(info)
	out.fill(cached{stamp: st, digest: got.digest, size: got.size, secret: got.secret})
	out.entry.Mode = st.mode
	settled := got.length == info.Size() && after.Size() == info.Size() && after.ModTime().Equal(info.ModTime())
	was := s.opts.known(f.path)
	out.keep = ok && settled && (was == nil || was.Secret == "")
	return nil
}

// known returns what the tree Known has at path, nil for nothing.
func (o *SnapOptions) known(path string) *Entry {
	if o.Known == nil {
		return nil
	}
	e, _ := o.Known.Lookup(path)
	return e
}

// marked reports whether SnapOptions.Known has a secret file at path of which the cache does not know that it is one: it was
// made before the secret was known.
func (s *snapper) marked(path string, c cached) bool {
	if s.opts.Known == nil {
		return false
	}
	e, ok := s.opts.Known.Lookup(path)
	return ok && e.Secret != "" && e.Secret != c.secret
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
			c.entries[e.Path] = cached{stamp: at.stamp, digest: e.Digest, size: e.Size, secret: e.Secret}
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

package files

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A look is what was seen at a path.
type look struct {
	now    *Entry // nil for nothing
	before *Entry // what stood there at the last barrier
	stamp  stamp  // of a file
	held   bool   // somebody may still write to it
	whole  bool   // a call ended it
	long   string // of a file that is too large to keep, at the end
	fileContent
	err error
}

// A looker looks at items one after the other.
type looker struct {
	j    *Journal
	root *journalRoot // of at
	at   visit
	most int64 // bytes of the longest file that is read; 0 is JournalOptions.MaxFileSize
}

// enter opens the directory of an item, unless it is open.
func (l *looker) enter(r *journalRoot, dir string) error {
	if l.root != r {
		l.at.leave()
		l.root = r
	}
	_, err := l.at.enter(r.top, dir)
	return err
}

// one looks at an item.
func (l *looker) one(it *item) {
	j, n := l.j, it.n
	if it.told != nil {
		it.before, it.now = it.told.Before, it.told.After
		if n != nil {
			j.mu.Lock()
			it.before = n.last
			j.mu.Unlock()
		}
		it.err = l.told(it)
		return
	}
	j.mu.Lock()
	it.before = n.last
	was := n.stamp
	if !n.is(isSure) && !n.is(isHeld) {
		was = nil
	}
	sure := n.is(isSure)
	j.mu.Unlock()
	it.err = l.look(it, was, sure)
}

// look fills it. was is the stamp that the file had when it was read last, nil where it is to be read whatever it is; with
// sure it is believed, without only of a long file.
func (l *looker) look(it *item, was *stamp, sure bool) error {
	switch err := l.enter(it.root, parentOf(it.rel)); {
	case isAbsent(err): // a link may stand where its directory stood
		return errGone
	case err != nil:
		return unreadable(err)
	}
	name := baseOf(it.rel)
	s, err := l.at.f.stat(name)
	if err != nil {
		return unreadable(err)
	}
	if s.mode.IsRegular() {
		return l.file(it, was, sure)
	}
	it.now, err = l.j.o.see(l.at.f, name, &s)
	return err
}

// file looks at a regular file.
func (l *looker) file(it *item, was *stamp, sure bool) error {
	f, now, err := l.at.f.read(baseOf(it.rel))
	if err != nil {
		return unreadable(err)
	}
	defer f.Close()
	it.stamp = now.stamp
	if now.size > cmp.Or(l.most, l.j.o.MaxFileSize) {
		it.held = f.held()
		if l.j.final {
			it.long = long(f, &now, l.j.o.Scrubber)
		}
		return &errSkipped{TooLarge}
	}
	if was != nil && *was == now.stamp && it.before != nil && it.before.Mode.IsRegular() && (sure || now.size > bigFile) {
		it.now, it.held, it.sure = it.before, f.held(), sure
		return nil
	}
	it.held = f.held()
	it.fileContent, err = l.j.o.content(l.j.o.Staged, f, &now, it.root.Prefix+it.rel, it.root.Tree.at(it.rel))
	if it.now = it.entry; it.now != nil {
		it.now.Attrs = f.attrs().encode(l.j.o.Scrubber)
	}
	return err
}

// told reads the content of a file of which the snapshot at the end says what stands there.
func (l *looker) told(it *item) error {
	if it.now == nil || !it.now.Mode.IsRegular() || l.j.o.Staged == nil || SameEntry(it.before, it.now) {
		return nil
	}
	if it.now.Size <= tape.InlineLimit {
		b, done, err := borrowBlob(l.j.o.Staged, it.now.Digest, it.now.Size)
		if err != nil {
			return err
		}
		if utf8.Valid(b) {
			text := string(b)
			it.text = &text
		}
		done()
	}
	return nil
}

// see returns what stands at name in f, of which s is known; of a regular file nil.
func (o *JournalOptions) see(f folder, name string, s *sight) (*Entry, error) {
	switch {
	case s.mode == 0:
		return nil, &errSkipped{Special}
	case s.mode.IsFIFO():
		return &Entry{Mode: s.mode}, nil
	case s.mode.IsDir():
		return &Entry{Mode: s.mode, MTime: s.mtime, Attrs: o.attrs(f, name)}, nil
	case s.mode.IsRegular():
		return nil, nil
	}
	target, err := f.readlink(name)
	if err != nil {
		return nil, unreadable(err)
	}
	if o.Scrubber != nil {
		if _, found := o.Scrubber.Bytes([]byte(target)); found {
			return nil, &errSkipped{SecretName}
		}
	}
	return &Entry{Mode: Link | 0o777, Target: target}, nil
}

// attrs are the extended attributes of name, as Entry.Attrs has them.
func (o *JournalOptions) attrs(f folder, name string) string { return f.attrs(name).encode(o.Scrubber) }

// A fileContent is what was read of a file.
type fileContent struct {
	entry *Entry
	text  *string // the stored bytes where they may stand in a record; nil else
	sure  bool    // the file did not change meanwhile, and what changes it now changes its stamp
}

// settleTime is how long a file must have been left alone for a later change to give it another stamp: file systems stamp
// with a clock that ticks, every 10 ms or oftener where a file can be leased.
const settleTime = 50 * time.Millisecond

// content reads and scrubs a file, of which before is the stamp, and puts it into store. was is what a snapshot has there; nil for nothing.
func (o *JournalOptions) content(store cas.Store, file reading, before *sight, path string, was *Entry) (out fileContent, err error) {
	if before.size > o.MaxFileSize {
		return out, &errSkipped{TooLarge}
	}
	quiet := before.ctime < time.Now().Add(-settleTime).UnixNano() && !file.held()
	t := taker{store: store, scrubber: o.Scrubber, limit: o.MaxFileSize, texts: true}
	got, err := t.take(file, before.size, path, was)
	if err != nil {
		return out, err
	}
	after, err := file.now()
	if err != nil {
		return out, unreadable(err)
	}
	out.entry = &Entry{Digest: got.digest, Size: got.size, Secret: got.secret, Mode: before.mode, MTime: before.mtime}
	out.text = got.text
	out.sure = quiet && after.stamp == before.stamp
	return out, nil
}

// A sight is what the file system says about a path.
type sight struct {
	stamp        // the mode is 0 for a socket or device
	links uint64 // hard links of a file
}

// A reading is a regular file, open for reading.
type reading interface {
	io.ReadCloser
	// now returns what the file system says about the file.
	now() (sight, error)
	// held reports whether somebody may still write to it, with the descriptors and mappings that there are. Where that
	// cannot be told it is true.
	held() bool
	// attrs returns the extended attributes of the file.
	attrs() attrSet
}

// isAbsent reports whether err says that nothing stands at a path: its directory is none, or a link now, too.
func isAbsent(err error) bool {
	return isGone(err) || errors.Is(err, syscall.ELOOP) || errors.Is(err, fs.ErrInvalid)
}

package library

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/internal/durable"
	"github.com/tapedeck-dev/tapedeck/seal"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// DefaultGrace is the age under which GC takes nothing for a leftover whose owner it cannot ask for.
const DefaultGrace = time.Hour

// GCOptions say what GC removes. Nil and zero remove what no recording needs, and no recording.
type GCOptions struct {
	DryRun bool // removes nothing, and reports what would go

	// OlderThan and Keep remove finished recordings of the library: those that began longer ago, those that are not among
	// the newest so many; with both, those of which both is true. 0 asks for nothing. What record -o put elsewhere stays.
	OlderThan time.Duration
	Keep      int

	Grace    time.Duration           // DefaultGrace when 0; negative is none
	Progress func(done, total int64) // recordings looked at
}

// The kinds of garbage.
const (
	GarbageRecording = "recording" // asked for by OlderThan or Keep
	GarbageBlobs     = "blobs"     // that nothing in their recording names
	GarbageTemporary = "temporary" // what killed writers left
	GarbagePointer   = "pointer"   // to a recording that is gone
	GarbageCache     = "stat cache"
	GarbageDerived   = "derived" // verdicts and reports of a recording that is gone
	GarbageScratch   = "scratch" // layers of runs that were killed
)

// A Garbage is something that was removed, or would be.
type Garbage struct {
	What  string `json:"what"`
	Path  string `json:"path"`  // of the thing; of blobs, their directory
	Count int    `json:"count"` // files
	Bytes int64  `json:"bytes"` // that this frees: not those of a file that has another name in the library
}

// A Kept is something that GC did not look into.
type Kept struct {
	Path string `json:"path"`
	Why  string `json:"why"`
}

// A GCReport is what GC did. Before and After are bytes of the library's files, each counted once however many names it
// has there.
type GCReport struct {
	Library string    `json:"library"`
	DryRun  bool      `json:"dry_run"`
	Before  int64     `json:"bytes_before"`
	After   int64     `json:"bytes_after"`
	Removed []Garbage `json:"removed"`
	Kept    []Kept    `json:"kept"`
}

// collector is one GC under way.
type collector struct {
	ctx context.Context
	lib *Library
	o   GCOptions
	now time.Time
	use *diskUse
	out *GCReport

	removed map[string]bool // directories of recordings that went, or would
	halted  bool            // ctx ended before everything was looked at
}

func (c *collector) run() (err error) {
	if err := c.measure(); err != nil {
		return err
	}
	c.out.Before = c.use.total
	entries, err := c.lib.List()
	if err != nil {
		return err
	}
	for _, step := range []func([]Entry) error{c.old, c.recordings, c.loose, c.pointers, c.derived, c.statCache, c.scratches} {
		if c.stopped() {
			break
		}
		err = errors.Join(err, step(entries))
	}
	if c.halted {
		err = errors.Join(err, c.ctx.Err())
	}
	c.out.After = c.use.total
	return err
}

// measure counts what the library takes.
func (c *collector) measure() (err error) {
	root := c.lib.Dir
	if real, err := filepath.EvalSymlinks(root); err == nil {
		root = real
	}
	c.use, err = measure(root)
	return err
}

// stopped is asked before each thing that may go.
func (c *collector) stopped() bool {
	c.halted = c.halted || c.ctx.Err() != nil
	return c.halted
}

// drop has what stands at path removed, unless this is a dry run, and reports it once it is gone.
func (c *collector) drop(what, path string, remove func() error) error {
	n, bytes, err := c.use.release(path)
	if err != nil || n < 0 {
		return err
	}
	if !c.o.DryRun {
		if err := remove(); err != nil {
			return errors.Join(err, c.measure())
		}
	}
	c.out.Removed = append(c.out.Removed, Garbage{what, path, n, bytes})
	return nil
}

func (c *collector) whole(what, path string) error {
	return c.drop(what, path, func() error { return os.RemoveAll(path) })
}

// inside reports whether an entry is a directory of the library: what is a link there lies elsewhere.
func (c *collector) inside(e *Entry) bool {
	info, err := os.Lstat(e.Path)
	return filepath.Dir(e.Path) == c.lib.Dir && err == nil && info.IsDir()
}

func (c *collector) keep(path, why string) { c.out.Kept = append(c.out.Kept, Kept{path, why}) }

// old removes the finished recordings that the caller does not want any more.
func (c *collector) old(entries []Entry) error {
	c.removed = make(map[string]bool)
	if c.o.OlderThan == 0 && c.o.Keep == 0 {
		return nil
	}
	var errs []error
	newer := 0
	for _, e := range slices.Backward(entries) { // newest first
		if e.Recording == nil || !e.Recording.Finished() || !c.inside(&e) {
			continue
		}
		newer++
		if c.o.Keep > 0 && newer <= c.o.Keep || c.o.OlderThan > 0 && c.now.Sub(e.started()) <= c.o.OlderThan {
			continue
		}
		if c.stopped() {
			break
		}
		if others, err := foreign(e.Path); len(others) > 0 || err != nil {
			c.keep(e.Path, "it is old, and holds what is no recording's: "+strings.Join(others, ", "))
			errs = append(errs, err)
			continue
		}
		err := c.drop(GarbageRecording, e.Path, func() error { _, err := c.lib.Remove(&e); return err })
		c.removed[e.Path] = err == nil
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// recordings cleans up in each recording of the library.
func (c *collector) recordings(entries []Entry) error {
	var errs []error
	for i, e := range entries {
		if c.stopped() {
			break
		}
		switch {
		case filepath.Dir(e.Path) != c.lib.Dir || c.removed[e.Path] || !recording.Exists(e.Path):
		case !c.inside(&e):
			c.keep(e.Path, "it is no directory of the library")
		case e.Recording == nil && errors.Is(e.Err, recording.ErrNotRecording):
			errs = append(errs, c.unbegun(e.Path))
		case e.Recording == nil:
			c.keep(e.Path, e.Err.Error())
		default:
			if err := c.recording(e.Recording); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", e.Path, err))
			}
		}
		if c.o.Progress != nil {
			c.o.Progress(int64(i+1), int64(len(entries)))
		}
	}
	return errors.Join(errs...)
}

// loose removes what killed writers left in the library itself, temporary files and directories, and what was to supersede a recording that
// lies elsewhere, beside that.
func (c *collector) loose(entries []Entry) error {
	names, err := os.ReadDir(c.lib.Dir)
	if err != nil {
		return recording.Gone(err)
	}
	var errs []error
	looked := map[string]bool{c.lib.Dir: true}
	for _, e := range entries {
		if dir := filepath.Dir(e.Path); !looked[dir] {
			looked[dir] = true
			for _, path := range recording.StaleTemps(dir, newPrefix) {
				errs = append(errs, c.whole(GarbageTemporary, path))
			}
		}
	}
	for _, n := range names {
		if c.stopped() {
			break
		}
		if strings.HasPrefix(n.Name(), durable.TempPrefix) {
			errs = append(errs, c.looseOne(filepath.Join(c.lib.Dir, n.Name()), n.IsDir()))
		}
	}
	return errors.Join(errs...)
}

func (c *collector) looseOne(path string, dir bool) error {
	if !dir && !c.ancient(path) {
		return nil // a recorder may be about to rename it
	}
	if dir {
		f, err := recording.LockExclusive(path)
		if err != nil && (!errors.Is(err, recording.ErrNoLocks) || !c.ancient(path)) {
			return nil // somebody unpacks into it, or deletes it
		}
		if f != nil {
			defer f.Close()
		}
	}
	return c.whole(GarbageTemporary, path)
}

// past reports whether what stands at path has not been written to for the grace.
func (c *collector) past(path string) bool { return c.untouched(path, c.o.Grace) }

// ancient is past for what has an owner that cannot be asked and may be at work.
func (c *collector) ancient(path string) bool { return c.untouched(path, max(c.o.Grace, DefaultGrace)) }

func (c *collector) untouched(path string, since time.Duration) bool {
	info, err := os.Lstat(path)
	return err == nil && c.now.Sub(info.ModTime()) > since
}

// pointers removes those to recordings that are gone, or whose place another recording has taken.
func (c *collector) pointers(entries []Entry) error {
	var errs []error
	for _, e := range entries {
		if filepath.Dir(e.Path) == c.lib.Dir {
			continue
		}
		if c.stopped() {
			break
		}
		_, err := os.Lstat(e.Path)
		if errors.Is(err, fs.ErrNotExist) || e.Recording != nil && e.Recording.Manifest.ID != e.Name {
			errs = append(errs, c.whole(GarbagePointer, filepath.Join(c.lib.Dir, e.Name+pointerExt)))
		}
	}
	return errors.Join(errs...)
}

// statCache removes the cache once no recording is left from which a snapshot could link what the cache knows.
func (c *collector) statCache([]Entry) error {
	path := filepath.Join(c.lib.Dir, StatCacheName)
	entries, err := c.lib.List()
	if err != nil || !recording.Exists(path) {
		return err
	}
	for _, e := range entries {
		if !c.removed[e.Path] && recording.IsDir(e.Path) {
			return nil
		}
	}
	return c.whole(GarbageCache, path)
}

// recording removes what a recording of the library does not need.
func (c *collector) recording(r *recording.Recording) error {
	f, err := recording.LockExclusive(r.Dir) // of one that is finished, too: it may be being sealed
	switch {
	case err == nil:
		defer f.Close()
	case r.Finished() && errors.Is(err, recording.ErrNoLocks):
	default:
		switch {
		case errors.Is(err, recording.ErrHeld):
			c.keep(r.Dir, "it is being recorded, sealed or read")
		case errors.Is(err, recording.ErrNoLocks):
			c.keep(r.Dir, "it is unfinished, and nothing here tells whether its recorder lives")
		default:
			return recording.Gone(err)
		}
		return nil
	}
	// What it was when the library was listed is not what it is now: its recorder may have come to its end since.
	if r, err = recording.Open(r.Dir); errors.Is(err, recording.ErrNotRecording) {
		return nil // it was removed meanwhile
	} else if err != nil {
		return err
	}
	dead := !r.Finished()
	if err := c.leftovers(r.Dir, dead); err != nil {
		return err
	}
	if r.Manifest.Sealed {
		return nil // a seal may stand for blobs that no text names
	}
	return c.blobs(r, dead)
}

// leftovers removes temporary files of a recording's writers. Of a dead recorder all go; a finished recording may get
// notes, so that what is young there may have an owner.
func (c *collector) leftovers(dir string, dead bool) error {
	var stale, dirs []string
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return recording.Gone(err)
		}
		temp := strings.HasPrefix(e.Name(), durable.TempPrefix)
		inTemp := len(dirs) > 0 && filepath.Dir(path) == dirs[len(dirs)-1]
		switch {
		case !dead && (temp || inTemp) && !c.past(path):
		case temp && e.IsDir() && strings.HasPrefix(e.Name(), seal.TempPrefix):
			if err := c.whole(GarbageTemporary, path); err != nil {
				return err
			}
			return fs.SkipDir
		case temp && e.IsDir():
			dirs = append(dirs, path)
		case temp || inTemp && !e.IsDir():
			stale = append(stale, path)
		}
		return nil
	})
	if err == nil {
		err = c.removeAll(GarbageTemporary, dir, stale)
	}
	for _, d := range dirs {
		if err == nil && !c.o.DryRun {
			os.Remove(d) // one that is not empty is left
		}
	}
	return err
}

// blobs removes the blobs that nothing in the recording names.
func (c *collector) blobs(r *recording.Recording, dead bool) error {
	store, err := r.Store()
	if err != nil {
		return err
	}
	left, err := Unnamed(r.Dir, store)
	if unread := (*unreadError)(nil); errors.As(err, &unread) {
		if recording.Exists(r.Dir) { // else it was removed meanwhile
			c.keep(r.Dir, unread.Error())
		}
		return nil
	}
	if err != nil {
		return err
	}
	var stale []string
	for d := range left {
		if path := store.Path(d); dead || c.past(path) {
			stale = append(stale, path)
		}
	}
	return c.removeAll(GarbageBlobs, filepath.Dir(store.Path(cas.Digest{})), stale)
}

// removeAll removes files, and reports those that went as one.
func (c *collector) removeAll(what, dir string, files []string) error {
	g := Garbage{What: what, Path: dir}
	var errs []error
	for _, f := range files {
		if c.stopped() {
			break
		}
		n, bytes, err := c.use.release(f)
		if err == nil && n > 0 && !c.o.DryRun {
			if err = os.Remove(f); err != nil {
				n, err = 0, errors.Join(recording.Gone(err), c.measure())
			}
		}
		if errs = append(errs, err); err == nil && n > 0 {
			g.Count, g.Bytes = g.Count+n, g.Bytes+bytes
		}
	}
	if g.Count > 0 {
		c.out.Removed = append(c.out.Removed, g)
	}
	return errors.Join(errs...)
}

// unbegun removes the directory of a recorder that was killed before it had written its recording.json. One that holds
// anything else than that recorder's temporary file, or that is young where there are no locks, is none of ours.
func (c *collector) unbegun(dir string) error {
	f, err := recording.LockExclusive(dir)
	if errors.Is(err, recording.ErrNoLocks) && c.ancient(dir) {
		err = nil
	}
	if err != nil {
		return recording.Gone(recording.NotLock(err))
	}
	if f != nil {
		defer f.Close()
	}
	names, err := os.ReadDir(dir)
	if err != nil {
		return recording.Gone(err)
	}
	for _, n := range names {
		if !strings.HasPrefix(n.Name(), durable.TempPrefix) || n.IsDir() {
			c.keep(dir, "it is no recording, and holds something")
			return nil
		}
	}
	return c.whole(GarbageTemporary, dir)
}

func (c *collector) scratches([]Entry) error {
	var errs []error
	for _, root := range ScratchRoots {
		for _, dir := range staleScratches(root, c.ancient) {
			if c.stopped() {
				break
			}
			errs = append(errs, c.scratch(dir))
		}
	}
	return errors.Join(errs...)
}

func (c *collector) scratch(dir string) error {
	use, err := measure(dir)
	if err != nil {
		use = new(diskUse) // the kernel leaves directories there that their owner may not read
	}
	if !c.o.DryRun {
		if err := removeScratch(dir); err != nil {
			return recording.NotLock(err)
		}
	}
	c.out.Removed = append(c.out.Removed, Garbage{GarbageScratch, dir, use.files, use.total})
	return nil
}

// A blob is named by any run of exactly 64 lowercase hex digits in any file of a recording that is no blob. What is named
// is needed: by a record or a key that this version does not know, too. A blob that some text happens to name is kept for
// nothing, which costs its bytes and no more.

// An unreadError says why nobody knows what a recording names: something in it was not read.
type unreadError struct{ path, why string }

func (e *unreadError) Error() string {
	return fmt.Sprintf("%s %s: which blobs the recording needs is not known", e.path, e.why)
}

// Unnamed returns the blobs of store, that of the recording in dir, which no file of the recording names. What is put
// there meanwhile is none of them. Its memory grows with the number of blobs, not with the tape.
//
// The error is an *unreadError where dir holds anything but directories and regular files, such as a link, or where the
// tape was not read to its end: what was not looked into may name every blob.
func Unnamed(dir string, store *cas.Dir) (map[cas.Digest]struct{}, error) {
	left := make(map[cas.Digest]struct{})
	for d, err := range store.All() {
		if err != nil {
			return nil, recording.Gone(err)
		}
		left[d] = struct{}{}
	}
	at, read := filepath.Join(dir, recording.TapeName), false
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return recording.Gone(err)
		}
		switch {
		case len(left) == 0:
			return fs.SkipAll
		case e.IsDir() && (path == at+tape.StoreSuffix || path == filepath.Join(dir, recording.TerminalName)): // which names no blob
			return fs.SkipDir
		case e.IsDir():
			return nil
		case !e.Type().IsRegular():
			return &unreadError{path, "is neither a directory nor a regular file"}
		}
		f, err := os.Open(path)
		if err != nil {
			return recording.Gone(err)
		}
		defer f.Close()
		err = scanDigests(f, func(d cas.Digest) { delete(left, d) })
		read = read || err == nil && path == at
		return err
	})
	if err == nil && len(left) > 0 && !read {
		err = &unreadError{at, "is not there"}
	}
	if err != nil {
		return nil, err
	}
	return left, nil
}

// scanDigests calls found with everything that r names.
func scanDigests(r io.Reader, found func(cas.Digest)) error {
	const length = 2 * cas.Size
	var run [length]byte
	n := 0 // digits of the run so far
	end := func() error {
		if n == length {
			d, err := cas.Parse(string(run[:]))
			if err != nil {
				return err
			}
			found(d)
		}
		n = 0
		return nil
	}
	br := bufio.NewReaderSize(r, 128<<10)
	for {
		if _, err := br.Peek(1); err != nil {
			return errors.Join(end(), recording.NotEOF(err))
		}
		b, _ := br.Peek(br.Buffered())
		for _, c := range b {
			if !hexDigit[c] {
				if n >= length {
					if err := end(); err != nil {
						return err
					}
				}
				n = 0
				continue
			}
			if n < length {
				run[n] = c
			}
			n++
		}
		br.Discard(len(b)) // it is buffered
	}
}

// hexDigit says of each byte whether it is a digit of a digest.
var hexDigit = func() (t [256]bool) {
	for _, c := range "0123456789abcdef" {
		t[c] = true
	}
	return t
}()

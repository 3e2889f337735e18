package deck

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/durable"
	"github.com/tapedeck-dev/tapedeck/seal"
)

// recording removes what a recording of the library does not need.
func (c *collector) recording(r *Recording) error {
	dead := false
	if !r.Finished() {
		f, err := lockExclusive(r.Dir)
		if err != nil {
			if notLock(err) == nil {
				c.keep(r.Dir, whyKept(err))
			}
			return gone(notLock(err))
		}
		defer f.Close()
		// What it was when the library was listed is not what it is now: its recorder may have come to its end since.
		if r, err = Open(r.Dir); err != nil {
			return notRecording(err)
		}
		dead = !r.Finished()
	}
	if err := c.leftovers(r.Dir, dead); err != nil {
		return err
	}
	if r.Manifest.Sealed {
		return nil // a seal may stand for blobs that no text mentions
	}
	return c.blobs(r, dead)
}

func whyKept(err error) string {
	if errors.Is(err, errHeld) {
		return "it is being recorded"
	}
	return "it is unfinished, and nothing here tells whether its recorder lives"
}

// notLock is err, unless it is that of a lock that could not be had.
func notLock(err error) error {
	if errors.Is(err, errHeld) || errors.Is(err, errNoLocks) {
		return nil
	}
	return err
}

// notRecording is err, unless it says that the recording was removed meanwhile.
func notRecording(err error) error {
	if errors.Is(err, ErrNotRecording) {
		return nil
	}
	return err
}

// leftovers removes temporary files of a recording's writers. Of a dead recorder all go; a finished recording may get
// notes, so that what is young there may have an owner.
func (c *collector) leftovers(dir string, dead bool) error {
	var stale, dirs []string
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return gone(err)
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

// blobs removes the blobs that nothing in the recording mentions.
func (c *collector) blobs(r *Recording, dead bool) error {
	store, err := r.Store()
	if err != nil {
		return err
	}
	left, err := unnamed(r.Dir, store)
	if unread := (*unreadError)(nil); errors.As(err, &unread) {
		if exists(r.Dir) { // else it was removed meanwhile
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
				err = errors.Join(gone(err), c.use.restore(f))
				n = 0
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
	f, err := lockExclusive(dir)
	if errors.Is(err, errNoLocks) && c.ancient(dir) {
		err = nil
	}
	if err != nil {
		return gone(notLock(err))
	}
	if f != nil {
		defer f.Close()
	}
	names, err := os.ReadDir(dir)
	if err != nil {
		return gone(err)
	}
	for _, n := range names {
		if !strings.HasPrefix(n.Name(), durable.TempPrefix) || n.IsDir() {
			c.keep(dir, "it is no recording, and holds something")
			return nil
		}
	}
	return c.whole(GarbageTemporary, dir)
}

// scratches removes the layers of runs that were killed.
func (c *collector) scratches([]Entry) error {
	var errs []error
	for _, root := range scratchRoots {
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
			return notLock(err)
		}
	}
	c.out.Removed = append(c.out.Removed, Garbage{GarbageScratch, dir, use.files, use.total})
	return nil
}

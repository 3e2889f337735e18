package changes

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/jail/inspect"
	"github.com/tapedeck-dev/tapedeck/internal/jail/mount"
	"github.com/tapedeck-dev/tapedeck/internal/jail/mountinfo"
	"github.com/tapedeck-dev/tapedeck/internal/jail/notify"
	"github.com/tapedeck-dev/tapedeck/internal/jail/process"
	"github.com/tapedeck-dev/tapedeck/internal/jail/step"
	"golang.org/x/sys/unix"
)

// MaxCopies is how many functions that a Watcher returned run at once. Beyond that all calls wait.
const MaxCopies = 64

// A Watch tells its Watcher of notified calls. Only who receives those uses it.
type Watch struct {
	watcher Watcher
	places  []place // the deepest first
	began   time.Time
	init    int            // PID of the init
	view    inspect.View   // the jail's, as the init sees it
	rootID  inspect.FileID // of the view's root
	buf     [inspect.MaxPath]byte

	copies  sync.WaitGroup
	copying chan struct{} // a token each

	Unnamed atomic.Int64 // calls that went on although their paths could not be found out
}

// A place is a directory, and what lies below it. What is not watched is read-only or not the program's to change.
type place struct {
	path    string
	watched bool
	layered bool // what the host has there is another file
}

// placesOf lists what the program may change by a plan, and what is covered in it.
func placesOf(p *mount.Plan) []place {
	var out []place
	for _, t := range p.Targets {
		out = append(out, place{t.Path, true, t.Overlay != nil})
		for _, m := range t.Submounts {
			out = append(out, place{m, false, false})
		}
	}
	for _, m := range p.Masks {
		out = append(out, place{m, false, false})
	}
	slices.SortFunc(out, func(a, b place) int {
		return cmp.Or(cmp.Compare(len(b.path), len(a.path)), cmp.Compare(a.path, b.path))
	})
	return out
}

// watches reports whether path is the program's to change. A target itself lies in the one above it.
func (w *Watch) watches(path string) bool {
	for _, p := range w.places {
		if mountinfo.Within(path, p.path) && (!p.watched || path != p.path) {
			return p.watched
		}
	}
	return false
}

// older reports whether a file is a FIFO that stood before the start, whatever it is called now: its other end is the host's.
// (In a layer it is not.)
func (w *Watch) older(f inspect.FilePath) bool {
	if !w.olderFIFO(f.Dir, f.Name, unix.AT_SYMLINK_NOFOLLOW) {
		return false
	}
	i := slices.IndexFunc(w.places, func(p place) bool { return mountinfo.Within(f.Path, p.path) })
	return i < 0 || !w.places[i].layered
}

// olderOpen is the same for what a link of /proc leads to, whether it has a name left or not. Whoever has it open for writing
// wins nothing by another open.
func (w *Watch) olderOpen(pid, dir int, link string) bool {
	if !w.olderFIFO(dir, link, 0) {
		return false
	}
	var st unix.Stat_t
	if err := unix.Fstatat(dir, link, &st, unix.AT_SYMLINK_NOFOLLOW); err == nil && st.Mode&unix.S_IWUSR != 0 {
		return false
	}
	id, err := inspect.Identify(dir, link, 0)
	if err != nil {
		return true
	}
	mounts, err := mountinfo.Of(w.view.Proc, strconv.Itoa(pid))
	i := slices.IndexFunc(mounts, func(m mountinfo.Line) bool { return m.ID == id.Mount })
	return err != nil || i < 0 || mounts[i].Kind != "overlay"
}

func (w *Watch) olderFIFO(dir int, name string, flags int) bool {
	var st unix.Statx_t
	err := unix.Statx(dir, name, flags|unix.AT_NO_AUTOMOUNT, unix.STATX_TYPE|unix.STATX_BTIME, &st)
	return err == nil && st.Mode&unix.S_IFMT == unix.S_IFIFO && st.Mask&unix.STATX_BTIME != 0 &&
		!time.Unix(st.Btime.Sec, int64(st.Btime.Nsec)).After(w.began)
}

// Settle waits until a file that is made now has a later stamp than any that stood when the jail was begun: the kernel stamps files by a clock
// that stands still between two ticks.
func (w *Watch) Settle() {
	for time.Since(w.began) < time.Second { // else the clock was set back
		var now unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &now); err != nil || time.Unix(now.Unix()).After(w.began) {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// Step is the step that fails where files cannot be watched.
const Step = "watch files"

// New prepares what tells w of the calls of t's processes, whose mounts were made by plan. The jail was begun at began: a FIFO of then is the
// host's.
func New(w Watcher, t *process.Table, plan *mount.Plan, began time.Time) (*Watch, error) {
	id, err := inspect.Identify(t.View.Root, "", unix.AT_EMPTY_PATH)
	if err != nil {
		return nil, &step.Error{Op: Step, Path: "the root inside", Err: err}
	}
	return &Watch{watcher: w, init: t.Init, places: placesOf(plan), began: began, view: t.View, rootID: id,
		copying: make(chan struct{}, MaxCopies)}, nil
}

// Answer tells the watcher what a call is about to change. That holds only if the caller still waits.
func (w *Watch) Answer(c *notify.Call) {
	change, err := w.look(c)
	switch {
	case errors.Is(err, inspect.ErrOlder):
		c.Fail(unix.EACCES)
		return
	case err != nil:
		c.Fail(unix.EIO)
		return
	case change == nil:
		c.GoOn()
		return
	case !c.Waits():
		change.close()
		return
	}
	then, err := w.watcher.Changing(change)
	if then == nil || err != nil {
		finish(c, change, err)
		return
	}
	w.copying <- struct{}{}
	w.copies.Go(func() {
		defer func() { <-w.copying }()
		finish(c, change, then())
	})
}

func finish(c *notify.Call, change *Call, err error) {
	change.close()
	if err != nil {
		c.Fail(unix.EIO)
		return
	}
	c.GoOn()
}

// Wait waits for what the Watcher's functions still copy.
func (w *Watch) Wait() { w.copies.Wait() }

package jail

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/jail/inspect"
	"github.com/tapedeck-dev/tapedeck/internal/jail/mount"
	"github.com/tapedeck-dev/tapedeck/internal/jail/mountinfo"
	"github.com/tapedeck-dev/tapedeck/internal/jail/step"
	"golang.org/x/sys/unix"
)

// A watch makes FileCalls of notified calls. Only the notifier's goroutine uses it.
type watch struct {
	watcher Watcher
	places  []place // the deepest first
	began   time.Time
	init    int            // PID of the init
	view    inspect.View   // the jail's, as the init sees it
	rootID  inspect.FileID // of the view's root
	buf     [inspect.MaxPath]byte

	mu    sync.Mutex // until armed is set
	tried bool       // the exec stage's trial came
	off   error      // why nothing is watched; calls pass at once then

	armed   atomic.Bool
	unnamed atomic.Int64 // calls that went on although their paths could not be found out
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
func (w *watch) watches(path string) bool {
	for _, p := range w.places {
		if mountinfo.Within(path, p.path) && (!p.watched || path != p.path) {
			return p.watched
		}
	}
	return false
}

// older reports whether a file is a FIFO that stood before the start, whatever it is called now: its other end is the host's.
// (In a layer it is not.)
func (w *watch) older(f inspect.FilePath) bool {
	if !w.olderFIFO(f.Dir, f.Name, unix.AT_SYMLINK_NOFOLLOW) {
		return false
	}
	i := slices.IndexFunc(w.places, func(p place) bool { return mountinfo.Within(f.Path, p.path) })
	return i < 0 || !w.places[i].layered
}

// olderOpen is the same for what a link of /proc leads to, whether it has a name left or not. Whoever has it open for writing
// wins nothing by another open.
func (w *watch) olderOpen(pid, dir int, link string) bool {
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

func (w *watch) olderFIFO(dir int, name string, flags int) bool {
	var st unix.Statx_t
	err := unix.Statx(dir, name, flags|unix.AT_NO_AUTOMOUNT, unix.STATX_TYPE|unix.STATX_BTIME, &st)
	return err == nil && st.Mode&unix.S_IFMT == unix.S_IFIFO && st.Mask&unix.STATX_BTIME != 0 &&
		time.Unix(st.Btime.Sec, int64(st.Btime.Nsec)).Before(w.began)
}

// newWatch opens what lookups need. An error means that nothing can be watched on this machine.
func newWatch(w Watcher, init int, places []place) (*watch, error) {
	proc, err := unix.Open("/proc", inspect.DirFlags, 0)
	if err != nil {
		return nil, &step.Error{Op: opWatch, Path: "/proc", Err: err}
	}
	out := &watch{watcher: w, init: init, places: places, began: time.Now(), view: inspect.View{Root: -1, Proc: proc}}
	out.view.Root, out.view.Text, err = inspect.RootOf(proc, init)
	if err == nil {
		out.rootID, err = inspect.Identify(out.view.Root, "", unix.AT_EMPTY_PATH)
	}
	if err != nil {
		out.close()
		return nil, &step.Error{Op: opWatch, Path: "the root inside", Err: err}
	}
	return out, nil
}

func (w *watch) close() {
	unix.Close(w.view.Proc)
	if w.view.Root >= 0 {
		unix.Close(w.view.Root)
	}
}

// unreadable says why a program's memory cannot be read, and what would change that.
func unreadable(err error) error {
	if err == nil {
		err = errors.New("other bytes came than stand there")
	}
	return fmt.Errorf("a program's memory cannot be read: %w (%s)", err, toRead())
}

// toRead says what must change where a program's memory cannot be read.
func toRead() string {
	if scope, _ := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope"); strings.TrimSpace(string(scope)) == "3" {
		return "kernel.yama.ptrace_scope is 3: boot with a lower one"
	}
	return "a security module or a container's seccomp profile forbids process_vm_readv or pidfd_getfd: allow it"
}

// trialPath can be made by nobody.
const trialPath = "/proc/tapedeck trial"

// try answers the exec stage's trial: a mkdir of trialPath, which shows whether the memory and the directories of what has
// the program's credentials can be read.
func (w *watch) try(n *seccompNotif) unix.Errno {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tried = true
	r := &request{seccompNotif: n, w: w}
	err := r.openView()
	defer r.closeView()
	var text string
	if err == nil {
		_, err = r.Base(unix.AT_FDCWD)
	}
	if err == nil {
		text, err = inspect.ReadString(int(n.PID), n.Args[1], &w.buf)
	}
	if err != nil || text != trialPath || r.nested {
		w.off = unreadable(err)
		return unix.ENOTSUP
	}
	return 0
}

// arm makes everything from now on the program's. An error says why nothing is watched: without a trial nothing is.
func (w *watch) arm() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.tried {
		w.off = errors.New("the trial notification of a changed file did not come")
	}
	w.armed.Store(true)
	return w.off
}

// notWatched is err as a line of Jail.NotCovered.
func notWatched(err error) string {
	return "order and former contents of changed files: " + err.Error()
}

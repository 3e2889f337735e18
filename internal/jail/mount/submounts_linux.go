package mount

import (
	"os"
	"runtime"

	"github.com/tapedeck-dev/tapedeck/internal/jail/mountinfo"
	"github.com/tapedeck-dev/tapedeck/internal/jail/step"
	"golang.org/x/sys/unix"
)

// IsCovered reports whether something is mounted below lowers of overlays.
func (p *Plan) IsCovered() bool { return len(p.covering) > 0 }

// StartUncovered runs start, which starts the init, in a mount namespace in which nothing is mounted below the overlays' lowers.
// The init inherits what start is given.
//
// In a user namespace the host's mounts are locked, and overlayfs refuses a lower directory with a locked mount below
// it. Who may mount on the host can take them away first, in a copy of the host's mounts that lives as long as the start
// takes, and hand those below a target to the init as descriptors. For everybody else the init splits the overlay.
func (p *Plan) StartUncovered(start func(kept []*os.File) error) (err error) {
	OnOwnThread(func() {
		if err = unix.Unshare(unix.CLONE_NEWNS); err != nil {
			err = &step.Error{Op: step.OpOverlay, Path: p.covering[0], Detail: "something is mounted there", Err: err}
			return
		}
		var kept []*os.File
		if kept, err = uncover(p); err == nil {
			err = start(kept)
		}
		for _, f := range kept {
			f.Close()
		}
	})
	return err
}

// uncover unmounts what covers lowers in this thread's namespace, and returns what stood below targets.
func uncover(plan *Plan) (kept []*os.File, err error) {
	if err := MakePrivate(); err != nil {
		return nil, err
	}
	for _, m := range plan.submounts() {
		t, err := openTree(m.path, m.flags)
		if err != nil {
			return kept, &step.Error{Op: step.OpOverlay, Path: m.path, Detail: "something is mounted there", Err: step.Errno(err)}
		}
		kept = append(kept, os.NewFile(uintptr(t.fd), m.path))
	}
	return kept, plan.unmountCovering()
}

// maxStacked is how many mounts upon one another unmountCovering takes away: each may hide others.
const maxStacked = 100

// unmountCovering unmounts what is below lowers, and what comes to light by that, in this thread's namespace.
func (p *Plan) unmountCovering() error {
	covering := p.covering
	for range maxStacked {
		for _, path := range covering {
			if err := unix.Unmount(path, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil {
				return &step.Error{Op: step.OpOverlay, Path: path, Detail: "something is mounted there", Err: err}
			}
		}
		points, err := mountinfo.Points("/proc/thread-self/mountinfo")
		if err != nil {
			return listError("/proc/thread-self/mountinfo", err)
		}
		if covering = p.coveringOf(points); len(covering) == 0 {
			return nil
		}
	}
	return &step.Error{Op: step.OpOverlay, Path: covering[0], Detail: "too much is mounted there", Err: unix.EBUSY}
}

// A submount is what is mounted below an overlay: the mount alone, or with those in it.
type submount struct {
	path  string
	flags uint // of open_tree
}

// submounts returns what is mounted below overlays, in the order in which the init inherits it.
func (p *Plan) submounts() []submount {
	var out []submount
	for _, t := range p.Targets {
		if t.Beneath { // those in it are targets too, and no lower may have any
			out = append(out, submount{t.Path, 0})
		}
		for _, m := range t.Submounts {
			out = append(out, submount{m, unix.AT_RECURSIVE})
		}
	}
	return out
}

// OnOwnThread runs f on a thread that nothing else uses, before or after. It is never the main thread, which /proc/self
// shows.
func OnOwnThread(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if unix.Gettid() != unix.Getpid() {
			f()
			return // still locked: the thread ends
		}
		OnOwnThread(f)
		runtime.UnlockOSThread()
	}()
	<-done
}

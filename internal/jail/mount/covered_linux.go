package mount

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/tapedeck-dev/tapedeck/internal/jail/mountinfo"
	"github.com/tapedeck-dev/tapedeck/internal/jail/step"
	"golang.org/x/sys/unix"
)

// findSubmounts makes the host's mounts below overlays targets, and gives each overlay the host's mount points below it that
// are none, and those below its lowers.
func (p *Plan) findSubmounts() error {
	mounts, err := mountinfo.Seen("/proc/self/mountinfo")
	if err != nil {
		return listError("/proc/self/mountinfo", err)
	}
	for i := range mounts { // outer ones first
		m := &mounts[i]
		if t := p.targetAbove(m.Point); t != nil && t.Overlay != nil && t.Path != m.Point {
			p.addSubmount(t, m)
		}
	}
	p.sortTargets()
	points := mountinfo.PointsOf(mounts)
	for i := range p.Targets {
		p.Targets[i].findCovered(points)
	}
	return nil
}

func listError(path string, err error) error {
	return &step.Error{Op: "list the mounts of", Path: path, Err: step.Errno(err)}
}

// kernelKinds are file systems that hold no files but the kernel's own things, or none before they are looked for.
var kernelKinds = []string{
	"autofs", "binfmt_misc", "bpf", "cgroup", "cgroup2", "configfs", "debugfs", "devpts", "devtmpfs", "efivarfs", "fusectl",
	"hugetlbfs", "mqueue", "nsfs", "proc", "pstore", "rpc_pipefs", "securityfs", "selinuxfs", "sysfs", "tracefs",
}

// addSubmount has a mount below the overlay t changed in a layer of its own, as t is, unless nobody could change it. Where the
// lowers of t hide it, nothing is mounted.
func (p *Plan) addSubmount(t *Target, m *mountinfo.Line) {
	closed := closedAbove(t.Path, m.Point) != m.Point
	_, dead := os.Lstat(m.Point) // it is there: it does not answer, or not us
	if closed || dead != nil || m.Flags&unix.MOUNT_ATTR_RDONLY != 0 || slices.Contains(kernelKinds, m.Kind) {
		t.Submounts = addOutermost(t.Submounts, t.Path, m.Point)
		return
	}
	lowers := lowersAt(t.Overlay.Lowers, m.Point[len(t.Path)+1:])
	if !slices.Contains(lowers, m.Point) {
		return
	}
	dir := filepath.Join(filepath.Dir(t.Overlay.Upper), submountsDir, strconv.Itoa(len(p.Targets)))
	o := &Overlay{Target: m.Point, Lowers: lowers, Upper: filepath.Join(dir, "upper"), Work: filepath.Join(dir, "work")}
	p.Targets = append(p.Targets, Target{Path: m.Point, Overlay: o, Mount: true, Flags: m.Flags})
}

// findCovered finds which of the points are below lowers of t.
func (t *Target) findCovered(points []string) {
	if t.Overlay == nil {
		return
	}
	for _, l := range t.Overlay.Lowers {
		for _, m := range points {
			if m != l && mountinfo.Within(m, l) {
				t.Covered = addOutermost(t.Covered, l, m)
			}
		}
	}
}

// maxAlone bounds the lowers that are handed over alone: they travel in one packet.
const maxAlone = 200

// OpenAlone opens the lowers that mounts of the host cover without those, and returns them for the init, which gets them in this order.
//
// In a user namespace the host's mounts are locked, and overlayfs refuses a lower directory with a locked mount below it. Who may mount on
// the host can copy the mount that a lower lies in alone. For everybody else the init splits the overlay.
func (p *Plan) OpenAlone() (files []*os.File) {
	for i := range p.Targets {
		t := &p.Targets[i]
		alone, ok := t.openAlone()
		if !ok || len(files)+len(alone) > maxAlone {
			for _, f := range alone {
				f.Close()
			}
			t.Alone = nil
			continue
		}
		files, t.Covered = append(files, alone...), nil
	}
	return files
}

func (t *Target) openAlone() (alone []*os.File, ok bool) {
	if len(t.Covered) == 0 {
		return nil, true
	}
	for _, l := range t.Overlay.Lowers {
		if !slices.ContainsFunc(t.Covered, func(m string) bool { return m != l && mountinfo.Within(m, l) }) {
			continue
		}
		tree, err := openTree(l, 0)
		if err != nil {
			return alone, false
		}
		alone, t.Alone = append(alone, os.NewFile(uintptr(tree.fd), l)), append(t.Alone, l)
		if tree.set(&unix.MountAttr{Propagation: unix.MS_PRIVATE}) != nil {
			return alone, false
		}
	}
	return alone, true
}

// addOutermost adds a mount point below top, unless it lies below top in one of list. What the caller cannot look into
// stands for the mounts in it: they cannot be copied by their paths, and it is shown as they are, whole.
func addOutermost(list []string, top, point string) []string {
	if slices.ContainsFunc(list, func(s string) bool { return s != top && mountinfo.Within(s, top) && mountinfo.Within(point, s) }) {
		return list
	}
	return append(list, closedAbove(top, point))
}

// closedAbove returns the outermost directory between top and point that the caller may not list or enter, or point.
func closedAbove(top, point string) string {
	closed := point
	for dir := filepath.Dir(point); dir != top && mountinfo.Within(dir, top); dir = filepath.Dir(dir) {
		if errors.Is(unix.Access(dir, unix.R_OK|unix.X_OK), unix.EACCES) {
			closed = dir
		}
	}
	return closed
}

// Below reports whether something is mounted below dir on the host, so that an overlay of dir may have to be split.
func Below(dir string) (bool, error) {
	points, err := mountinfo.Points("/proc/self/mountinfo")
	if err != nil {
		return false, &os.PathError{Op: "list mounts", Path: "/proc/self/mountinfo", Err: step.Errno(err)}
	}
	dir = resolve(dir)
	return slices.ContainsFunc(points, func(p string) bool { return p != dir && mountinfo.Within(p, dir) }), nil
}

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
		p.Targets[i].eachCovered(points, func(t *Target, lower, m string) {
			t.Covered = addOutermost(t.Covered, lower, m)
		})
	}
	p.covering = p.coveringOf(points)
	for i := range p.Targets {
		t := &p.Targets[i]
		t.Beneath = t.Overlay != nil && slices.Contains(t.Overlay.Lowers, t.Path) &&
			slices.ContainsFunc(p.covering, func(m string) bool { return mountinfo.Within(t.Path, m) })
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

// eachCovered calls f for each of the points that is below a lower of t.
func (t *Target) eachCovered(points []string, f func(t *Target, lower, point string)) {
	if t.Overlay == nil {
		return
	}
	for _, l := range t.Overlay.Lowers {
		for _, m := range points {
			if m != l && mountinfo.Within(m, l) {
				f(t, l, m)
			}
		}
	}
}

// coveringOf returns the outermost of the points that are below lowers of any overlay.
func (p *Plan) coveringOf(points []string) []string {
	var out []string
	for i := range p.Targets {
		p.Targets[i].eachCovered(points, func(_ *Target, _, m string) { out = append(out, m) })
	}
	slices.Sort(out)
	outermost := out[:0]
	for _, m := range out {
		if !slices.ContainsFunc(outermost, func(s string) bool { return mountinfo.Within(m, s) }) {
			outermost = append(outermost, m)
		}
	}
	return outermost
}

// SameMounts reports whether the host's mounts below the targets are those of q. Both are plans of one Config.
func (p *Plan) SameMounts(q *Plan) bool {
	return slices.Equal(p.covering, q.covering) && slices.EqualFunc(p.Targets, q.Targets, func(a, b Target) bool {
		return a.Path == b.Path && slices.Equal(a.Covered, b.Covered) && slices.Equal(a.Submounts, b.Submounts)
	})
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

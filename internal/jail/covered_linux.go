package jail

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// findSubmounts makes the host's mounts below overlays targets, and gives each overlay the host's mount points below it that
// are none, and those below its lowers.
func (p *mountPlan) findSubmounts() error {
	mounts, err := mountsSeen("/proc/self/mountinfo")
	if err != nil {
		return listError("/proc/self/mountinfo", err)
	}
	for i := range mounts { // outer ones first
		m := &mounts[i]
		if t := p.targetAbove(m.point); t != nil && t.Overlay != nil && t.Path != m.point {
			p.addSubmount(t, m)
		}
	}
	p.sortTargets()
	points := pointsOf(mounts)
	for i := range p.Targets {
		p.Targets[i].eachCovered(points, func(t *mountTarget, lower, m string) {
			t.Covered = addOutermost(t.Covered, lower, m)
		})
	}
	p.covering = p.coveringOf(points)
	for i := range p.Targets {
		t := &p.Targets[i]
		t.Beneath = t.Overlay != nil && slices.Contains(t.Overlay.Lowers, t.Path) &&
			slices.ContainsFunc(p.covering, func(m string) bool { return within(t.Path, m) })
	}
	return nil
}

func listError(path string, err error) error {
	return &SetupError{Op: "list the mounts of", Path: path, Err: errnoOf(err)}
}

// kernelKinds are file systems that hold no files but the kernel's own things, or none before they are looked for.
var kernelKinds = []string{
	"autofs", "binfmt_misc", "bpf", "cgroup", "cgroup2", "configfs", "debugfs", "devpts", "devtmpfs", "efivarfs", "fusectl",
	"hugetlbfs", "mqueue", "nsfs", "proc", "pstore", "rpc_pipefs", "securityfs", "selinuxfs", "sysfs", "tracefs",
}

// addSubmount has a mount below the overlay t changed in a layer of its own, as t is, unless nobody could change it. Where the
// lowers of t hide it, nothing is mounted.
func (p *mountPlan) addSubmount(t *mountTarget, m *mountLine) {
	closed := closedAbove(t.Path, m.point) != m.point
	_, dead := os.Lstat(m.point) // it is there: it does not answer, or not us
	if closed || dead != nil || m.flags&unix.MOUNT_ATTR_RDONLY != 0 || slices.Contains(kernelKinds, m.kind) {
		t.Submounts = addOutermost(t.Submounts, t.Path, m.point)
		return
	}
	lowers := lowersAt(t.Overlay.Lowers, m.point[len(t.Path)+1:])
	if !slices.Contains(lowers, m.point) {
		return
	}
	dir := filepath.Join(filepath.Dir(t.Overlay.Upper), submountsDir, strconv.Itoa(len(p.Targets)))
	o := &Overlay{Target: m.point, Lowers: lowers, Upper: filepath.Join(dir, "upper"), Work: filepath.Join(dir, "work")}
	p.Targets = append(p.Targets, mountTarget{Path: m.point, Overlay: o, Mount: true, Flags: m.flags})
}

// eachCovered calls f for each of the points that is below a lower of t.
func (t *mountTarget) eachCovered(points []string, f func(t *mountTarget, lower, point string)) {
	if t.Overlay == nil {
		return
	}
	for _, l := range t.Overlay.Lowers {
		for _, m := range points {
			if m != l && within(m, l) {
				f(t, l, m)
			}
		}
	}
}

// coveringOf returns the outermost of the points that are below lowers of any overlay.
func (p *mountPlan) coveringOf(points []string) []string {
	var out []string
	for i := range p.Targets {
		p.Targets[i].eachCovered(points, func(_ *mountTarget, _, m string) { out = append(out, m) })
	}
	slices.Sort(out)
	outermost := out[:0]
	for _, m := range out {
		if !slices.ContainsFunc(outermost, func(s string) bool { return within(m, s) }) {
			outermost = append(outermost, m)
		}
	}
	return outermost
}

// sameMounts reports whether the host's mounts below the targets are those of q. Both are plans of one Config.
func (p *mountPlan) sameMounts(q *mountPlan) bool {
	return slices.Equal(p.covering, q.covering) && slices.EqualFunc(p.Targets, q.Targets, func(a, b mountTarget) bool {
		return a.Path == b.Path && slices.Equal(a.Covered, b.Covered) && slices.Equal(a.Submounts, b.Submounts)
	})
}

// addOutermost adds a mount point below top, unless it lies below top in one of list. What the caller cannot look into
// stands for the mounts in it: they cannot be copied by their paths, and it is shown as they are, whole.
func addOutermost(list []string, top, point string) []string {
	if slices.ContainsFunc(list, func(s string) bool { return s != top && within(s, top) && within(point, s) }) {
		return list
	}
	return append(list, closedAbove(top, point))
}

// closedAbove returns the outermost directory between top and point that the caller may not list or enter, or point.
func closedAbove(top, point string) string {
	closed := point
	for dir := filepath.Dir(point); dir != top && within(dir, top); dir = filepath.Dir(dir) {
		if errors.Is(unix.Access(dir, unix.R_OK|unix.X_OK), unix.EACCES) {
			closed = dir
		}
	}
	return closed
}

// MountsBelow reports whether something is mounted below dir on the host, so that an overlay of dir may have to be split.
func MountsBelow(dir string) (bool, error) {
	points, err := mountPoints("/proc/self/mountinfo")
	if err != nil {
		return false, &os.PathError{Op: "list mounts", Path: "/proc/self/mountinfo", Err: errnoOf(err)}
	}
	dir = resolve(dir)
	return slices.ContainsFunc(points, func(p string) bool { return p != dir && within(p, dir) }), nil
}

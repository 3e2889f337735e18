package mountinfo

import (
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Points reads a mountinfo file and returns its mount points, outer ones first. What another mount hides is left
// out.
func Points(path string) ([]string, error) {
	mounts, err := Seen(path)
	return PointsOf(mounts), err
}

// PointsOf lists where mounts are.
func PointsOf(mounts []Line) []string {
	var out []string
	for _, m := range mounts {
		out = append(out, m.Point)
	}
	return out
}

// Seen is mountPoints for the mounts themselves: of those at one point the topmost.
func Seen(path string) ([]Line, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	all := visible(parseMounts(string(data)))
	slices.SortStableFunc(all, func(a, b Line) int { return strings.Compare(a.Point, b.Point) })
	out := all[:0]
	for _, m := range all {
		switch n := len(out); {
		case n == 0 || out[n-1].Point != m.Point:
			out = append(out, m)
		case out[n-1].ID == m.parent:
			out[n-1] = m
		}
	}
	return out, nil
}

// visible leaves out the mounts whose points cannot be reached: something is mounted on a directory above, of the same
// mount, or above one that they stand in. The root itself is where all paths start, whatever is mounted on it.
func visible(mounts []Line) []Line {
	byID, siblings := make(map[uint64]Line), make(map[uint64][]Line)
	for _, m := range mounts {
		byID[m.ID] = m
		siblings[m.parent] = append(siblings[m.parent], m)
	}
	hidden := func(m Line) bool {
		for range mounts { // a list that was read while it changed may hold a circle
			above, ok := byID[m.parent]
			if m.Point == "/" {
				return ok && above.ID != m.ID
			}
			for _, by := range siblings[m.parent] {
				if by.Point != m.Point && by.Point != "/" && Within(m.Point, by.Point) {
					return true
				}
			}
			if !ok {
				return false
			}
			m = above
		}
		return false
	}
	return slices.DeleteFunc(slices.Clone(mounts), hidden)
}

// A Line is one line of a mountinfo file (proc_pid_mountinfo(5)).
type Line struct {
	ID     uint64
	parent uint64 // the mount that this one stands in
	Device string
	Root   string // the directory of the file system that is shown
	Point  string // where
	Kind   string // of the file system
	Flags  uint64 // of MOUNT_ATTR_RDONLY, _NOSUID and _NOEXEC
}

// KernelDevice is the device as the kernel's own number.
func (m *Line) KernelDevice() (uint32, bool) {
	major, minor, _ := strings.Cut(m.Device, ":")
	a, err1 := strconv.ParseUint(major, 10, 12)
	b, err2 := strconv.ParseUint(minor, 10, 20)
	return uint32(a<<20 | b), err1 == nil && err2 == nil
}

// Unescape takes away how a mountinfo file spells blanks and the like.
var Unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\043`, "#", `\134`, `\`)

func parseMounts(data string) []Line {
	var out []Line
	for line := range strings.Lines(data) {
		f := strings.Fields(line)
		if len(f) < 5 {
			continue
		}
		id, err := strconv.ParseUint(f[0], 10, 64)
		if err != nil {
			continue
		}
		parent, _ := strconv.ParseUint(f[1], 10, 64)
		m := Line{ID: id, parent: parent, Device: f[2], Root: Unescape.Replace(f[3]), Point: Unescape.Replace(f[4])}
		if i := slices.Index(f, "-"); i >= 0 && i+1 < len(f) {
			m.Kind = f[i+1]
		}
		if len(f) > 5 {
			m.Flags = flagsOf(f[5] + "," + f[len(f)-1]) // of the mount, and of the whole file system
		}
		out = append(out, m)
	}
	return out
}

func flagsOf(options string) (flags uint64) {
	for o := range strings.SplitSeq(options, ",") {
		switch o {
		case "ro":
			flags |= unix.MOUNT_ATTR_RDONLY
		case "nosuid":
			flags |= unix.MOUNT_ATTR_NOSUID
		case "noexec":
			flags |= unix.MOUNT_ATTR_NOEXEC
		}
	}
	return flags
}

// Of lists the mounts that a process sees, by its name in proc.
func Of(proc int, who string) ([]Line, error) {
	fd, err := unix.Openat(proc, who+"/mountinfo", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), "mountinfo")
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxMountInfo))
	return parseMounts(string(data)), err
}

const maxMountInfo = 16 << 20 // bytes

// Within reports whether path is dir or lies in it. Both are absolute and clean.
func Within(path, dir string) bool {
	rest, ok := strings.CutPrefix(path, dir)
	return ok && (rest == "" || rest[0] == '/' || dir == "/")
}

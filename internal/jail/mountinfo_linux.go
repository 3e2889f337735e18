package jail

import (
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// mountPoints reads a mountinfo file and returns its mount points, outer ones first. What another mount hides is left
// out.
func mountPoints(path string) ([]string, error) {
	mounts, err := mountsSeen(path)
	return pointsOf(mounts), err
}

func pointsOf(mounts []mountLine) []string {
	var out []string
	for _, m := range mounts {
		out = append(out, m.point)
	}
	return out
}

// mountsSeen is mountPoints for the mounts themselves: of those at one point the topmost.
func mountsSeen(path string) ([]mountLine, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	all := visible(parseMounts(string(data)))
	slices.SortStableFunc(all, func(a, b mountLine) int { return strings.Compare(a.point, b.point) })
	out := all[:0]
	for _, m := range all {
		switch n := len(out); {
		case n == 0 || out[n-1].point != m.point:
			out = append(out, m)
		case out[n-1].id == m.parent:
			out[n-1] = m
		}
	}
	return out, nil
}

// visible leaves out the mounts whose points cannot be reached: something is mounted on a directory above, of the same
// mount, or above one that they stand in. The root itself is where all paths start, whatever is mounted on it.
func visible(mounts []mountLine) []mountLine {
	byID, siblings := make(map[uint64]mountLine), make(map[uint64][]mountLine)
	for _, m := range mounts {
		byID[m.id] = m
		siblings[m.parent] = append(siblings[m.parent], m)
	}
	hidden := func(m mountLine) bool {
		for range mounts { // a list that was read while it changed may hold a circle
			above, ok := byID[m.parent]
			if m.point == "/" {
				return ok && above.id != m.id
			}
			for _, by := range siblings[m.parent] {
				if by.point != m.point && by.point != "/" && within(m.point, by.point) {
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

// A mountLine is one line of a mountinfo file (proc_pid_mountinfo(5)).
type mountLine struct {
	id     uint64
	parent uint64 // the mount that this one stands in
	device string
	root   string // the directory of the file system that is shown
	point  string // where
	kind   string // of the file system
	flags  uint64 // of MOUNT_ATTR_RDONLY, _NOSUID and _NOEXEC
}

// kernelDevice is the device as the kernel's own number.
func (m *mountLine) kernelDevice() (uint32, bool) {
	major, minor, _ := strings.Cut(m.device, ":")
	a, err1 := strconv.ParseUint(major, 10, 12)
	b, err2 := strconv.ParseUint(minor, 10, 20)
	return uint32(a<<20 | b), err1 == nil && err2 == nil
}

var unescapeMount = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\043`, "#", `\134`, `\`)

func parseMounts(data string) []mountLine {
	var out []mountLine
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
		m := mountLine{id: id, parent: parent, device: f[2], root: unescapeMount.Replace(f[3]), point: unescapeMount.Replace(f[4])}
		if i := slices.Index(f, "-"); i >= 0 && i+1 < len(f) {
			m.kind = f[i+1]
		}
		if len(f) > 5 {
			m.flags = flagsOf(f[5] + "," + f[len(f)-1]) // of the mount, and of the whole file system
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

// mountsOf lists the mounts that a process sees, by its name in proc.
func mountsOf(proc int, who string) ([]mountLine, error) {
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

// within reports whether path is dir or lies in it. Both are absolute and clean.
func within(path, dir string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
}

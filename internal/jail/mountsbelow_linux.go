package jail

import (
	"os"
	"slices"
)

// MountsBelow reports whether something is mounted below dir on the host, so that an overlay of dir may have to be split.
func MountsBelow(dir string) (bool, error) {
	points, err := mountPoints("/proc/self/mountinfo")
	if err != nil {
		return false, &os.PathError{Op: "list mounts", Path: "/proc/self/mountinfo", Err: errnoOf(err)}
	}
	dir = resolve(dir)
	return slices.ContainsFunc(points, func(p string) bool { return p != dir && within(p, dir) }), nil
}

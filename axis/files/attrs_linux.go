package files

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// maxAttr is the length in bytes of the longest list of names, and of the longest value, that Linux gives.
const maxAttr = 64 << 10

// attrs reads the extended attributes of the file or directory name; none where the file system has none.
func (f folder) attrs(name string) attrSet {
	fd, err := unix.Openat(f.fd, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	return attrsAt("/proc/self/fd/" + strconv.Itoa(fd))
}

// attrsAt reads the extended attributes of what stands at path.
func attrsAt(path string) attrSet {
	var short [256]byte
	b := short[:]
	n, err := unix.Listxattr(path, b)
	if err == unix.ERANGE {
		b = make([]byte, maxAttr)
		n, err = unix.Listxattr(path, b)
	}
	if err != nil || n == 0 {
		return nil
	}
	out := make(attrSet)
	for name := range strings.SplitSeq(strings.TrimSuffix(string(b[:n]), "\x00"), "\x00") {
		if !isKeptAttr(name) {
			continue
		}
		value := make([]byte, maxAttr)
		if n, err := unix.Getxattr(path, name, value); err == nil {
			out[name] = value[:n:n]
		}
	}
	return out
}

// rootAttrs is attrs of a path below root.
func rootAttrs(root folder, path string) attrSet {
	dir, err := root.open(parentOf(path))
	if err != nil {
		return nil
	}
	defer dir.close()
	return dir.attrs(baseOf(path))
}

// setAttrs gives the file or directory at path its extended attributes; those that hold a secret it does not get. A file system that
// has none keeps none.
func setAttrs(root *os.Root, path, text string) error {
	a, err := parseAttrs(text)
	if err != nil {
		return err
	}
	return inDir(root, parentOf(path), func(fd int) error {
		file, err := unix.Openat(fd, baseOf(path), unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(file)
		at := "/proc/self/fd/" + strconv.Itoa(file)
		for name := range attrsAt(at) {
			if _, stays := a[name]; !stays {
				_ = unix.Removexattr(at, name) // one that stays is told of when what stands there is compared
			}
		}
		for name, value := range a {
			if value == nil {
				continue
			}
			err := unix.Setxattr(at, name, value, 0)
			if err == unix.ENOTSUP || err == unix.EPERM || err == unix.ENOSPC {
				return nil
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// makeFIFO makes a FIFO at path.
func makeFIFO(root *os.Root, path string, perm os.FileMode) error {
	return inDir(root, parentOf(path), func(fd int) error {
		if err := unix.Mkfifoat(fd, baseOf(path), 0o600); err != nil {
			return err
		}
		return unix.Fchmodat(fd, baseOf(path), uint32(perm.Perm()), 0)
	})
}

// setTimes gives what stands at path, itself where it is a link, the time in ns since the epoch at which it was last written.
func setTimes(root *os.Root, path string, mtime int64) error {
	return inDir(root, parentOf(path), func(fd int) error {
		t := unix.NsecToTimespec(mtime)
		return unix.UtimesNanoAt(fd, baseOf(path), []unix.Timespec{{Nsec: unix.UTIME_OMIT}, t}, unix.AT_SYMLINK_NOFOLLOW)
	})
}

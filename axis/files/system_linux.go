package files

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// A folder is an open directory below a root.
type folder struct {
	fd   int
	keep *os.File // what owns fd; nil where close does
}

// topFolder opens the directory of root itself.
func topFolder(root *os.Root) (folder, error) {
	f, err := root.Open(".")
	if err != nil {
		return folder{fd: -1}, err
	}
	return folder{fd: int(f.Fd()), keep: f}, nil
}

// letGo closes what topFolder opened.
func (f folder) letGo() {
	if f.keep != nil {
		f.keep.Close()
	}
}

// canBorrow says that a call's descriptor of a directory is of use.
const canBorrow = true

// noFolder is a directory that is not there.
var noFolder = folder{fd: -1}

// borrowed is the folder of a descriptor that somebody else closes.
func borrowed(fd int) folder { return folder{fd: fd} }

// open opens the directory at path below f. No symbolic link is followed: where one stands the directory is not there.
func (f folder) open(path string) (folder, error) {
	if path == "" {
		path = "."
	}
	how := &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS,
	}
	fd, err := again(func() (int, error) { return unix.Openat2(f.fd, path, how) })
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) || errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EXDEV) {
		fd, err = f.walk(path)
	}
	runtime.KeepAlive(f.keep)
	return folder{fd: fd}, err
}

// again calls open until no signal of our own runtime has interrupted it, as file systems in user space and NFS let happen.
func again(open func() (int, error)) (int, error) {
	for {
		if fd, err := open(); !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}

// walk is open name by name, for where openat2 is not to be had or gives up because something is renamed.
func (f folder) walk(path string) (int, error) {
	fd, err := unix.Openat(f.fd, ".", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	for name := range strings.SplitSeq(path, "/") {
		if err != nil {
			break
		}
		var next int
		next, err = unix.Openat(fd, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		unix.Close(fd)
		fd = next
	}
	return fd, err
}

func (f folder) close() { unix.Close(f.fd) }

// stat looks at a name without following a link. The name may be a path that holds none.
func (f folder) stat(name string) (sight, error) {
	var st unix.Stat_t
	if f.fd == noFolder.fd {
		return sight{}, unix.ENOENT
	}
	for {
		err := unix.Fstatat(f.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		runtime.KeepAlive(f.keep)
		return sightOf(&st), err
	}
}

func sightOf(st *unix.Stat_t) sight {
	s := sight{links: uint64(st.Nlink)} //nolint:unconvert // 32 bits on arm64
	s.size, s.mtime, s.ctime, s.ino = st.Size, st.Mtim.Nano(), st.Ctim.Nano(), st.Ino
	perm := Mode(st.Mode & 0o7777)
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		s.mode = Dir | perm
	case unix.S_IFREG:
		s.mode = Regular | perm
	case unix.S_IFLNK:
		s.mode = Link | 0o777
	case unix.S_IFIFO:
		s.mode = FIFO | perm
	}
	return s
}

// readlink returns the target of a link.
func (f folder) readlink(name string) (string, error) {
	b := make([]byte, maxPathLen+1)
	n, err := unix.Readlinkat(f.fd, name, b)
	runtime.KeepAlive(f.keep)
	return string(b[:max(n, 0)]), err
}

// read opens the regular file name. A FIFO or device that stands there is not opened: the name is opened as a mere place,
// and what that is decides.
func (f folder) read(name string) (reading, sight, error) {
	place, err := unix.Openat(f.fd, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	runtime.KeepAlive(f.keep)
	if err != nil {
		return nil, sight{}, err
	}
	defer unix.Close(place)
	var st unix.Stat_t
	if err := unix.Fstat(place, &st); err != nil {
		return nil, sight{}, err
	}
	seen := sightOf(&st)
	if !seen.mode.IsRegular() {
		return nil, seen, errNotRegular
	}
	fd, err := unix.Open("/proc/self/fd/"+strconv.Itoa(place), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, seen, err
	}
	return rawFile(fd), seen, nil
}

// found opens the regular file at path, which lies in f below root and was one a moment ago: what has taken its place since may be opened, and
// is not read.
func (f folder) found(_ *os.Root, path string) (reading, sight, error) {
	fd, err := again(func() (int, error) {
		return unix.Openat(f.fd, baseOf(path), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, sight{}, err
	}
	s, err := rawFile(fd).now()
	if err == nil && !s.mode.IsRegular() {
		err = errNotRegular
	}
	if err != nil {
		unix.Close(fd)
		return nil, s, err
	}
	return rawFile(fd), s, nil
}

// names lists the directory, in no order.
func (f folder) names() ([]string, error) {
	fd, err := unix.Openat(f.fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	runtime.KeepAlive(f.keep)
	if err != nil {
		return nil, err
	}
	dir := os.NewFile(uintptr(fd), ".")
	defer dir.Close()
	return dir.Readdirnames(-1)
}

// A rawFile is the descriptor of a regular file. It stays out of the poller, which costs more than the reading of a short
// file.
type rawFile int

func (r rawFile) Read(b []byte) (int, error) {
	for {
		n, err := unix.Read(int(r), b)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return 0, err
		case n == 0 && len(b) > 0:
			return 0, io.EOF
		}
		return n, nil
	}
}

func (r rawFile) Close() error { return unix.Close(int(r)) }

func (r rawFile) now() (sight, error) {
	var st unix.Stat_t
	err := unix.Fstat(int(r), &st)
	return sightOf(&st), err
}

func (r rawFile) attrs() attrSet {
	if n, err := unix.Flistxattr(int(r), nil); err != nil || n == 0 {
		return nil
	}
	return attrsAt("/proc/self/fd/" + strconv.Itoa(int(r)))
}

// held asks for a lease, which the kernel gives while nobody has the file open for writing, mappings included, and gives it
// back at once. Files of another owner have none for who is not root, nor have some file systems (FUSE, NFS).
//
// An open for writing that does not wait (O_NONBLOCK) in just that moment fails with EAGAIN; one that waits, waits for it.
func (r rawFile) held() bool {
	if _, err := unix.FcntlInt(uintptr(r), unix.F_SETLEASE, unix.F_RDLCK); err != nil {
		return true
	}
	_, _ = unix.FcntlInt(uintptr(r), unix.F_SETLEASE, unix.F_UNLCK)
	return false
}

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

// SetTimes gives what stands at path, itself where it is a link, the times in ns since the epoch at which it was last read, 0 for as it
// is, and written.
func SetTimes(root *os.Root, path string, read, written int64) error {
	return inDir(root, parentOf(path), func(fd int) error {
		t := []unix.Timespec{{Nsec: unix.UTIME_OMIT}, unix.NsecToTimespec(written)}
		if read != 0 {
			t[0] = unix.NsecToTimespec(read)
		}
		return unix.UtimesNanoAt(fd, baseOf(path), t, unix.AT_SYMLINK_NOFOLLOW)
	})
}

// whiteout makes the device 0/0 at path, by which an overlay hides what lies below. Since Linux 5.8 it needs no privilege. It is one with
// that at other, "" for none, where the file system lets it have one name more: a new one costs some ten times as much.
func whiteout(root *os.Root, path, other string) error {
	if other != "" && root.Link(localName(other), localName(path)) == nil {
		return nil
	}
	return inDir(root, parentOf(path), func(fd int) error {
		return unix.Mknodat(fd, baseOf(path), unix.S_IFCHR, 0)
	})
}

// makeOpaque marks a directory so that an overlay with userxattr shows nothing of the one below it.
func makeOpaque(root *os.Root, path string) error {
	return inDir(root, path, func(fd int) error {
		return unix.Fsetxattr(fd, "user.overlay.opaque", []byte("y"), 0)
	})
}

// inDir calls do with an open descriptor of a directory below root.
func inDir(root *os.Root, path string, do func(fd int) error) error {
	dir, err := root.Open(localName(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	conn, err := dir.SyscallConn()
	if err != nil {
		return err
	}
	var done error
	if err := conn.Control(func(fd uintptr) { done = do(int(fd)) }); err != nil {
		return err
	}
	return done
}

// InodeOf returns the time of the last change of a file's inode in ns since the epoch, and the inode's number.
func InodeOf(info fs.FileInfo) (ctime int64, ino uint64, ok bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, false
	}
	return st.Ctim.Nano(), st.Ino, true
}

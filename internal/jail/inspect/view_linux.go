package inspect

import (
	"errors"
	"path"
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/jail/mountinfo"
	"golang.org/x/sys/unix"
)

// A View is a tree of directories as a program sees it, in which paths are looked up for the program: every lookup
// starts at its root and cannot leave it, nothing is opened but with O_PATH.
type View struct {
	Root   int    // O_PATH
	Text   string // how the kernel spells that root to us: "/" unless it lies below its namespace's own
	Proc   int    // our own /proc
	NoProc bool   // what is called /proc there is a directory like others
}

// Errors of a lookup that mean nothing beyond it.
var (
	errByHand = errors.New("this path can only be walked by hand")
	ErrNoName = errors.New("the file has no name here")
)

// ErrOlder is what a lookup ends with that its older refused.
var ErrOlder = errors.New("a FIFO of the host's")

// Relative is a path within the jail's view: "/a/b" as "a/b", the root as ".".
func Relative(p string) string {
	if p == "/" {
		return "."
	}
	return p[1:]
}

// tidy takes "." and empty components out of an absolute path. Those that are ".." stay, for what they lead to depends on
// links before them; dots says that there are any.
func tidy(p string) (clean string, dots bool) {
	if !strings.Contains(p, "/.") && !strings.Contains(p, "//") && (len(p) == 1 || p[len(p)-1] != '/') {
		return p, false
	}
	var b strings.Builder
	for c := range strings.SplitSeq(p, "/") {
		if c == "" || c == "." {
			continue
		}
		dots = dots || c == ".."
		b.WriteByte('/')
		b.WriteString(c)
	}
	if b.Len() == 0 {
		return "/", false
	}
	return b.String(), dots
}

// openDir opens the directory p and says where it lies. Where p has neither a link nor ".." in it, which is one call,
// it lies where it says.
func (v *View) openDir(p string) (fd int, at string, err error) {
	clean, dots := tidy(p)
	if !dots {
		fd, err := v.OpenPlain(clean)
		if !errors.Is(err, unix.ELOOP) {
			return fd, clean, err
		}
	}
	fd, err = v.openLinked(clean)
	if err != nil {
		return -1, "", err
	}
	at, err = v.place(fd)
	if err != nil {
		unix.Close(fd)
		return -1, "", err
	}
	return fd, at, nil
}

// DirFlags open a directory without reading it.
const DirFlags = unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC

// OpenPlain opens a directory by a path without ".."; ELOOP means that there is a link in it. A longer path than the
// kernel takes is walked in pieces.
func (v *View) OpenPlain(clean string) (int, error) {
	how := unix.OpenHow{Flags: DirFlags, Resolve: unix.RESOLVE_NO_SYMLINKS}
	rest, from := Relative(clean), v.Root
	for len(rest) >= MaxPath {
		cut := strings.LastIndexByte(rest[:MaxPath-1], '/')
		if cut < 0 {
			break
		}
		fd, err := unix.Openat2(from, rest[:cut], &how)
		v.leave(from)
		if err != nil {
			return -1, err
		}
		from, rest = fd, rest[cut+1:]
	}
	fd, err := unix.Openat2(from, rest, &how)
	v.leave(from)
	return fd, err
}

// leave closes a directory that a walk has passed.
func (v *View) leave(fd int) {
	if fd != v.Root && fd >= 0 {
		unix.Close(fd)
	}
}

// openLinked opens a directory by a path with links in it. What the kernel cannot follow for us, such as /proc/self, and
// what it does not find, is errByHand.
func (v *View) openLinked(clean string) (int, error) {
	how := unix.OpenHow{Flags: DirFlags, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS}
	for range 4 { // EAGAIN: something was renamed meanwhile
		fd, err := unix.Openat2(v.Root, Relative(clean), &how)
		switch {
		case err == nil:
			return fd, nil
		case errors.Is(err, unix.EAGAIN):
			continue
		case errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENAMETOOLONG):
			return -1, errByHand
		}
		return -1, err
	}
	return -1, errByHand
}

// place says where an open directory lies in the view.
func (v *View) place(fd int) (string, error) {
	text, err := ReadLink(v.Proc, "self/fd/"+strconv.Itoa(fd))
	if err != nil {
		return "", err
	}
	return v.Strip(text)
}

// Strip turns a path as the kernel spells it into one of the view.
func (v *View) Strip(text string) (string, error) {
	switch {
	case text == "" || text[0] != '/' || !mountinfo.Within(text, v.Text):
		return "", ErrNoName
	case v.Text == "/":
		return text, nil
	case text == v.Text:
		return "/", nil
	}
	return text[len(v.Text):], nil
}

// expand walks the directories of p by hand and replaces the first link among them by what it points to; ".." before it
// are gone too. It stops at /proc, whose links mean something else to each process. The last component is not looked at.
func (v *View) expand(p string) (string, error) {
	clean, _ := tidy(p)
	dir, last := path.Split(clean)
	at, from, dots := "/", v.Root, false
	defer func() { v.leave(from) }()
	comps := strings.Split(strings.Trim(dir, "/"), "/")
	for i, c := range comps {
		rest := strings.Join(comps[i+1:], "/") + "/" + last
		switch {
		case at == "/" && c == "proc" && !v.NoProc:
			return "/proc/" + strings.TrimPrefix(rest, "/"), nil
		case c == "..":
			at, dots = path.Dir(at), true
			v.leave(from)
			var err error
			if from, err = v.OpenPlain(at); err != nil {
				return "", err
			}
			continue
		}
		fd, err := unix.Openat(from, c, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return "", err
		}
		v.leave(from)
		from = fd
		if to, err := ReadLink(fd, ""); err == nil {
			return joinLink(at, to) + "/" + rest, nil
		}
		at = path.Join(at, c)
	}
	if !dots {
		return "", unix.ENOENT
	}
	return strings.TrimSuffix(at, "/") + "/" + last, nil
}

// joinLink is where a link in dir that says to points to. Its ".." are not resolved.
func joinLink(dir, to string) string {
	if strings.HasPrefix(to, "/") {
		return to
	}
	return dir + "/" + to
}

// ReadLink reads a symbolic link, which name in dir is, or dir itself where name is empty.
func ReadLink(dir int, name string) (string, error) {
	buf := make([]byte, firstGo)
	for {
		n, err := unix.Readlinkat(dir, name, buf)
		if err != nil {
			return "", err
		}
		if n < len(buf) {
			return string(buf[:n]), nil
		}
		if len(buf) >= 2*MaxPath {
			return "", unix.ENAMETOOLONG
		}
		buf = make([]byte, 2*MaxPath)
	}
}

// A FileID tells files and mounts apart.
type FileID struct {
	major, minor uint32
	inode, Mount uint64
}

// Identify tells which file a name in dir is.
func Identify(dir int, name string, flags int) (FileID, error) {
	var st unix.Statx_t
	flags |= unix.AT_STATX_DONT_SYNC | unix.AT_NO_AUTOMOUNT
	if err := unix.Statx(dir, name, flags, unix.STATX_INO|unix.STATX_MNT_ID, &st); err != nil {
		return FileID{}, err
	}
	return FileID{st.Dev_major, st.Dev_minor, st.Ino, st.Mnt_id}, nil
}

// sameFile leaves out through which mount a file is seen.
func (a FileID) sameFile(b FileID) bool {
	a.Mount, b.Mount = 0, 0
	return a == b
}

// RootOf opens the root of a process and says how the kernel spells it.
func RootOf(proc, pid int) (fd int, text string, err error) {
	name := strconv.Itoa(pid) + "/root"
	if text, err = ReadLink(proc, name); err != nil {
		return -1, "", err
	}
	fd, err = unix.Openat(proc, name, DirFlags, 0)
	return fd, text, err
}

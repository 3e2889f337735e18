package jail

import (
	"errors"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A view is a tree of directories as a program sees it, in which paths are looked up for the program: every lookup
// starts at its root and cannot leave it, nothing is opened but with O_PATH.
type view struct {
	root   int    // O_PATH
	text   string // how the kernel spells that root to us: "/" unless it lies below its namespace's own
	proc   int    // our own /proc
	noProc bool   // what is called /proc there is a directory like others
}

// Errors of a lookup that mean nothing beyond it.
var (
	errByHand = errors.New("this path can only be walked by hand")
	errNoName = errors.New("the file has no name here")
)

// errOlder is what a lookup ends with that its older refused.
var errOlder = errors.New("a FIFO of the host's")

// within the jail's view: "/a/b" as "a/b", the root as ".".
func relative(p string) string {
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
func (v *view) openDir(p string) (fd int, at string, err error) {
	clean, dots := tidy(p)
	if !dots {
		fd, err := v.openPlain(clean)
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

const dirFlags = unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC

// openPlain opens a directory by a path without ".."; ELOOP means that there is a link in it. A longer path than the
// kernel takes is walked in pieces.
func (v *view) openPlain(clean string) (int, error) {
	how := unix.OpenHow{Flags: dirFlags, Resolve: unix.RESOLVE_NO_SYMLINKS}
	rest, from := relative(clean), v.root
	for len(rest) >= maxPath {
		cut := strings.LastIndexByte(rest[:maxPath-1], '/')
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
func (v *view) leave(fd int) {
	if fd != v.root && fd >= 0 {
		unix.Close(fd)
	}
}

// openLinked opens a directory by a path with links in it. What the kernel cannot follow for us, such as /proc/self, and
// what it does not find, is errByHand.
func (v *view) openLinked(clean string) (int, error) {
	how := unix.OpenHow{Flags: dirFlags, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS}
	for range 4 { // EAGAIN: something was renamed meanwhile
		fd, err := unix.Openat2(v.root, relative(clean), &how)
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
func (v *view) place(fd int) (string, error) {
	text, err := readLink(v.proc, "self/fd/"+strconv.Itoa(fd))
	if err != nil {
		return "", err
	}
	return v.strip(text)
}

// strip turns a path as the kernel spells it into one of the view.
func (v *view) strip(text string) (string, error) {
	switch {
	case text == "" || text[0] != '/' || !within(text, v.text):
		return "", errNoName
	case v.text == "/":
		return text, nil
	case text == v.text:
		return "/", nil
	}
	return text[len(v.text):], nil
}

// expand walks the directories of p by hand and replaces the first link among them by what it points to; ".." before it
// are gone too. It stops at /proc, whose links mean something else to each process. The last component is not looked at.
func (v *view) expand(p string) (string, error) {
	clean, _ := tidy(p)
	dir, last := path.Split(clean)
	at, from, dots := "/", v.root, false
	defer func() { v.leave(from) }()
	comps := strings.Split(strings.Trim(dir, "/"), "/")
	for i, c := range comps {
		rest := strings.Join(comps[i+1:], "/") + "/" + last
		switch {
		case at == "/" && c == "proc" && !v.noProc:
			return "/proc/" + strings.TrimPrefix(rest, "/"), nil
		case c == "..":
			at, dots = path.Dir(at), true
			v.leave(from)
			var err error
			if from, err = v.openPlain(at); err != nil {
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
		if to, err := readLink(fd, ""); err == nil {
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

func readLink(dir int, name string) (string, error) {
	buf := make([]byte, firstGo)
	for {
		n, err := unix.Readlinkat(dir, name, buf)
		if err != nil {
			return "", err
		}
		if n < len(buf) {
			return string(buf[:n]), nil
		}
		if len(buf) >= 2*maxPath {
			return "", unix.ENAMETOOLONG
		}
		buf = make([]byte, 2*maxPath)
	}
}

// A fileID tells files and mounts apart.
type fileID struct {
	major, minor uint32
	inode, mount uint64
}

func identify(dir int, name string, flags int) (fileID, error) {
	var st unix.Statx_t
	flags |= unix.AT_STATX_DONT_SYNC | unix.AT_NO_AUTOMOUNT
	if err := unix.Statx(dir, name, flags, unix.STATX_INO|unix.STATX_MNT_ID, &st); err != nil {
		return fileID{}, err
	}
	return fileID{st.Dev_major, st.Dev_minor, st.Ino, st.Mnt_id}, nil
}

// sameFile leaves out through which mount a file is seen.
func (a fileID) sameFile(b fileID) bool {
	a.mount, b.mount = 0, 0
	return a == b
}

// rootOf opens the root of a process and says how the kernel spells it.
func rootOf(proc, pid int) (fd int, text string, err error) {
	name := strconv.Itoa(pid) + "/root"
	if text, err = readLink(proc, name); err != nil {
		return -1, "", err
	}
	fd, err = unix.Openat(proc, name, dirFlags, 0)
	return fd, text, err
}

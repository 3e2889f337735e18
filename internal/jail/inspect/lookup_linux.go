package inspect

import (
	"encoding/binary"
	"errors"
	"os"
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/jail/mountinfo"
	"golang.org/x/sys/unix"
)

// maxLinks is how many symbolic links the kernel follows for one path.
const maxLinks = 40

// A Lookup finds what the paths of one call name. It reads /proc/PID, so what it found holds only if the notification
// is still valid afterwards.
type Lookup struct {
	View
	Task  int
	Older func(pid, dir int, link string) bool // not nil: the file that a link of /proc is must not be such a one
}

// An Ending is what a call does with a link at the end of a path.
type Ending int

// The ends of a path.
const (
	TheName Ending = iota // the call is about the name, whatever it stands for
	TheLink               // a link is followed only where a slash comes after it
	TheFile               // a link is followed
)

// Base says where a relative path of a call starts.
func (l *Lookup) Base(dirfd int32) (string, error) {
	var text string
	var err error
	if who := strconv.Itoa(l.Task); dirfd == unix.AT_FDCWD {
		text, err = ReadLink(l.Proc, who+BaseName(dirfd))
	} else {
		text, err = LinkOf(l.Proc, who, int(dirfd))
	}
	if err != nil {
		return "", err
	}
	return l.Strip(text)
}

// BaseName is where /proc/PID has it.
func BaseName(dirfd int32) string {
	if dirfd == unix.AT_FDCWD {
		return "/cwd"
	}
	return "/fd/" + strconv.Itoa(int(dirfd))
}

// Find names the file at p, an absolute path. The descriptor of the result is the caller's. Errors other than errNoName are those that the call itself would meet, or want of resources.
func (l *Lookup) Find(p string, end Ending) (FilePath, error) {
	var want *FileID // what a link of /proc led to: a path can only be guessed from it
	for range maxLinks + 1 {
		if strings.HasPrefix(p, "/proc/") && !l.NoProc {
			next, id, err := l.throughProc(p, end)
			if err != nil {
				return FilePath{}, err
			}
			p, want = next, id
			continue
		}
		dir, name, slash := splitLast(p)
		if slash && end == TheLink {
			end = TheFile
		}
		fd, at, next, err := l.step(p, dir, name)
		if err != nil {
			return FilePath{}, err
		}
		if next == "" {
			next = l.behind(fd, at, name, end)
		}
		switch {
		case next != "":
			l.leave(fd)
			p = next
		case want != nil && !want.IsAt(fd, name):
			l.leave(fd)
			return FilePath{}, ErrNoName
		default:
			return FilePath{Path: strings.TrimSuffix(at, "/") + "/" + name, Dir: fd, Name: name}, nil
		}
	}
	return FilePath{}, unix.ELOOP
}

// step opens the directory of p, or says by which path to go on.
func (l *Lookup) step(p, dir, name string) (fd int, at, next string, err error) {
	if name == "" || name == "." || name == ".." { // a directory: which name does it have itself?
		if fd, at, err = l.openDir(p); err == nil {
			unix.Close(fd)
			if at == "/" {
				err = ErrNoName
			}
			return -1, "", at, err
		}
	} else {
		fd, at, err = l.openDir(dir)
	}
	if errors.Is(err, errByHand) {
		next, err = l.expand(p)
		return -1, "", next, err
	}
	return fd, at, "", err
}

// behind returns where the lookup goes on from name in the directory fd: what a link points to, if it is followed, or a
// path of /proc; "" at its end.
func (l *Lookup) behind(fd int, at, name string, end Ending) string {
	if mountinfo.Within(at, "/proc") && !l.NoProc {
		return at + "/" + name
	}
	if end != TheFile {
		return ""
	}
	to, err := ReadLink(fd, name)
	if err != nil { // not a link, or nothing at all
		return ""
	}
	return joinLink(at, to)
}

// IsAt reports whether name in the directory dir is this file.
func (a *FileID) IsAt(dir int, name string) bool {
	b, err := Identify(dir, name, unix.AT_SYMLINK_NOFOLLOW|unix.AT_EMPTY_PATH)
	return err == nil && a.sameFile(b)
}

// splitLast takes the last component off; slash says that something followed it: it is meant as a directory.
func splitLast(p string) (dir, name string, slash bool) {
	trimmed := strings.TrimRight(p, "/")
	i := strings.LastIndexByte(trimmed, '/')
	if i < 0 {
		return "/", "", true
	}
	return p[:max(i, 1)], trimmed[i+1:], len(trimmed) < len(p)
}

// throughProc follows a link of /proc to an open file, a working directory or a root. id is that of the file where the
// link is all of p.
func (l *Lookup) throughProc(p string, end Ending) (next string, id *FileID, err error) {
	dir, name, rest, ok := splitProc(p)
	switch {
	case !ok || rest == "" && end != TheFile:
		return "", nil, ErrNoName
	case name == "..":
		return "/" + rest, nil, nil
	}
	who, tail, _ := strings.Cut(dir, "/")
	proc, at := l.Proc, strconv.Itoa(l.Task)
	if who == "self" || who == "thread-self" {
		if strings.HasSuffix(tail, "fd") { // task/N/fd is the same table
			at += "/fd"
		}
	} else {
		how := unix.OpenHow{Flags: DirFlags, Resolve: unix.RESOLVE_NO_SYMLINKS}
		if proc, err = unix.Openat2(l.Root, "proc/"+dir, &how); err != nil {
			return "", nil, err
		}
		defer unix.Close(proc)
		at = "."
	}
	text, err := ReadLink(proc, at+"/"+name)
	if err == nil && rest == "" && l.Older != nil && l.Older(l.Task, proc, at+"/"+name) {
		return "", nil, ErrOlder
	}
	if err == nil {
		text, err = l.Strip(text)
	}
	if err != nil || rest != "" {
		return text + "/" + rest, nil, err
	}
	found, err := Identify(proc, at+"/"+name, 0)
	return text, &found, err
}

// splitProc takes a path below /proc apart at its first link of the kernel's own making: the directory below /proc, the
// link's name, and what follows it. The name is ".." where the path leaves /proc.
func splitProc(p string) (dir, name, rest string, ok bool) {
	var at []string
	comps := strings.Split(strings.TrimPrefix(p, "/proc/"), "/")
	for i, c := range comps {
		switch c {
		case "", ".":
			continue
		case "..":
			if len(at) > 0 {
				at = at[:len(at)-1]
				continue
			}
			return "", c, strings.Join(comps[i+1:], "/"), true
		}
		if isProcLink(at, c) {
			return strings.Join(at, "/"), c, strings.TrimLeft(strings.Join(comps[i+1:], "/"), "/"), true
		}
		at = append(at, c)
	}
	return "", "", "", false
}

// isProcLink reports whether name, in the directory at below /proc, is such a link: PID/fd/N, PID/cwd, PID/root, PID/exe,
// and the same of PID/task/TID.
func isProcLink(at []string, name string) bool {
	if len(at) >= 3 && at[1] == "task" {
		at = append([]string{at[0]}, at[3:]...)
	}
	switch len(at) {
	case 1:
		return name == "cwd" || name == "root" || name == "exe"
	case 2:
		return at[1] == "fd"
	}
	return false
}

// CloseAll closes descriptors.
func CloseAll(fds []int) {
	for _, fd := range fds {
		unix.Close(fd)
	}
}

// IsTerminal reports whether a descriptor is a terminal's.
func IsTerminal(fd int) bool {
	_, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	return err == nil
}

// SocketPath returns the path in a struct sockaddr_un; an address of another family, or an abstract one, has none.
func SocketPath(addr []byte) (string, bool) {
	const family = 2 // bytes
	if len(addr) <= family || len(addr) > unix.SizeofSockaddrUnix || binary.NativeEndian.Uint16(addr) != unix.AF_UNIX || addr[family] == 0 {
		return "", false
	}
	return unix.ByteSliceToString(addr[family:]), true
}

// PidfdThread is a flag of pidfd_open, from linux/pidfd.h.
const PidfdThread = unix.O_EXCL

// LinkOf reads what a descriptor of a thread stands for, by its name in proc.
func LinkOf(proc int, thread string, fd int) (string, error) {
	link, err := ReadLink(proc, thread+"/fd/"+strconv.Itoa(fd))
	if !errors.Is(err, unix.EACCES) {
		return link, err
	}
	err = WithTask(thread, func(task int) error {
		link, _, err = Lent(task, fd)
		return err
	})
	return link, err
}

// WithTask opens a thread.
func WithTask(thread string, use func(task int) error) error {
	tid, err := strconv.Atoi(thread)
	if err != nil {
		return err
	}
	task, err := unix.PidfdOpen(tid, PidfdThread)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.9 only the first thread of a process can be opened
		task, err = unix.PidfdOpen(tid, 0)
	}
	if err != nil {
		return err
	}
	defer unix.Close(task)
	return use(task)
}

// Lent takes a descriptor, and says what it stands for and how it is open: S_IRUSR, S_IWUSR. The error is ENOENT where none
// stands.
func Lent(task, fd int) (link string, mode uint32, err error) {
	taken, err := unix.PidfdGetfd(task, fd, 0)
	if errors.Is(err, unix.EBADF) {
		return "", 0, unix.ENOENT
	}
	if err != nil {
		return "", 0, err
	}
	defer unix.Close(taken)
	flags, err := unix.FcntlInt(uintptr(taken), unix.F_GETFL, 0)
	if err != nil {
		return "", 0, err
	}
	link, err = os.Readlink("/proc/self/fd/" + strconv.Itoa(taken))
	return link, openFor(flags), err
}

// openFor spells the flags of an open as the mode of a link in /proc/PID/fd.
func openFor(flags int) uint32 {
	switch flags & unix.O_ACCMODE {
	case unix.O_RDONLY:
		return unix.S_IRUSR
	case unix.O_WRONLY:
		return unix.S_IWUSR
	}
	return unix.S_IRUSR | unix.S_IWUSR
}

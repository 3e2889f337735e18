package inputs

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"github.com/tapedeck-dev/tapedeck/internal/jail/inspect"
	"github.com/tapedeck-dev/tapedeck/internal/jail/notify"
	"github.com/tapedeck-dev/tapedeck/internal/jail/process"
	"golang.org/x/sys/unix"
)

func (in *Answerer) statfs(c *notify.Call, p *process.Asker) {
	path, err := in.pathOf(c, unix.AT_FDCWD, c.Args[0])
	in.filesystem(c, p, path, err)
}

func (in *Answerer) fstatfs(c *notify.Call, p *process.Asker) {
	path, err := in.pathOf(c, int32(c.Args[0]), 0)
	in.filesystem(c, p, path, err)
}

func (in *Answerer) filesystem(c *notify.Call, p *process.Asker, path string, err error) {
	var now []byte
	if err == nil {
		now = in.filesystemAt(c, path)
	}
	told(c, p, c.Args[1], "statfs", path, now)
}

func (in *Answerer) sysinfo(c *notify.Call, p *process.Asker) {
	var s unix.Sysinfo_t
	if unix.Sysinfo(&s) != nil {
		c.GoOn()
		return
	}
	told(c, p, c.Args[0], "sysinfo", "", bytesOf(&s))
}

// told has the answer of a process's source written at addr. Where the kernel has none now, and for one that cannot be written, it is the kernel
// who answers.
func told(c *notify.Call, p *process.Asker, addr uint64, what, path string, now []byte) {
	if now == nil {
		c.GoOn()
		return
	}
	answer := p.Source.Asked(what, path, now)
	if len(answer) != len(now) || inspect.WriteMemory(c.Task, addr, answer) != nil {
		c.GoOn()
		return
	}
	c.Fail(0)
}

func bytesOf[T any](v *T) []byte {
	return slices.Clone(unsafe.Slice((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v)))
}

// pathOf is the file that a call means by a descriptor and what stands at addr, as the program sees it. Links are as they were.
func (in *Answerer) pathOf(c *notify.Call, dirfd int32, addr uint64) (string, error) {
	var text string
	var err error
	if addr != 0 {
		if text, err = in.text.Path(c.Task, addr); err != nil || strings.HasPrefix(text, "/") {
			return text, err
		}
	}
	l := inspect.Lookup{View: in.table.View, Task: c.Task}
	base, err := l.Base(dirfd)
	if err != nil || text == "" {
		return base, err
	}
	return strings.TrimSuffix(base, "/") + "/" + text, nil
}

// reach opens the file at path as a process sees it, without reading it, and where that process could. The error is any that the call
// would meet, or one of links that mean something else to each process.
func (in *Answerer) reach(c *notify.Call, path string, flags, resolve uint64) (fd int, err error) {
	root, err := unix.Openat(in.table.View.Proc, strconv.Itoa(c.Task)+"/root", inspect.DirFlags, 0)
	if err != nil {
		return -1, err
	}
	defer unix.Close(root)
	asOrdinaryUser(func() {
		fd, err = unix.Openat2(root, inspect.Relative(path), &unix.OpenHow{
			Flags: flags | unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS | resolve,
		})
	})
	return fd, err
}

// asOrdinaryUser runs f without what lets root pass modes of files, which a program inside has not either. It is of this thread, which
// must be locked.
func asOrdinaryUser(f func()) {
	const passing = 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_DAC_READ_SEARCH
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var caps [2]unix.CapUserData
	if unix.Capget(&head, &caps[0]) == nil && caps[0].Effective&passing != 0 {
		less := caps
		less[0].Effective &^= passing
		if unix.Capset(&head, &less[0]) == nil {
			defer func() { _ = unix.Capset(&head, &caps[0]) }() // back to what it had
		}
	}
	f()
}

func (in *Answerer) filesystemAt(c *notify.Call, path string) []byte {
	fd, err := in.reach(c, path, 0, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	var s unix.Statfs_t
	if unix.Fstatfs(fd, &s) != nil {
		return nil
	}
	return bytesOf(&s)
}

// statx gives what was recorded of a file where that is as it was by all that does not change by itself.
func (in *Answerer) statx(c *notify.Call, p *process.Asker) {
	path, err := in.pathOf(c, int32(c.Args[0]), c.Args[1])
	var now []byte
	if err == nil {
		now = in.fileAt(c, path)
	}
	told(c, p, c.Args[4], fmt.Sprintf("statx %x %x", c.Args[2], c.Args[3]), path, now)
}

func (in *Answerer) fileAt(c *notify.Call, path string) []byte {
	var flags uint64
	if c.Args[2]&unix.AT_SYMLINK_NOFOLLOW != 0 {
		flags |= unix.O_NOFOLLOW
	}
	fd, err := in.reach(c, path, flags, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	var is unix.Statx_t
	if unix.Statx(fd, "", unix.AT_EMPTY_PATH|int(c.Args[2])&^unix.AT_SYMLINK_NOFOLLOW, int(c.Args[3]), &is) != nil {
		return nil
	}
	return bytesOf(&is)
}

package jail

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"github.com/tapedeck-dev/tapedeck/internal/jail/inspect"
	"github.com/tapedeck-dev/tapedeck/internal/jail/mountinfo"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// askedRules notify the end of a process and the calls by which a program asks what only the kernel knows of this machine and this moment, and that few
// programs make: what a file system holds, how busy the machine is, and which inode and device a file is. Calls that every program
// makes for every file, fstat and its like, pass: of statx those that stat and ls -i make, which mount nothing and want the inode.
func askedRules() []bpf.Instruction {
	var p []bpf.Instruction
	for _, nr := range []uint32{unix.SYS_STATFS, unix.SYS_FSTATFS, unix.SYS_SYSINFO, unix.SYS_EXIT_GROUP} {
		p = append(p, whenEqual(nr, retNotify)...)
	}
	return append(p,
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.SYS_STATX, SkipTrue: 6},
		bpf.LoadAbsolute{Off: dataArg(2), Size: 4},
		bpf.JumpIf{Cond: bpf.JumpBitsNotSet, Val: unix.AT_NO_AUTOMOUNT, SkipTrue: 2},
		bpf.LoadAbsolute{Off: dataArg(3), Size: 4},
		bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: unix.STATX_INO, SkipTrue: 1},
		bpf.RetConstant{Val: retAllow},
		bpf.RetConstant{Val: retNotify})
}

// asked answers a call of askedRules as its process's source has it. ok is false where the kernel must.
func (n *notifier) asked(req *seccompNotif, p *inputProcess) (ok bool) {
	switch req.Nr {
	case unix.SYS_STATFS:
		path, err := n.pathOf(req, unix.AT_FDCWD, req.Args[0])
		return err == nil && n.told(req, p, req.Args[1], "statfs", path, n.filesystemAt(req, path))
	case unix.SYS_FSTATFS:
		path, err := n.pathOf(req, int32(req.Args[0]), 0)
		return err == nil && n.told(req, p, req.Args[1], "statfs", path, n.filesystemAt(req, path))
	case unix.SYS_SYSINFO:
		var s unix.Sysinfo_t
		return unix.Sysinfo(&s) == nil && n.told(req, p, req.Args[0], "sysinfo", "", bytesOf(&s))
	case unix.SYS_STATX:
		return n.statx(req, p)
	}
	return false
}

// told has the answer of a process's source written at addr. Where the kernel has none now, and for one that cannot be written, it is the kernel
// who answers.
func (n *notifier) told(req *seccompNotif, p *inputProcess, addr uint64, what, path string, now []byte) bool {
	if now == nil {
		return false
	}
	answer := p.source.Asked(what, path, now)
	if len(answer) != len(now) || inspect.WriteMemory(int(req.PID), addr, answer) != nil {
		return false
	}
	n.answer(req.ID, 0)
	return true
}

func bytesOf[T any](v *T) []byte {
	return slices.Clone(unsafe.Slice((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v)))
}

// pathOf is the file that a call means by a descriptor and what stands at addr, as the program sees it. Links are as they were.
func (n *notifier) pathOf(req *seccompNotif, dirfd int32, addr uint64) (string, error) {
	var text string
	var err error
	if addr != 0 {
		if text, err = n.spawns.text.Path(int(req.PID), addr); err != nil || strings.HasPrefix(text, "/") {
			return text, err
		}
	}
	l := inspect.Lookup{View: n.spawns.view, Task: int(req.PID)}
	base, err := l.Base(dirfd)
	if err != nil || text == "" {
		return base, err
	}
	return strings.TrimSuffix(base, "/") + "/" + text, nil
}

// reach opens the file at path as a process sees it, without reading it, and where that process could. The error is any that the call
// would meet, or one of links that mean something else to each process.
func (n *notifier) reach(req *seccompNotif, path string, flags, resolve uint64) (fd int, err error) {
	root, err := unix.Openat(n.spawns.view.Proc, strconv.Itoa(int(req.PID))+"/root", inspect.DirFlags, 0)
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

func (n *notifier) filesystemAt(req *seccompNotif, path string) []byte {
	fd, err := n.reach(req, path, 0, 0)
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
func (n *notifier) statx(req *seccompNotif, p *inputProcess) bool {
	path, err := n.pathOf(req, int32(req.Args[0]), req.Args[1])
	if err != nil {
		return false
	}
	var flags uint64
	if req.Args[2]&unix.AT_SYMLINK_NOFOLLOW != 0 {
		flags |= unix.O_NOFOLLOW
	}
	fd, err := n.reach(req, path, flags, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	var is unix.Statx_t
	if unix.Statx(fd, "", unix.AT_EMPTY_PATH|int(req.Args[2])&^unix.AT_SYMLINK_NOFOLLOW, int(req.Args[3]), &is) != nil {
		return false
	}
	what := fmt.Sprintf("statx %x %x", req.Args[2], req.Args[3])
	return n.told(req, p, req.Args[4], what, path, bytesOf(&is))
}

// A told file of /proc tells of the machine, or of a process, at the moment at which it is read.
var (
	toldOfMachine = []string{
		"uptime", "loadavg", "meminfo", "stat", "vmstat", "diskstats", "interrupts", "softirqs", "schedstat", "zoneinfo", "buddyinfo", "swaps",
		"partitions", "slabinfo", "locks", "pressure/cpu", "pressure/io", "pressure/memory", "sys/kernel/random/boot_id", "sys/fs/file-nr", "sys/fs/inode-nr",
	}
	toldOfProcess = []string{"stat", "statm", "status", "sched", "schedstat", "cgroup"}
	toldOfNetwork = []string{"arp", "dev", "if_inet6", "netstat", "route", "snmp", "snmp6", "sockstat", "sockstat6"} // not the sockets, which programs wait for
	toldOfOneself = []string{"io", "mountinfo", "mounts", "mountstats", "smaps_rollup", "wchan"}                     // others may not read them of it
)

const (
	procUUID    = "/proc/sys/kernel/random/uuid"
	maxProcFile = 1 << 20 // bytes; a longer one is the kernel's
)

// procOpened answers an open of a file of /proc with what its process's source has of it. ok is false where it is none of those.
func (n *notifier) procOpened(req *seccompNotif, text string, flags uint32) (ok bool) {
	name, ok := strings.CutPrefix(text, "/proc/")
	if !ok || text != procUUID && (path.Clean(text) != text || !tellsNow(name)) {
		return false
	}
	p := n.inputs.of(int(req.PID)) // not before: a fork that lists /proc/self/fd has asked for nothing
	if p == nil {
		return false
	}
	if text == procUUID {
		return n.handOver(req, uuid(p.source, n.inputs.place(req, p)), flags)
	}
	now := n.procFile(req, name)
	if now == nil { // the process is gone, say
		return false
	}
	b := p.source.Asked("read", text, now)
	if strings.HasSuffix(name, "mountinfo") {
		b = n.withoutLayers(b)
	}
	return n.handOver(req, b, flags)
}

// withoutLayers leaves out of a mountinfo the mounts that lay changes over a directory of the host: each is a device of its own, which
// where the run was recorded there was none.
func (n *notifier) withoutLayers(b []byte) []byte {
	if n.watch == nil {
		return b
	}
	return slices.Concat(slices.DeleteFunc(bytes.SplitAfter(b, []byte("\n")), func(line []byte) bool {
		f := bytes.Fields(line) // id, parent, device, root, mount point
		return len(f) > 4 && slices.ContainsFunc(n.watch.places, func(p place) bool { return p.layered && p.path == mountinfo.Unescape.Replace(string(f[4])) })
	})...)
}

// tellsNow reports whether a file of /proc is one of the above.
func tellsNow(name string) bool {
	if slices.Contains(toldOfMachine, name) || name == "mounts" || ofNetwork(name) {
		return true
	}
	who, what, _ := strings.Cut(name, "/")
	if rest, ok := strings.CutPrefix(what, "task/"); ok {
		_, what, _ = strings.Cut(rest, "/")
	}
	if who == "self" || who == "thread-self" {
		return slices.Contains(toldOfProcess, what) || slices.Contains(toldOfOneself, what) || ofNetwork(what)
	}
	_, err := strconv.Atoi(who)
	return err == nil && slices.Contains(toldOfProcess, what)
}

func ofNetwork(name string) bool {
	of, what, _ := strings.Cut(name, "/")
	return of == "net" && slices.Contains(toldOfNetwork, what)
}

// procFile reads a file of /proc as the program sees it; nil where that cannot be had.
func (n *notifier) procFile(req *seccompNotif, name string) []byte {
	n.inputs.mu.Lock()
	f, err := n.inputs.familyOf(int(req.PID))
	n.inputs.mu.Unlock()
	if err != nil {
		return nil
	}
	own := strconv.Itoa(f.inside)
	switch who, what, _ := strings.Cut(name, "/"); {
	case who == "self":
		name = own + "/" + what
	case who == "thread-self":
		name = own + "/task/" + strconv.Itoa(f.number) + "/" + what
	case who == "net", name == "mounts":
		name = own + "/" + name
	}
	at, err := n.reach(req, "/proc/"+name, 0, unix.RESOLVE_NO_SYMLINKS)
	if err != nil {
		return nil
	}
	defer unix.Close(at)
	var fs unix.Statfs_t
	if unix.Fstatfs(at, &fs) != nil || fs.Type != unix.PROC_SUPER_MAGIC { // the program put another thing there
		return nil
	}
	file, err := os.Open("/proc/self/fd/" + strconv.Itoa(at))
	if err != nil {
		return nil
	}
	defer file.Close()
	b, err := io.ReadAll(io.LimitReader(file, maxProcFile+1))
	if err != nil || len(b) > maxProcFile {
		return nil
	}
	return b
}

// uuid is a random one of a source, as the kernel spells it.
func uuid(from Source, place uint64) []byte {
	var b [16]byte
	from.Fill(place, b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Appendf(nil, "%x-%x-%x-%x-%x\n", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// handOver makes an open return a file in memory that holds b and can only be read.
func (n *notifier) handOver(req *seccompNotif, b []byte, flags uint32) bool {
	if len(b) == 0 {
		return false
	}
	fd, err := unix.MemfdCreate("proc", unix.MFD_CLOEXEC)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	if k, err := unix.Write(fd, b); err != nil || k < len(b) {
		return false
	}
	read, err := unix.Open("/proc/self/fd/"+strconv.Itoa(fd), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(read)
	return n.sendFD(req.ID, read, int(flags&unix.O_CLOEXEC)) == nil
}

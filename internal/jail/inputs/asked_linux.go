package inputs

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"github.com/tapedeck-dev/tapedeck/internal/jail/inspect"
	"github.com/tapedeck-dev/tapedeck/internal/jail/mountinfo"
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

// times tells how long a process and its children had a processor, and returns how long the machine has been up: five numbers of hundredths
// of a second.
func (in *Answerer) times(c *notify.Call, p *process.Asker) {
	var own unix.Tms
	up, err := unix.Times(&own)
	stat := in.procFile(c, "self/stat")
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:]) // behind the name
	if err != nil || len(fields) < 15 {
		c.GoOn()
		return
	}
	var now []byte
	for _, f := range append(fields[11:15:15], strconv.AppendUint(nil, uint64(up), 10)) {
		n, _ := strconv.ParseInt(string(f), 10, 64)
		now = binary.NativeEndian.AppendUint64(now, uint64(n))
	}
	answer := p.Source.Asked("times", "", now)
	if len(answer) != len(now) || c.Args[0] != 0 && inspect.WriteMemory(c.Task, c.Args[0], answer[:32]) != nil {
		c.GoOn()
		return
	}
	c.Return(int64(binary.NativeEndian.Uint64(answer[32:])))
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

// looks answers a call that asks for a file.
func (in *Answerer) looks(c *notify.Call, dirfd int32, addr uint64) {
	flags, statx := uint32(c.Args[3]), c.Nr == unix.SYS_STATX
	if statx {
		flags = uint32(c.Args[2])
	}
	coreutils := statx && flags&unix.AT_NO_AUTOMOUNT != 0
	ofMachine := coreutils && c.Args[3]&(unix.STATX_INO|unix.STATX_CTIME|unix.STATX_BTIME) != 0
	if ofMachine || coreutils && c.Args[3]&(unix.STATX_SIZE|unix.STATX_BLOCKS) != 0 && in.isDir(c, dirfd, addr, flags) { // how long a directory is depends on its file system
		if p := in.of(c.Task); p != nil {
			in.statx(c, p)
			return
		}
	} else if in.to.Changing() && in.wrote(c, dirfd, addr, flags, statx) {
		return
	}
	c.GoOn()
}

// isDir reports whether a call asks for a directory.
func (in *Answerer) isDir(c *notify.Call, dirfd int32, addr uint64, flags uint32) bool {
	path, err := in.pathOf(c, dirfd, addr)
	if err != nil {
		return false
	}
	fd, err := in.reach(c, path, nofollow(flags)|unix.O_DIRECTORY, 0)
	if err == nil {
		unix.Close(fd)
	}
	return err == nil
}

// wrote answers a call that asks for a file where its Source says that it was written at another time than the kernel does.
func (in *Answerer) wrote(c *notify.Call, dirfd int32, addr uint64, flags uint32, statx bool) bool {
	path, err := in.pathOf(c, dirfd, addr)
	if err != nil {
		return false
	}
	fd, err := in.reach(c, path, nofollow(flags), 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	var s unix.Stat_t
	if unix.Fstat(fd, &s) != nil || !in.to.Recent(s.Mtim.Nano()) {
		return false
	}
	p := in.of(c.Task) // not before: a fork that looks whether a program is there has asked for nothing
	if p == nil {
		return false
	}
	at := p.Source.Wrote(path, s.Size, s.Mtim.Nano(), s.Ctim.Nano())
	if at == s.Mtim.Nano() {
		return false
	}
	to := c.Args[2]
	s.Mtim = unix.NsecToTimespec(at)
	answer := bytesOf(&s)
	if statx {
		var x unix.Statx_t
		if unix.Statx(fd, "", unix.AT_EMPTY_PATH, int(c.Args[3]), &x) != nil {
			return false
		}
		x.Mtime = unix.StatxTimestamp{Sec: s.Mtim.Sec, Nsec: uint32(s.Mtim.Nsec)}
		to, answer = c.Args[4], bytesOf(&x)
	}
	if inspect.WriteMemory(c.Task, to, answer) != nil {
		return false
	}
	c.Fail(0)
	return true
}

// nofollow are the flags of an open that follows a last link where a call with these does.
func nofollow(flags uint32) uint64 {
	if flags&unix.AT_SYMLINK_NOFOLLOW != 0 {
		return unix.O_NOFOLLOW
	}
	return 0
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
	fd, err := in.reach(c, path, nofollow(uint32(c.Args[2])), 0)
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
func (in *Answerer) procOpened(c *notify.Call, text string, flags uint32) (ok bool) {
	name, ok := strings.CutPrefix(text, "/proc/")
	if !ok || text != procUUID && (path.Clean(text) != text || !tellsNow(name)) {
		return false
	}
	p := in.of(c.Task) // not before: a fork that lists /proc/self/fd has asked for nothing
	if p == nil {
		return false
	}
	if text == procUUID {
		return in.handOver(c, uuid(p.Source, in.place(c, p)), flags)
	}
	who, _, _ := strings.Cut(name, "/")
	pid, err := strconv.Atoi(who)
	if err != nil {
		return in.procTold(c, p, name, flags)
	}
	wait := p.Source.Finding(pid)
	if wait == nil {
		return in.procTold(c, p, name, flags)
	}
	in.held.Go(func() {
		runtime.LockOSThread() // of which procTold changes what it may do, for a moment
		defer runtime.UnlockOSThread()
		wait(in.letGo)
		if !in.procTold(c, p, name, flags) {
			c.GoOn()
		}
	})
	return true
}

// procTold answers the open of a file of /proc by its name there. It uses nothing that is of who receives calls alone.
func (in *Answerer) procTold(c *notify.Call, p *process.Asker, name string, flags uint32) (ok bool) {
	now := in.procFile(c, name)
	if now == nil { // the process is gone, say
		return false
	}
	b := p.Source.Asked("read", "/proc/"+name, now)
	if b == nil {
		c.Fail(unix.ENOENT)
		return true
	}
	if strings.HasSuffix(name, "mountinfo") {
		b = in.withoutOurs(b)
	}
	return in.handOver(c, b, flags)
}

// withoutOurs leaves out of a mountinfo the mounts by which the jail gives a directory of the host: where the run was recorded one is bound,
// a part of a file system; on a replay it lies in layers, a device of their own. df would list that one.
func (in *Answerer) withoutOurs(b []byte) []byte {
	return slices.Concat(slices.DeleteFunc(bytes.SplitAfter(b, []byte("\n")), func(line []byte) bool {
		f := bytes.Fields(line) // id, parent, device, root, mount point
		if len(f) < 5 {
			return false
		}
		given, layered := in.plan.Given(mountinfo.Unescape.Replace(string(f[4])))
		return given && (layered || string(f[3]) != "/")
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
func (in *Answerer) procFile(c *notify.Call, name string) []byte {
	f, err := in.table.Status(c.Task)
	if err != nil {
		return nil
	}
	own := strconv.Itoa(f.Inside)
	switch who, what, _ := strings.Cut(name, "/"); {
	case who == "self":
		name = own + "/" + what
	case who == "thread-self":
		name = own + "/task/" + strconv.Itoa(f.Number) + "/" + what
	case who == "net", name == "mounts":
		name = own + "/" + name
	}
	at, err := in.reach(c, "/proc/"+name, 0, unix.RESOLVE_NO_SYMLINKS)
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
func uuid(from process.Source, place uint64) []byte {
	var b [16]byte
	from.Fill(place, b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Appendf(nil, "%x-%x-%x-%x-%x\n", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// handOver makes an open return a file in memory that holds b and can only be read.
func (in *Answerer) handOver(c *notify.Call, b []byte, flags uint32) bool {
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
	return c.ReturnFD(read, int(flags&unix.O_CLOEXEC)) == nil
}

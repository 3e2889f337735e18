//go:build escape

package escape

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

var kernelRows = []row{
	{
		name: "io_uring", tried: "io_uring_setup, _enter, _register", how: "the filter: ENOSYS", try: func(*inside) outcome {
			return all(refused("setup", call(unix.SYS_IO_URING_SETUP, 1, 0), unix.ENOSYS), refused("enter", call(unix.SYS_IO_URING_ENTER, 0), unix.ENOSYS),
				refused("register", call(unix.SYS_IO_URING_REGISTER, 0), unix.ENOSYS))
		},
	},
	{
		name: "memory that cannot be read", tried: "memfd_secret, in which paths and addresses would be hidden from the recorder",
		how: "the filter: ENOSYS", try: func(*inside) outcome {
			return refused("memfd_secret", call(447, 0), unix.ENOSYS)
		},
	},
	{
		name: "x32 calls", tried: "calls with the x32 bit: getpid, socket, io_uring_setup, keyctl", how: "the filter: ENOSYS", try: func(*inside) outcome {
			if !has32Bit {
				return notTried("only amd64 has them")
			}
			const x32 = 0x40000000
			return all(refused("getpid", call(unix.SYS_GETPID|x32), unix.ENOSYS), refused("socket", call(unix.SYS_SOCKET|x32, unix.AF_INET, unix.SOCK_RAW, 1), unix.ENOSYS),
				refused("io_uring_setup", call(unix.SYS_IO_URING_SETUP|x32), unix.ENOSYS), refused("keyctl", call(unix.SYS_KEYCTL|x32), unix.ENOSYS))
		},
	},
	{
		name: "i386 calls", tried: "int 0x80 from a 64-bit program", how: "the filter kills the process: SIGSYS", try: func(*inside) outcome {
			if !has32Bit {
				return notTried("only amd64 has them")
			}
			said, err := stunt("int80")
			var exit *exec.ExitError
			if errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == unix.SIGSYS {
				return held("SIGSYS")
			}
			if said == noSuchCalls {
				return notTried("this kernel has %s", noSuchCalls)
			}
			return out("it came back: %s (%v)", said, err)
		},
	},
	{
		name: "userfaultfd", tried: "userfaultfd that also stops the kernel's own reads, and whoever reads the program's memory",
		how: "the filter: EPERM but for user mode only, in which such a read fails", try: func(*inside) outcome {
			return fdRefused("userfaultfd", unix.SYS_USERFAULTFD, unix.O_CLOEXEC)
		},
	},
	{
		name: "bpf", tried: "bpf: a map, a program", how: "the filter: EPERM", try: func(*inside) outcome {
			var attr [128]byte
			attr[0], attr[4], attr[8], attr[12] = 2, 4, 4, 1 // an array of one
			return all(refused("a map", call(unix.SYS_BPF, unix.BPF_MAP_CREATE, pointer(&attr), 72), unix.EPERM), refused("a program", call(unix.SYS_BPF, unix.BPF_PROG_LOAD, pointer(&attr), 72), unix.EPERM))
		},
	},
	{
		name: "perf_event_open", tried: "a counter of its own, and one of the machine", how: "the filter: EPERM", try: func(*inside) outcome {
			attr := unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_TASK_CLOCK}
			_, errOwn := unix.PerfEventOpen(&attr, 0, -1, -1, 0)
			_, errAll := unix.PerfEventOpen(&attr, -1, 0, -1, 0)
			return all(refused("of its own", errOwn, unix.EPERM), refused("of the machine", errAll, unix.EPERM))
		},
	},
	{
		name: "modules, kexec, reboot, swap, accounting, quota", tried: "init_module, finit_module, delete_module, kexec_load, reboot, swapon, swapoff, acct, quotactl_fd, vhangup, " +
			"fanotify of a file system, with arguments that fail later", how: "no capability: EPERM", try: func(in *inside) outcome { return all(privilegedCalls(in)...) },
	},
	{
		name: "the kernel's log", tried: "syslog: reading all of it, its size", how: "the filter: EPERM, whatever dmesg_restrict says", try: func(*inside) outcome {
			buf := make([]byte, 16)
			_, err := unix.Klogctl(unix.SYSLOG_ACTION_READ_ALL, buf)
			_, errSize := unix.Klogctl(unix.SYSLOG_ACTION_SIZE_BUFFER, nil)
			return all(refused("reading", err, unix.EPERM), refused("the size", errSize, unix.EPERM))
		},
	},
	{
		name: "the clock", tried: "clock_settime, adjtimex, settimeofday with what the clock shows", how: "no capability: EPERM", try: func(*inside) outcome {
			var tx unix.Timex
			if _, err := unix.Adjtimex(&tx); err != nil {
				return out("reading: %v", err)
			}
			tx.Modes = unix.ADJ_TICK // to the tick that it has
			_, err := unix.Adjtimex(&tx)
			var now unix.Timespec
			if err := unix.ClockGettime(unix.CLOCK_REALTIME, &now); err != nil {
				return out("reading: %v", err)
			}
			errSet := unix.ClockSettime(unix.CLOCK_REALTIME, &now)
			return all(refused("adjtimex", err, unix.EPERM), refused("clock_settime", errSet, unix.EPERM))
		},
	},
	{
		name: "the host's name", tried: "sethostname and setdomainname to what they are", how: "no capability: EPERM", try: func(*inside) outcome {
			name, err := os.Hostname()
			if err != nil {
				return out("reading: %v", err)
			}
			return all(refused("sethostname", unix.Sethostname([]byte(name)), unix.EPERM), refused("setdomainname", unix.Setdomainname([]byte("(none)")), unix.EPERM))
		},
	},
	{
		name: "I/O ports", tried: "iopl, ioperm", how: "no capability: EPERM", try: tryPorts,
	},
}

// fdRefused makes a call that returns a descriptor.
func fdRefused(what string, nr, flags uintptr) outcome {
	fd, _, errno := unix.Syscall(nr, flags, 0, 0)
	if errno == 0 {
		unix.Close(int(fd))
		return refused(what, nil)
	}
	return refused(what, errno, unix.EPERM, unix.ENOSYS)
}

// privilegedCalls are harmless should they be let through: what they name does not exist or is not valid.
func privilegedCalls(in *inside) []outcome {
	nowhere, err := unix.BytePtrFromString(filepath.Join(in.Home, "there", "is", "no", "such", "file"))
	if err != nil {
		return []outcome{out("%v", err)}
	}
	name, options := pointer(nowhere), [1]byte{}
	home, err := unix.Open(in.Home, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return []outcome{out("HOME: %v", err)}
	}
	defer unix.Close(home)
	const setInfo = 0x800006 << 8 // Q_SETINFO, for users
	const fanClassContent, fanMarkFilesystem = 4, 0x100
	return []outcome{
		refused("init_module", call(unix.SYS_INIT_MODULE, 0, 0, pointer(&options)), unix.EPERM, unix.ENOSYS),
		refused("finit_module", call(unix.SYS_FINIT_MODULE, ^uintptr(0), pointer(&options), 0), unix.EPERM, unix.ENOSYS),
		refused("delete_module", call(unix.SYS_DELETE_MODULE, name, unix.O_NONBLOCK), unix.EPERM, unix.ENOSYS),
		refused("kexec_load", call(unix.SYS_KEXEC_LOAD, 0, 0, 0, 1<<15), unix.EPERM, unix.ENOSYS),
		refused("kexec_file_load", call(unix.SYS_KEXEC_FILE_LOAD, ^uintptr(0), ^uintptr(0), 0, 0, 1<<30), unix.EPERM, unix.ENOSYS),
		refused("reboot", call(unix.SYS_REBOOT, 1, 2, 3), unix.EPERM),
		refused("swapon", call(unix.SYS_SWAPON, name, 0), unix.EPERM, unix.ENOSYS), refused("swapoff", call(unix.SYS_SWAPOFF, name), unix.EPERM, unix.ENOSYS),
		refused("acct", call(unix.SYS_ACCT, name), unix.EPERM, unix.ENOSYS),
		refused("quotactl_fd", call(unix.SYS_QUOTACTL_FD, uintptr(home), setInfo, 0, 0), unix.EPERM, unix.ENOSYS),
		refused("vhangup", vhangup(), unix.EPERM),
		refused("fanotify", fanotify(home, fanClassContent, fanMarkFilesystem), unix.EPERM, unix.ENOSYS),
		refused("syslog", klog(), unix.EPERM),
	}
}

// vhangup would hang up the terminal of who calls it: only a process without one may try.
func vhangup() error {
	if fd, err := unix.Open("/dev/tty", unix.O_RDWR, 0); err == nil {
		unix.Close(fd)
		return unix.EPERM
	}
	return call(unix.SYS_VHANGUP)
}

func klog() error {
	_, err := unix.Klogctl(unix.SYSLOG_ACTION_SIZE_BUFFER, nil)
	return err
}

// fanotify asks for permission events of a whole file system, for an instant.
func fanotify(dir int, class, mark uint) error {
	fd, err := unix.FanotifyInit(class|unix.FAN_CLOEXEC|unix.FAN_NONBLOCK, unix.O_RDONLY)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.FanotifyMark(fd, unix.FAN_MARK_ADD|mark, unix.FAN_OPEN, dir, "")
}

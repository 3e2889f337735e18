//go:build escape

package escape

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

var processRows = []row{
	{
		name: "/proc of a process", tried: "root, cwd, exe, fd, mem, environ, maps, ns of a process of the host", how: "a PID namespace and a /proc of its own: ENOENT",
		untouched: (*outside).unhurt, try: stranger(func(_ *inside, pid int) outcome { return procFiles(filepath.Join("/proc", strconv.Itoa(pid))) }),
	},
	{
		name: "another /proc of the host", tried: "the same, oom_score_adj and sysctls, where the host's /proc is mounted elsewhere too (a chroot's)",
		how: "the process belongs to the host's user namespace: EACCES; that mount is read-only", untouched: (*outside).unhurt, try: tryOtherProc,
	},
	{
		name: "signals", tried: "kill, tgkill, rt_sigqueueinfo of a process of the host, and of everybody (-1)", how: "a PID namespace of its own: ESRCH",
		untouched: (*outside).unhurt, try: trySignals,
	},
	{
		name: "pidfd", tried: "pidfd_open of a process of the host, for its signals and descriptors", how: "a PID namespace of its own: ESRCH",
		untouched: (*outside).unhurt, try: stranger(func(_ *inside, pid int) outcome {
			fd, err := unix.PidfdOpen(pid, 0)
			if err == nil {
				unix.Close(fd)
			}
			return refused("pidfd_open", err, unix.ESRCH)
		}),
	},
	{
		name: "ptrace", tried: "PTRACE_ATTACH and PTRACE_SEIZE of a process of the host", how: "a PID namespace of its own: ESRCH",
		untouched: (*outside).unhurt, try: stranger(func(_ *inside, pid int) outcome {
			return all(refused("attach", call(unix.SYS_PTRACE, unix.PTRACE_ATTACH, uintptr(pid)), unix.ESRCH),
				refused("seize", call(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(pid)), unix.ESRCH))
		}),
	},
	{
		name: "memory of a process", tried: "process_vm_readv, process_vm_writev, kcmp", how: "a PID namespace of its own: ESRCH",
		untouched: (*outside).unhurt, try: stranger(func(_ *inside, pid int) outcome {
			buf := make([]byte, 8)
			local := []unix.Iovec{{Base: &buf[0], Len: 8}}
			remote := []unix.RemoteIovec{{Base: 0x1000, Len: 8}}
			_, errRead := unix.ProcessVMReadv(pid, local, remote, 0)
			_, errWrite := unix.ProcessVMWritev(pid, local, remote, 0)
			return all(refused("process_vm_readv", errRead, unix.ESRCH), refused("process_vm_writev", errWrite, unix.ESRCH),
				refused("kcmp", call(unix.SYS_KCMP, uintptr(pid), uintptr(os.Getpid()), 0, 0, 0), unix.ESRCH))
		}),
	},
	{
		name: "limits and scheduling", tried: "prlimit, sched_setaffinity, sched_setscheduler, setpriority and ioprio_set of a process of the host",
		how: "a PID namespace of its own: ESRCH", untouched: (*outside).unhurt, try: stranger(func(_ *inside, pid int) outcome {
			var lim unix.Rlimit
			var set unix.CPUSet
			set.Set(0)
			return all(refused("prlimit", unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &lim), unix.ESRCH, unix.EPERM), // EPERM where the number is one of our own stages' numbers
				refused("sched_setaffinity", unix.SchedSetaffinity(pid, &set), unix.ESRCH),
				refused("setpriority", unix.Setpriority(unix.PRIO_PROCESS, pid, 19), unix.ESRCH),
				refused("ioprio_set", call(unix.SYS_IOPRIO_SET, 1, uintptr(pid), 3<<13), unix.ESRCH))
		}),
	},
	{
		name: "priority of all of a user's processes", tried: "setpriority(PRIO_USER): the host's processes of this user become slow",
		how: "the kernel counts those of the PID namespace only", untouched: (*outside).unhurt, try: func(*inside) outcome {
			unix.Setpriority(unix.PRIO_USER, os.Getuid(), 5) // what it does inside harms nobody else: see the witness
			call(unix.SYS_IOPRIO_SET, 3, uintptr(os.Getuid()), 2<<13|7)
			return held("inside only")
		},
	},
	{
		name: "namespaces of a process", tried: "setns to its user, mount, network, PID namespaces; NS_GET_PARENT and NS_GET_USERNS of our own, upwards",
		how: "they cannot be named: ENOENT, ESRCH; the way up ends at the jail: EPERM", try: stranger(tryNamespaces),
	},
	{
		name: "real-time and other privileges", tried: "SCHED_FIFO, a negative nice value, a higher hard limit",
		how: "no capability: EPERM", try: func(*inside) outcome {
			param := struct{ priority int32 }{1}
			var lim unix.Rlimit
			if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &lim); err != nil {
				return out("getrlimit: %v", err)
			}
			higher := unix.Rlimit{Cur: lim.Cur, Max: lim.Max + 1}
			list := []outcome{
				refused("SCHED_FIFO", call(unix.SYS_SCHED_SETSCHEDULER, 0, unix.SCHED_FIFO, pointer(&param)), unix.EPERM),
				refused("nice -5", unix.Setpriority(unix.PRIO_PROCESS, 0, -5), unix.EACCES, unix.EPERM),
			}
			if lim.Max != unix.RLIM_INFINITY {
				list = append(list, refused("a higher limit", unix.Setrlimit(unix.RLIMIT_MEMLOCK, &higher), unix.EPERM))
			}
			return all(list...)
		},
	},
}

// stranger tries f on the victim. A process inside may have its number by chance: that one is left alone.
func stranger(f func(in *inside, pid int) outcome) func(*inside) outcome {
	return func(in *inside) outcome {
		if _, err := os.Lstat(filepath.Join("/proc", strconv.Itoa(in.Victim))); err == nil {
			environ, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(in.Victim), "environ"))
			if string(environ) != "VICTIM="+in.Token+"\x00" {
				return held("a process inside has that number")
			}
		}
		return f(in, in.Victim)
	}
}

// procFiles tries everything in a directory of /proc that leads to a process.
func procFiles(dir string) outcome {
	refusals := []syscall.Errno{unix.ENOENT, unix.EACCES, unix.EPERM, unix.ESRCH}
	var list []outcome
	for _, name := range []string{"root", "cwd", "exe", "fd/0", "fd/3", "ns/net", "ns/mnt", "ns/user", "map_files"} {
		path := filepath.Join(dir, name)
		f, err := os.Open(path)
		if err == nil {
			if name == "map_files" { // lists nothing to a stranger
				_, err = f.ReadDir(0)
			}
			f.Close()
		}
		list = append(list, refused("opening "+name, err, refusals...))
	}
	for _, name := range []string{"mem", "environ", "maps", "auxv", "syscall", "stack", "io"} {
		_, err := os.ReadFile(filepath.Join(dir, name))
		if name == "mem" {
			var f *os.File
			if f, err = os.OpenFile(filepath.Join(dir, name), os.O_RDWR, 0); err == nil {
				f.Close()
			}
			if err != nil {
				list = append(list, refused("opening mem", err, append(refusals, unix.EROFS)...))
				continue
			}
		}
		list = append(list, refused("reading "+name, err, refusals...))
	}
	return all(list...)
}

func tryOtherProc(in *inside) outcome {
	if in.OtherProc == "" {
		return notTried("takes root, to mount it")
	}
	victim := filepath.Join(in.OtherProc, strconv.Itoa(in.Victim))
	if _, err := os.Lstat(victim); err != nil {
		return out("the scene is wrong: %v", err)
	}
	return all(procFiles(victim), procFiles(filepath.Join(in.OtherProc, "1")),
		writeRefused(filepath.Join(victim, "oom_score_adj")), writeRefused(filepath.Join(in.OtherProc, "sys/kernel/core_pattern")),
		writeRefused(filepath.Join(victim, "clear_refs")))
}

// writeRefused opens path for writing, and writes nothing.
func writeRefused(path string) outcome {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err == nil {
		f.Close()
	}
	return refused("opening "+path+" for writing", err, unix.EROFS, unix.EACCES, unix.EPERM, unix.ENOENT)
}

func trySignals(in *inside) outcome {
	var info [128]byte
	*(*int32)(unsafe.Pointer(&info[0])) = int32(unix.SIGUSR1)
	*(*int32)(unsafe.Pointer(&info[8])) = -1 // SI_QUEUE
	o := stranger(func(_ *inside, pid int) outcome {
		return all(refused("kill", unix.Kill(pid, unix.SIGUSR1), unix.ESRCH), refused("kill of the group", unix.Kill(-pid, unix.SIGUSR1), unix.ESRCH),
			refused("tgkill", unix.Tgkill(pid, pid, unix.SIGUSR1), unix.ESRCH),
			refused("rt_sigqueueinfo", call(unix.SYS_RT_SIGQUEUEINFO, uintptr(pid), uintptr(unix.SIGUSR1), pointer(&info)), unix.ESRCH, unix.EPERM))
	})(in)
	unix.Kill(-1, unix.SIGCONT) // everybody that there is; the witness tells whom that reached
	time.Sleep(10 * time.Millisecond)
	return o
}

const (
	nsGetUserns = 0xb701
	nsGetParent = 0xb702
)

func tryNamespaces(_ *inside, pid int) outcome {
	var list []outcome
	for _, name := range []string{"user", "mnt", "net", "pid", "ipc", "uts", "cgroup", "time"} {
		fd, err := unix.Open(fmt.Sprintf("/proc/%d/ns/%s", pid, name), unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err == nil {
			err = unix.Setns(fd, 0)
			unix.Close(fd)
		}
		list = append(list, refused("ns/"+name, err, unix.ENOENT, unix.EACCES, unix.EPERM))
	}
	for name, request := range map[string]uint{"user": nsGetParent, "pid": nsGetParent} {
		list = append(list, refused("the parent of ns/"+name, nsIoctl("/proc/self/ns/"+name, request), unix.EPERM))
	}
	// The owner of our user namespace's parent, by way of the owner of our own.
	list = append(list, refused("the owner above", nsIoctl("/proc/self/ns/user", nsGetUserns), unix.EPERM))
	return all(list...)
}

func nsIoctl(path string, request uint) error {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	got, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), uintptr(request), 0)
	if errno != 0 {
		return errno
	}
	return unix.Close(int(got))
}

package jail

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// helpers run inside a jail, as its program; recorder and relay start one.
var helpers = map[string]func(args []string) int{
	"dial":         helperDial,
	"connect":      helperConnect,
	"backlog":      helperBacklog,
	"unanswered":   helperUnanswered,
	"signalled":    helperSignalled,
	"connectnest":  helperConnectNest,
	"query":        helperQuery,
	"socket":       helperSocket,
	"syscall":      helperSyscall,
	"calls":        helperCalls,
	"elapsed":      helperElapsed,
	"bench":        helperBench,
	"clocks":       helperClocks,
	"starved":      helperStarved,
	"crowd":        helperCrowd,
	"racer":        helperRacer,
	"nest":         helperNest,
	"blind":        helperBlind,
	"state":        helperState,
	"rename":       helperRename,
	"daemon":       helperDaemon,
	"recorder":     helperRecorder,
	"relay":        helperRelay,
	"cripple":      helperCripple,
	"unshare":      helperUnshare,
	"klog":         helperKernelLog,
	"talk":         helperTalk,
	"spawnbench":   helperSpawnbench,
	"storm":        helperStorm,
	"threadexec":   helperThreadExec,
	"talks":        helperTalks,
	"become":       helperBecome,
	"deaf":         helperDeaf,
	"starvedspawn": helperStarvedSpawn,
	"hidden":       helperHidden,
	"nothing":      func([]string) int { return 0 },

	"available": helperAvailable,
}

// helperDial dials each network and address and prints what it read, or that it could not.
func helperDial(args []string) int {
	for i := 0; i+1 < len(args); i += 2 {
		c, err := net.Dial(args[i], args[i+1])
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			fmt.Println(args[i+1], "failed")
			continue
		}
		if strings.HasPrefix(args[i], "udp") {
			c.Write([]byte("hello")) // the refusal comes with the next call
			c.SetDeadline(time.Now().Add(200 * time.Millisecond))
		}
		data, _ := io.ReadAll(c)
		fmt.Println(args[i+1], "reached", string(data))
		c.Close()
	}
	return 0
}

// helperQuery sends a datagram to each address from a socket that is not connected, and prints who answered what.
func helperQuery(args []string) int {
	c, err := net.ListenUDP("udp", nil)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	for _, a := range args {
		to, err := net.ResolveUDPAddr("udp", a)
		if err == nil {
			_, err = c.WriteTo([]byte("query"), to)
		}
		if err != nil {
			fmt.Println(err)
			return 1
		}
		buf := make([]byte, 100)
		c.SetDeadline(time.Now().Add(3 * time.Minute))
		n, from, err := c.ReadFrom(buf)
		if err != nil {
			fmt.Println(err)
			return 1
		}
		fmt.Println(from, string(buf[:n]))
	}
	return 0
}

// helperSocket calls socket with each three arguments and prints the error's name.
func helperSocket(args []string) int {
	for i := 0; i+2 < len(args); i += 3 {
		var n [3]int
		for k := range n {
			n[k], _ = strconv.Atoi(args[i+k])
		}
		_, err := unix.Socket(n[0], n[1], n[2])
		fmt.Println(errorName(err))
	}
	return 0
}

// helperSyscall makes each call of no arguments and prints the error's name.
func helperSyscall(args []string) int {
	for _, a := range args {
		nr, _ := strconv.Atoi(a)
		_, _, errno := unix.Syscall(uintptr(nr), 0, 0, 0)
		fmt.Println(unix.ErrnoName(errno))
	}
	return 0
}

// helperRename renames the first path to the second and prints the error's name.
func helperRename(args []string) int {
	fmt.Println(errorName(unix.Rename(args[0], args[1])))
	return 0
}

func errorName(err error) string {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return unix.ErrnoName(errno)
	}
	return fmt.Sprint(err)
}

// helperState prints what a program is born with.
func helperState([]string) int {
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		for _, key := range []string{"Cap", "NoNewPrivs", "Seccomp:", "SigBlk", "Uid"} {
			if strings.HasPrefix(line, key) {
				fmt.Print(strings.Join(strings.Fields(line), " "), "\n")
			}
		}
	}
	for fd := range 64 {
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0); err == nil && !ofRuntime(fd) {
			fmt.Println("fd", fd, "nonblocking", flags&unix.O_NONBLOCK != 0)
		}
	}
	for _, s := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT} {
		fmt.Println(s, "ignored", signal.Ignored(s))
	}
	host, _ := os.Hostname()
	fmt.Println("host", host)
	return 0
}

// ofRuntime tells the Go runtime's own descriptors: its poller and the files of its CPU limit.
func ofRuntime(fd int) bool {
	to, _ := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	return strings.HasPrefix(to, "anon_inode:[event") || strings.HasPrefix(to, "/sys/fs/cgroup/")
}

// helperDaemon starts itself again in a session of its own and ends while that one sleeps.
func helperDaemon(args []string) int {
	if len(args) > 0 {
		time.Sleep(time.Hour)
	}
	_, err := os.StartProcess("/proc/self/exe", []string{"daemon", "child"},
		&os.ProcAttr{Env: os.Environ(), Files: []*os.File{nil, os.Stdout, os.Stderr}, Sys: &syscall.SysProcAttr{Setsid: true}})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// helperRecorder starts a jail whose program sleeps, prints the PID of its init, and sleeps.
func helperRecorder([]string) int {
	exe, _ := os.Executable()
	j, err := Start(context.Background(), &Config{Path: exe, Argv: []string{"helper", "stay"}, Dir: "/", TTY: -1,
		Env: []string{helperVar + "=daemon"}, Stdout: os.Stdout})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	if len(os.Args) > 1 {
		if err := j.Release(); err != nil {
			fmt.Println(err)
			return 1
		}
	}
	fmt.Println(j.init.PID)
	time.Sleep(time.Hour)
	return 0
}

// helperRelay runs the helper that it is named in a jail with its own streams.
func helperRelay(args []string) int {
	exe, _ := os.Executable()
	j, err := Start(context.Background(), &Config{Path: exe, Argv: []string{"helper"}, Dir: "/", TTY: -1,
		Env: []string{helperVar + "=" + args[0]}, Stdout: os.Stdout, Stderr: os.Stderr})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer j.Close()
	if err := j.Release(); err != nil {
		fmt.Println(err)
		return 1
	}
	x, err := j.Wait()
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return x.Code
}

// helperAvailable prints whether a jail can be made.
func helperAvailable([]string) int {
	err := Available()
	switch {
	case err == nil:
		fmt.Println("available")
	case errors.Is(err, ErrUnavailable):
		fmt.Println(err)
	default:
		fmt.Println("other error:", err)
		return 1
	}
	return 0
}

// helperCripple sends process 1, by the number of each of its threads, a queued signal that looks like a fault, and gives
// it the limit that it has. It prints each limit that could be set.
func helperCripple([]string) int {
	threads, err := os.ReadDir("/proc/1/task")
	if err != nil || len(threads) < 2 {
		fmt.Println(len(threads), err)
		return 1
	}
	var info [128]byte
	*(*int32)(unsafe.Pointer(&info[0])) = int32(unix.SIGSEGV)
	*(*int32)(unsafe.Pointer(&info[8])) = -1 // SI_QUEUE
	for _, e := range threads {
		tid, _ := strconv.Atoi(e.Name())
		unix.Syscall(unix.SYS_RT_SIGQUEUEINFO, uintptr(tid), uintptr(unix.SIGSEGV), uintptr(unsafe.Pointer(&info)))
		unix.Tgkill(1, tid, unix.SIGSEGV)
		var lim unix.Rlimit
		if err := unix.Prlimit(tid, unix.RLIMIT_NOFILE, nil, &lim); err == nil && unix.Prlimit(tid, unix.RLIMIT_NOFILE, &lim, nil) == nil {
			fmt.Println("limited", tid)
		}
	}
	time.Sleep(50 * time.Millisecond)
	fmt.Println("alive")
	return 0
}

// helperKernelLog asks how large the kernel's log is.
func helperKernelLog([]string) int {
	_, err := unix.Klogctl(unix.SYSLOG_ACTION_SIZE_BUFFER, nil)
	fmt.Println(errorName(err))
	return 0
}

// helperUnshare starts a process in a user namespace, and the one that its argument gives, and prints how that went.
func helperUnshare(args []string) int {
	flags, _ := strconv.Atoi(args[0])
	p, err := os.StartProcess("/proc/self/exe", []string{"helper"}, &os.ProcAttr{
		Env: []string{helperVar + "=nothing"}, Sys: &syscall.SysProcAttr{Cloneflags: uintptr(flags) | unix.CLONE_NEWUSER},
	})
	if err == nil {
		p.Wait()
	}
	fmt.Println(errorName(err))
	return 0
}

// newKernel reports whether Linux is that new.
func newKernel(major, minor int) bool {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return false
	}
	var a, b int
	_, err := fmt.Sscanf(unix.ByteSliceToString(u.Release[:]), "%d.%d", &a, &b)
	return err == nil && (a > major || a == major && b >= minor)
}

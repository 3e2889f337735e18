package process

import (
	"bytes"
	"errors"
	"runtime"
	"strconv"
	"time"
	"unsafe"

	"github.com/tapedeck-dev/tapedeck/internal/jail/notify"
	"golang.org/x/sys/unix"
)

// ExitOf is a status of wait(2).
func ExitOf(ws unix.WaitStatus) Exit {
	if ws.Signaled() {
		return Exit{Signal: ws.Signal()}
	}
	return Exit{Code: ws.ExitStatus()}
}

// untilDead is how long what was killed takes at most to end, or to stop.
const untilDead = 100 * time.Millisecond

// lives reports whether the process has not ended. One that was killed may take a moment for that, in which it does not stop: it is
// asked again until it has done either, or until then.
func (t *Table) lives(p *Process, until time.Time) bool {
	over := IsOver(p.fd, 0)
	for !over && time.Now().Before(until) && !t.stopped(p) {
		over = IsOver(p.fd, 1)
	}
	return !over
}

// stopped reports whether the process, which is not over, stands still.
func (t *Table) stopped(p *Process) bool {
	var buf [1024]byte
	f := statFields(t.stat(p.PID, buf[:]))
	return len(f) > 0 && (f[0][0] == 'T' || f[0][0] == 't')
}

// IsOver reports whether the process of a pidfd is gone, and waits for it so many milliseconds.
func IsOver(pidfd, timeout int) bool {
	fds := []unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}
	for {
		_, err := unix.Poll(fds, timeout)
		if !errors.Is(err, unix.EINTR) {
			return fds[0].Revents != 0
		}
	}
}

// how asks the kernel how a process ended that was waited for, and /proc while nobody has. Between the two it is looked at again.
func (t *Table) how(p *Process) Ended {
	var buf [1024]byte
	for range 1000 {
		if status, ok := reapedStatus(p.fd); ok {
			return Ended{Exit: ExitOf(status), Known: true}
		}
		status, ok := statusIn(t.stat(p.PID, buf[:]))
		gone := errors.Is(unix.PidfdSendSignal(p.fd, 0, nil, 0), unix.ESRCH) // then its number may have been another's
		switch {
		case ok && !gone:
			return Ended{Exit: ExitOf(status), Known: true}
		case gone:
			status, ok := reapedStatus(p.fd)
			return Ended{Exit: ExitOf(status), Known: ok}
		}
		runtime.Gosched()
	}
	return Ended{}
}

// stat reads /proc/PID/stat; nothing where there is none.
func (t *Table) stat(pid int, buf []byte) []byte {
	n, _ := readFile(t.View.Proc, strconv.Itoa(pid)+"/stat", buf)
	return buf[:n]
}

// statFields are what follows the name in a /proc/PID/stat. The name may hold anything, what follows no parenthesis.
func statFields(stat []byte) [][]byte {
	return bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
}

// statusIn finds the status of a dead process in its /proc/PID/stat.
func statusIn(stat []byte) (unix.WaitStatus, bool) {
	const state, code = 0, 49 // the 3rd and 52nd of proc_pid_stat(5)
	fields := statFields(stat)
	if len(fields) <= code || string(fields[state]) != "Z" && string(fields[state]) != "X" { // X: somebody is taking it
		return 0, false
	}
	v, err := strconv.ParseUint(string(fields[code]), 10, 32)
	return unix.WaitStatus(v), err == nil
}

// reapedStatus asks for the status of a process that was waited for; Linux 6.15 and newer know it.
func reapedStatus(pidfd int) (unix.WaitStatus, bool) {
	// The first version's size; newer kernels take it too.
	const getInfo = unix.PIDFD_GET_INFO&^(0x3fff<<16) | unix.PIDFD_INFO_SIZE_VER0<<16
	info := unix.PidfdInfo{Mask: unix.PIDFD_INFO_EXIT}
	_, err := notify.Ioctl(uintptr(pidfd), getInfo, unsafe.Pointer(&info))
	if err != nil || info.Mask&unix.PIDFD_INFO_EXIT == 0 {
		return 0, false
	}
	return unix.WaitStatus(info.Exit_code), true
}

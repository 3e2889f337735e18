//go:build unix

package process

import (
	"errors"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

const onWindows = false

// ownGroup has cmd started as a process group of its own.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// endGroup ends all that is left of the group of cmd. It comes before reap, so that the number is still this group's.
func endGroup(cmd *exec.Cmd) { _ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL) }

// resultOf is how a process ended.
func resultOf(st *os.ProcessState) *Result {
	w, ok := st.Sys().(syscall.WaitStatus)
	if ok && w.Signaled() {
		return &Result{ExitCode: 128 + int(w.Signal()), Signal: unix.SignalName(w.Signal())}
	}
	return &Result{ExitCode: st.ExitCode()}
}

// pollable says that wait can be used.
const pollable = true

// wait returns nil when a read will not block, and os.ErrClosed after Stop, when the program closed its end, or when one of
// the files is closed here.
func (in *Input) wait() error {
	set := []unix.PollFd{{Events: unix.POLLIN}, {Events: unix.POLLIN}}
	files := []*os.File{in.wake, in.file}
	if in.to != nil {
		set = append(set, unix.PollFd{}) // no event is asked for: that its reader is gone is always told
		files = append(files, in.to)
	}
	open := false
	err := withDescriptors(files, set, func() error {
		if err := poll(set); err != nil {
			return err
		}
		open = set[0].Revents == 0 && (in.to == nil || set[2].Revents == 0)
		return nil
	})
	if err == nil && !open {
		return os.ErrClosed
	}
	return err
}

// poll waits for the first event of set.
func poll(set []unix.PollFd) error {
	for {
		if _, err := unix.Poll(set, -1); !errors.Is(err, unix.EINTR) {
			return os.NewSyscallError("poll", err)
		}
	}
}

// withDescriptors calls f with the descriptors of files in set. They stay open meanwhile, and do not become blocking as
// they would by File.Fd.
func withDescriptors(files []*os.File, set []unix.PollFd, f func() error) error {
	if len(files) == 0 {
		return f()
	}
	conn, err := files[0].SyscallConn()
	if err != nil {
		return os.ErrClosed
	}
	var errF error
	err = conn.Control(func(fd uintptr) {
		set[0].Fd = int32(fd)
		errF = withDescriptors(files[1:], set[1:], f)
	})
	if err != nil {
		return os.ErrClosed
	}
	return errF
}

//go:build unix

package stopread

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

const pollable = true

// wait returns nil when a read will not block, and os.ErrClosed after Stop, at the end that Until says, or when one of the files is
// closed here.
func (r *Reader) wait() error {
	set := []unix.PollFd{{Events: unix.POLLIN}, {Events: unix.POLLIN}}
	files := []*os.File{r.wake, r.file}
	if r.to != nil {
		set = append(set, unix.PollFd{}) // no event is asked for: that its reader is gone is always told
		files = append(files, r.to)
	}
	open := false
	err := withDescriptors(files, set, func() error {
		_, err := unix.Poll(set, -1)
		for errors.Is(err, unix.EINTR) {
			_, err = unix.Poll(set, -1)
		}
		open = set[0].Revents == 0 && (r.to == nil || set[2].Revents == 0)
		return os.NewSyscallError("poll", err)
	})
	if err == nil && !open {
		return os.ErrClosed
	}
	return err
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

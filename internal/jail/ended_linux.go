package jail

import (
	"bytes"
	"errors"
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// wait starts, once, the goroutine that tells how the process ended. It ends with the process, at the latest with the jail.
func (p *spawnProcess) wait(s *spawns) {
	p.waiting.Do(func() {
		p.waited.Store(true)
		s.begun(p)
		s.ends.Go(func() {
			e := p.awaitEnd()
			e.Left = s.forget(p)
			p.end <- e
			p.ended.Store(true)
			p.close()
		})
	})
}

// begun is told that somebody waits for the end of p.
func (s *spawns) begun(p *spawnProcess) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.left = s.over
	s.alive[p] = true
}

// left is told that all that lives now is about to be killed, and whether it was stopped before. That s is nil means that nobody asks.
func (s *spawns) left(stopped bool) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	var until time.Time
	if stopped {
		until = time.Now().Add(untilDead)
	}
	for p := range s.alive {
		p.left = p.left || p.lives(until)
	}
}

// untilDead is how long what was killed takes at most to end, or to stop.
const untilDead = 100 * time.Millisecond

// lives reports whether the process has not ended. One that was killed may take a moment for that, in which it does not stop: it is
// asked again until it has done either, or until then.
func (p *spawnProcess) lives(until time.Time) (yes bool) {
	err := withFD(p.pidfd, func(fd int) error {
		over := isOver(fd, 0)
		for !over && time.Now().Before(until) && !p.stopped() {
			over = isOver(fd, 1)
		}
		yes = !over
		return nil
	})
	return err == nil && yes
}

// stopped reports whether the process stands still.
func (p *spawnProcess) stopped() bool {
	b, err := withinProc(p.proc, "stat")
	_, after, ok := bytes.Cut(b[bytes.LastIndexByte(b, ')')+1:], []byte{' '})
	return err == nil && ok && len(after) > 0 && (after[0] == 'T' || after[0] == 't')
}

func (p *spawnProcess) awaitEnd() (e Ended) {
	c, err := p.pidfd.SyscallConn()
	if err != nil {
		return Ended{}
	}
	// Without an error the function is called again whenever the descriptor may have become readable.
	err = c.Read(func(fd uintptr) bool { return isOver(int(fd), 0) })
	if err != nil { // no poller for it
		c.Control(func(fd uintptr) { isOver(int(fd), -1) })
	}
	c.Control(func(fd uintptr) { e = p.howEnded(int(fd)) })
	return e
}

// isOver reports whether the process of a pidfd is gone, and waits for it so many milliseconds; -1 is without end.
func isOver(pidfd, timeout int) bool {
	fds := []unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}
	for {
		_, err := unix.Poll(fds, timeout)
		if !errors.Is(err, unix.EINTR) {
			return fds[0].Revents != 0
		}
	}
}

// howEnded asks /proc as long as nobody has taken the status of the dead process, and the kernel itself afterwards.
func (p *spawnProcess) howEnded(pidfd int) Ended {
	if status, ok := p.zombieStatus(); ok {
		return Ended{Exit: exitOf(status), Known: true}
	}
	if status, ok := reapedStatus(pidfd); ok {
		return Ended{Exit: exitOf(status), Known: true}
	}
	return Ended{}
}

// zombieStatus reads the last field of /proc/PID/stat.
func (p *spawnProcess) zombieStatus() (unix.WaitStatus, bool) {
	var buf [1024]byte
	var text []byte
	err := withFD(p.proc, func(dir int) error {
		fd, err := unix.Openat(dir, "stat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		n, err := unix.Read(fd, buf[:])
		text = buf[:max(n, 0)]
		return err
	})
	if err != nil {
		return 0, false
	}
	return statusIn(text)
}

// statusIn finds the status of a dead process in its /proc/PID/stat. The name in it may hold anything, what follows no
// parenthesis.
func statusIn(stat []byte) (unix.WaitStatus, bool) {
	const state, code = 0, 49 // behind the name: the 3rd and 52nd of proc_pid_stat(5)
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) <= code || string(fields[state]) != "Z" {
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
	if ioctl(uintptr(pidfd), getInfo, unsafe.Pointer(&info)) != nil || info.Mask&unix.PIDFD_INFO_EXIT == 0 {
		return 0, false
	}
	return unix.WaitStatus(info.Exit_code), true
}

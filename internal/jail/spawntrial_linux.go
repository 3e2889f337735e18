package jail

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// try answers the exec stage's trial, an execve of trialPath with nothing, which could never succeed. It does to it all that is done to a
// spawn, but that the call returns 0 where a stub would be executed.
func (s *spawns) try(n *notifier, req *seccompNotif) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tried = true
	if s.off = s.rehearse(n, req); s.off != nil {
		n.answer(req.ID, unix.ENOTSUP)
	}
}

func (s *spawns) rehearse(n *notifier, req *seccompNotif) error {
	text, err := s.text.Path(int(req.PID), req.Args[0])
	if err != nil || text != trialPath {
		return unreadable(err)
	}
	thread := fmt.Sprint(req.PID)
	if _, err = s.link(thread, 0); err != nil {
		return fmt.Errorf("a program's descriptors cannot be looked at: %w", err)
	}
	pid, _, err := s.family(thread)
	if err != nil {
		return fmt.Errorf("a program's parent cannot be found out: %w", err)
	}
	p, err := s.newProcess(pid, int(req.PID))
	if err != nil {
		return fmt.Errorf("a program cannot be opened: %w (Linux 5.10 and newer can)", err)
	}
	defer p.close()
	if err := s.swapSame(n, req, p); err != nil {
		return err
	}
	if err := n.divert(req, func(r *registers) { r.result(req, 0) }); err != nil {
		return fmt.Errorf("%w (a container's seccomp profile may forbid ptrace, or kernel.yama.ptrace_scope is 3)", err)
	}
	return nil
}

// swapSame replaces descriptor 0 by itself.
func (s *spawns) swapSame(n *notifier, req *seccompNotif, p *spawnProcess) error {
	fd, err := p.take(0)
	if err != nil {
		return fmt.Errorf("a program's descriptors cannot be taken: %w (a container's seccomp profile may forbid pidfd_getfd)", err)
	}
	defer unix.Close(fd)
	if _, err := n.addFD(req.ID, fd, 0, 0); err != nil {
		return fmt.Errorf("a program's descriptors cannot be replaced: %w (Linux 5.9 and newer can)", err)
	}
	return nil
}

// trySpawn makes the call that try answers. What came of it the recorder knows.
func trySpawn() {
	path, err := unix.BytePtrFromString(trialPath)
	if err == nil {
		_, _, _ = unix.RawSyscall(unix.SYS_EXECVE, uintptr(unsafe.Pointer(path)), 0, 0)
	}
}

package spawns

import (
	"fmt"

	"github.com/tapedeck-dev/tapedeck/internal/jail/notify"
	"github.com/tapedeck-dev/tapedeck/internal/jail/trace"
	"golang.org/x/sys/unix"
)

// try answers the exec stage's trial, an execve with nothing, which could never succeed. It does to it all that is done to a
// spawn, but that the call returns 0 where a stub would be executed.
func (s *Finder) try(c *notify.Call) {
	err := s.rehearse(c)
	s.Came(err)
	if err != nil {
		c.Fail(unix.ENOTSUP)
	}
}

func (s *Finder) rehearse(c *notify.Call) error {
	text, err := s.text.Path(c.Task, c.Args[0])
	if err != nil || text != notify.TrialPath {
		return notify.Unreadable(err)
	}
	thread := fmt.Sprint(c.Task)
	if _, err = s.link(thread, 0); err != nil {
		return fmt.Errorf("a program's descriptors cannot be looked at: %w", err)
	}
	is, err := s.table.Status(c.Task)
	if err != nil {
		return fmt.Errorf("a program's parent cannot be found out: %w", err)
	}
	task, err := openTask(is.Process, c.Task)
	if err != nil {
		return fmt.Errorf("a program cannot be opened: %w (Linux 5.10 and newer can)", err)
	}
	defer task.Close()
	if err := swapSame(c, &talk{task: task}); err != nil {
		return err
	}
	if err := trace.Divert(c, func(r *trace.Registers) { r.Return(c, 0) }); err != nil {
		return fmt.Errorf("%w (a container's seccomp profile may forbid ptrace, or kernel.yama.ptrace_scope is 3)", err)
	}
	return nil
}

// swapSame replaces descriptor 0 by itself.
func swapSame(c *notify.Call, p *talk) error {
	fd, err := p.take(0)
	if err != nil {
		return fmt.Errorf("a program's descriptors cannot be taken: %w (a container's seccomp profile may forbid pidfd_getfd)", err)
	}
	defer unix.Close(fd)
	if _, err := c.AddFD(fd, 0, 0); err != nil {
		return fmt.Errorf("a program's descriptors cannot be replaced: %w (Linux 5.9 and newer can)", err)
	}
	return nil
}

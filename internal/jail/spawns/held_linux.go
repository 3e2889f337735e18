package spawns

import (
	"errors"
	"os"
	"strconv"

	"github.com/tapedeck-dev/tapedeck/internal/jail/inspect"
	"golang.org/x/sys/unix"
)

// link reads what a descriptor of a thread stands for: "pipe:[123]". A process that does not want to be dumped shows its
// descriptors in /proc to root alone; to who may trace it, as we may, they can be lent.
func (s *Finder) link(thread string, fd int) (string, error) {
	return inspect.LinkOf(s.table.View.Proc, thread, fd)
}

// farEnds are those of two pipes that a process was not yet found to hold.
type farEnds struct {
	links   [2]string
	missing [2]bool
}

// add takes note of a descriptor, of which mode says what it is open for: that of standard input is written to at its far end,
// that of standard output read. It reports whether nothing is missing any more.
func (e *farEnds) add(link string, mode func() uint32) (all bool) {
	for i, want := range [2]uint32{unix.S_IWUSR, unix.S_IRUSR} {
		if e.missing[i] && link == e.links[i] && mode()&want != 0 {
			e.missing[i] = false
		}
	}
	return !e.missing[0] && !e.missing[1]
}

func (s *Finder) holdsFarEnds(pid int, links [2]string) bool {
	for range maxScans {
		if all, moved := s.scanFarEnds(pid, links); all || !moved {
			return all
		}
	}
	return false
}

// maxScans is how often the descriptors of a process are listed that moves them meanwhile, as bash does with those of a coproc.
const maxScans = 5

// scanFarEnds looks once. moved says that a descriptor was gone by the time it was looked at.
func (s *Finder) scanFarEnds(pid int, links [2]string) (all, moved bool) {
	e := &farEnds{links, [2]bool{isPipe(links[0]), isPipe(links[1])}}
	fd, err := unix.Openat(s.table.View.Proc, strconv.Itoa(pid)+"/fd", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.EACCES) {
		return s.lendsFarEnds(pid, e), false
	}
	if err != nil {
		return false, false
	}
	dir := os.NewFile(uintptr(fd), "fd")
	defer dir.Close()
	names, _ := dir.Readdirnames(maxHeld)
	for _, name := range names {
		link, err := inspect.ReadLink(fd, name)
		mode := func() uint32 {
			m := linkMode(fd, name)
			moved = moved || m == 0
			return m
		}
		if err == nil && e.add(link, mode) {
			return true, false
		}
		moved = moved || errors.Is(err, unix.ENOENT)
	}
	return false, moved
}

// lendsFarEnds is holdsFarEnds for a process that hides its descriptors.
func (s *Finder) lendsFarEnds(pid int, e *farEnds) (all bool) {
	status, err := s.table.Status(pid)
	if err != nil {
		return false
	}
	err = inspect.WithTask(strconv.Itoa(pid), func(task int) error {
		for fd := 0; fd < min(status.Descriptors, maxHeld) && !all; fd++ {
			link, mode, err := inspect.Lent(task, fd)
			all = err == nil && e.add(link, func() uint32 { return mode })
		}
		return nil
	})
	return err == nil && all
}

// linkMode is how a link in /proc/PID/fd says what its descriptor is open for.
func linkMode(dir int, name string) uint32 {
	var st unix.Stat_t
	if unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return 0
	}
	return st.Mode
}

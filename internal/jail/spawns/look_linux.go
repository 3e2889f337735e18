package spawns

import (
	"errors"
	"os"
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/jail/inspect"
	"github.com/tapedeck-dev/tapedeck/internal/jail/notify"
	"github.com/tapedeck-dev/tapedeck/internal/jail/process"
	"golang.org/x/sys/unix"
)

// Bounds of what one spawn is looked at for.
const (
	maxAncestors = 16   // that may hold the far ends of its pipes
	maxHeld      = 4096 // descriptors of each of them
)

// look says whether the call of n starts a program that somebody talks with. It is nil where that is not so, or cannot be found
// out, which is an error. Most calls end with one look at descriptor 0.
func (s *Finder) look(n *notify.Call) (*Spawn, error) {
	thread := strconv.Itoa(n.Task)
	var links [2]string
	for i := range links {
		link, err := s.link(thread, i)
		if i == 0 && (err != nil || !talks(link) || s.inherited[link]) {
			return nil, passed(err)
		}
		links[i] = link
	}
	is, err := s.table.Status(n.Task)
	if err != nil {
		return nil, err
	}
	p, ours := s.known(is.Process, links)
	if p == nil && (ours || s.handedOn(is.Parent, links[0])) {
		return nil, nil
	}
	task, err := openTask(is.Process, n.Task)
	if err != nil {
		return nil, err
	}
	if p == nil {
		if p, err = s.talkedWith(&talk{task: task}, is, links); p == nil {
			task.Close()
			return nil, err
		}
	}
	p.task = task
	spawn := &Spawn{PID: is.Process, Own: is.Inside, Key: p.key, Again: ours, InputOnly: p.inputOnly, talk: p}
	if err := s.describe(spawn, n); err != nil {
		task.Close()
		return nil, passed(err)
	}
	return spawn, nil
}

// talkedWith returns p where somebody talks with it, or gives it its input; nil where that is not so.
func (s *Finder) talkedWith(p *talk, is process.Status, links [2]string) (*talk, error) {
	reads := talks(links[1]) && !s.inherited[links[1]] && !s.handedOn(is.Parent, links[1])
	both := reads && s.held(is.Parent, links)
	if !p.isStreamAt(0, links[0]) || !both && isPipe(links[0]) && !s.givesInput(is.Parent, p, links[0]) {
		return nil, nil
	}
	both = both || reads && s.held(is.Parent, links) // a shell that moves its descriptors about was looked at too early
	p.inputOnly = !both || !p.isStreamAt(1, links[1])
	s.table.Lock()
	defer s.table.Unlock()
	var err error
	if p.Process, err = s.table.Open(is.Process); err != nil {
		return nil, err
	}
	s.lastKey++
	p.key, p.end = s.lastKey, make(chan process.Ended, 1)
	return p, nil
}

// givesInput reports whether the parent writes what a process reads from a pipe, or has written it all: nobody has its other end then.
func (s *Finder) givesInput(parent int, p *talk, link string) bool {
	return p.inputEnded() || s.holdsFarEnds(parent, [2]string{link, ""})
}

// passed is nil for errors that the call itself will meet, or that mean that its caller is gone or has no such descriptor.
func passed(err error) error {
	for _, e := range []error{unix.ENOENT, unix.ESRCH, unix.EFAULT, unix.ENAMETOOLONG} {
		if errors.Is(err, e) {
			return nil
		}
	}
	return err
}

func isPipe(link string) bool { return strings.HasPrefix(link, "pipe:[") }

// talks reports whether a link may be one of the two ends of a talk.
func talks(link string) bool { return isPipe(link) || strings.HasPrefix(link, "socket:[") }

// known returns the process that was told of with these streams, if it is this one. ours says that one of them was put there by
// an answer, to it or to an ancestor.
func (s *Finder) known(pid int, links [2]string) (p *talk, ours bool) {
	for _, link := range links {
		if owner := s.owner(link); owner != nil {
			ours = true
			if owner.PID == pid && !owner.ended.Load() {
				p = owner
			}
		}
	}
	return p, ours
}

// handedOn reports whether the parent has the stream as its own: then it does not talk with its child, somebody else
// talks with both.
func (s *Finder) handedOn(parent int, link string) bool {
	for fd := range 3 {
		own, err := s.link(strconv.Itoa(parent), fd)
		if err == nil && own == link {
			return true
		}
	}
	return false
}

// held reports whether one process, the parent or an ancestor inside, holds the far end of each pipe of links: it writes what
// comes in and reads what goes out. In a pipeline these are two. Who holds the far end of a socket cannot be told.
func (s *Finder) held(pid int, links [2]string) bool {
	if !isPipe(links[0]) && !isPipe(links[1]) {
		return true
	}
	for range maxAncestors {
		if pid == s.table.Init || pid <= 1 {
			return false
		}
		if s.holdsFarEnds(pid, links) {
			return true
		}
		is, err := s.table.Status(pid)
		if err != nil {
			return false
		}
		pid = is.Parent
	}
	return false
}

// describe reads what the call is about to start.
func (s *Finder) describe(spawn *Spawn, n *notify.Call) (err error) {
	path, argv, env := n.Args[0], n.Args[1], n.Args[2]
	if n.Nr == unix.SYS_EXECVEAT {
		path, argv, env = n.Args[1], n.Args[2], n.Args[3]
	}
	if spawn.Path, err = s.text.Path(n.Task, path); err != nil {
		return err
	}
	if n.Nr == unix.SYS_EXECVEAT && !strings.HasPrefix(spawn.Path, "/") {
		spawn.Path = s.below(n.Task, int32(n.Args[0]), spawn.Path)
	}
	if spawn.Argv, err = s.text.List(n.Task, argv, inspect.MaxArgBytes); err != nil {
		return err
	}
	if spawn.Env, err = s.text.List(n.Task, env, inspect.MaxEnvBytes); err != nil {
		return err
	}
	if cwd, err := inspect.ReadLink(s.table.View.Proc, strconv.Itoa(n.Task)+"/cwd"); err == nil {
		spawn.Dir, _ = s.table.View.Strip(cwd)
	}
	return nil
}

// below spells a path that starts at a directory, or, where it is empty, the file that the descriptor stands for.
func (s *Finder) below(pid int, dirfd int32, path string) string {
	if dirfd == unix.AT_FDCWD {
		return path
	}
	at, err := inspect.ReadLink(s.table.View.Proc, strconv.Itoa(pid)+inspect.BaseName(dirfd))
	if err == nil {
		at, err = s.table.View.Strip(at)
	}
	switch {
	case err != nil:
		return path
	case path == "":
		return at
	}
	return strings.TrimSuffix(at, "/") + "/" + path
}

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

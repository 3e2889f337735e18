package jail

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/tapedeck-dev/tapedeck/internal/jail/inspect"
	"github.com/tapedeck-dev/tapedeck/internal/jail/step"
	"golang.org/x/sys/unix"
)

// spawns finds the programs that somebody talks with among those that are about to start. Only the notifier's goroutine
// uses it, but for what mu guards.
type spawns struct {
	watcher   SpawnWatcher
	init      int             // PID of the init
	view      inspect.View    // of the recorder's /proc; root is not open
	inherited map[string]bool // the program's own streams, as links of /proc/PID/fd
	stub      int             // descriptor of the stub's file
	lastKey   uint64
	onTheWay  map[int]uint64 // descriptor of the stub in threads that are to execute it
	text      inspect.TextReader

	mu    sync.Mutex
	tried bool                     // the exec stage's trial came
	off   error                    // why nobody is told of anything
	ours  map[string]*spawnProcess // by what was put at their 0 and 1, as links
	gone  []*spawnProcess          // still in ours, though they ended: the oldest first

	armed atomic.Bool
	lost  atomic.Int64
	ends  *ends
}

// maxGone is how many processes that ended are still known by the streams that they had: what they started may have them.
const maxGone = 1024

// newSpawns opens what it needs. An error means that nobody can be told of anything on this machine.
func newSpawns(w SpawnWatcher, init int, streams []*os.File) (*spawns, error) {
	proc, err := unix.Open("/proc", inspect.DirFlags, 0)
	if err != nil {
		return nil, &step.Error{Op: opSpawns, Path: "/proc", Err: err}
	}
	s := &spawns{watcher: w, init: init, view: inspect.View{Root: -1, Proc: proc}, stub: -1,
		inherited: make(map[string]bool), onTheWay: make(map[int]uint64), ours: make(map[string]*spawnProcess)}
	s.stub, err = openStub()
	if err == nil {
		s.view.Text, err = s.rootText()
	}
	if err == nil {
		s.ends, err = newEnds(proc, shareOfFiles(4096, 16))
	}
	if err != nil {
		s.close()
		return nil, &step.Error{Op: opSpawns, Err: err}
	}
	for _, f := range streams {
		if link, err := linkOfFile(f); err == nil && talks(link) {
			s.inherited[link] = true
		}
	}
	return s, nil
}

// shareOfFiles is one part in so many of the descriptors that the recorder may have, but no more than most.
func shareOfFiles(most, parts uint64) int {
	var lim unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &lim) == nil {
		most = min(most, lim.Cur/parts)
	}
	return int(most)
}

// rootText is how the kernel spells the init's root.
func (s *spawns) rootText() (string, error) {
	fd, text, err := inspect.RootOf(s.view.Proc, s.init)
	if err == nil {
		unix.Close(fd)
	}
	return text, err
}

// close waits until every process that somebody was told of is gone.
func (s *spawns) close() {
	if s.ends != nil {
		s.ends.stop()
	}
	unix.Close(s.view.Proc)
	if s.stub >= 0 {
		unix.Close(s.stub)
	}
}

// linkOfFile spells what f stands for as a link of /proc/PID/fd does; "" for nil.
func linkOfFile(f *os.File) (link string, err error) {
	if f == nil {
		return "", nil
	}
	err = withFD(f, func(fd int) (err error) {
		link, err = os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
		return err
	})
	return link, err
}

// withFD lends f's descriptor as it is: File.Fd may change how it blocks.
func withFD(f *os.File, use func(fd int) error) error {
	c, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	err = c.Control(func(fd uintptr) { inner = use(int(fd)) })
	return errors.Join(err, inner)
}

// arm makes everything from now on the program's. An error says why nobody is told of anything: without a trial nobody is.
func (s *spawns) arm() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.tried {
		s.off = errors.New("the trial notification of an execve did not come")
	}
	s.armed.Store(true)
	return s.off
}

// noSpawns is err as lines of Jail.NotCovered.
func noSpawns(err error) []string {
	return []string{"MCP over stdio: " + err.Error(), InputGap + ": " + err.Error()}
}

// spawn answers the notification of an execve or execveat.
func (n *notifier) spawn(req *seccompNotif) {
	s := n.spawns
	switch {
	case s == nil:
		n.goOn(req.ID)
	case !s.armed.Load():
		s.try(n, req)
	case s.off != nil || s.isStub(req):
		n.goOn(req.ID)
	case s.watcher == nil:
		n.start(req)
	default:
		n.lookAtSpawn(req)
	}
}

// start lets an execve go on.
func (n *notifier) start(req *seccompNotif) {
	if n.inputs == nil {
		n.goOn(req.ID)
		return
	}
	n.follow(req)
}

// lookAtSpawn tells the watcher of a spawn that somebody talks with. That holds only if the caller still waits: its PID may be
// another's otherwise.
func (n *notifier) lookAtSpawn(req *seccompNotif) {
	s := n.spawns
	spawn, err := s.look(req)
	if spawn == nil {
		if err != nil && n.waits(req.ID) {
			s.lost.Add(1)
		}
		n.start(req)
		return
	}
	if !n.waits(req.ID) {
		spawn.process.drop()
		return
	}
	if spawn.process.stub {
		n.answerSpawn(req, spawn, &SpawnAnswer{Stub: true})
		return
	}
	n.answerSpawn(req, spawn, s.watcher.Spawning(spawn))
}

// answerSpawn carries an answer out.
func (n *notifier) answerSpawn(req *seccompNotif, spawn *Spawn, a *SpawnAnswer) {
	p := spawn.process
	if a == nil {
		p.restore(nil)
		p.drop()
		n.start(req)
		return
	}
	p.stub = p.stub || a.Stub
	p.wait(n.spawns)
	err := n.put(req, p, a)
	p.restore(a)
	closeStdio(a)
	switch {
	case err == nil && a.Stub:
		err = n.startStub(req)
	case err == nil:
		n.start(req)
	}
	if err != nil {
		n.answer(req.ID, unix.EIO)
		if a.Failed != nil {
			a.Failed(err)
		}
	}
}

// put replaces the standard streams of the caller.
func (n *notifier) put(req *seccompNotif, p *spawnProcess, a *SpawnAnswer) error {
	for i, f := range a.Stdio {
		if f == nil {
			continue
		}
		if i < 2 {
			n.spawns.remember(p, f)
		}
		err := withFD(f, func(fd int) error {
			if err := unix.SetNonblock(fd, p.nonblock[i] && !a.Stub); err != nil {
				return err
			}
			_, err := n.addFD(req.ID, fd, i, 0)
			return err
		})
		if err != nil {
			return fmt.Errorf("put a stream at descriptor %d of process %d: %w", i, p.pid, err)
		}
	}
	return nil
}

func closeStdio(a *SpawnAnswer) {
	for i, f := range a.Stdio {
		if f != nil && f != a.Stdio[0] || i == 0 && f != nil {
			f.Close() // twice for 2>&1, which os.File tells apart
		}
	}
}

// struct seccomp_notif_addfd of linux/seccomp.h.
type seccompAddFD struct {
	ID       uint64
	Flags    uint32
	SrcFD    uint32
	NewFD    uint32
	NewFlags uint32
}

// addFD makes fd stand at descriptor at of the caller, at -1 anywhere, with O_CLOEXEC in flags until execve only. It returns
// where.
func (n *notifier) addFD(id uint64, fd, at, flags int) (int, error) {
	a := seccompAddFD{ID: id, SrcFD: uint32(fd), NewFlags: uint32(flags)}
	if at >= 0 {
		a.Flags, a.NewFD = unix.SECCOMP_ADDFD_FLAG_SETFD, uint32(at)
	}
	return ioctlValue(uintptr(n.fd), unix.SECCOMP_IOCTL_NOTIF_ADDFD, unsafe.Pointer(&a))
}

// remember makes p known by f.
func (s *spawns) remember(p *spawnProcess, f *os.File) {
	link, err := linkOfFile(f)
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ours[link] = p
	p.links = append(p.links, link)
}

// forget is told that p ended.
func (s *spawns) forget(p *spawnProcess) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(p.links) == 0 {
		return
	}
	s.gone = append(s.gone, p)
	if len(s.gone) <= maxGone {
		return
	}
	for _, link := range s.gone[0].links {
		if s.ours[link] == s.gone[0] {
			delete(s.ours, link)
		}
	}
	s.gone = s.gone[1:]
}

// left is told that all that lives now is about to be killed, and whether it was stopped before. That s is nil means that nobody asks.
func (s *spawns) left(stopped bool) {
	if s != nil {
		s.ends.killing(stopped)
	}
}

// owner returns whose stream link is; nil for nobody's.
func (s *spawns) owner(link string) *spawnProcess {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ours[link]
}

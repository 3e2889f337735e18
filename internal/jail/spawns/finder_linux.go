package spawns

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/tapedeck-dev/tapedeck/internal/jail/filter"
	"github.com/tapedeck-dev/tapedeck/internal/jail/inspect"
	"github.com/tapedeck-dev/tapedeck/internal/jail/notify"
	"github.com/tapedeck-dev/tapedeck/internal/jail/process"
	"github.com/tapedeck-dev/tapedeck/internal/jail/step"
	"github.com/tapedeck-dev/tapedeck/internal/jail/trace"
	"golang.org/x/sys/unix"
)

// A Finder finds the programs that somebody talks with among those that are about to start. Only who receives calls uses it, but for what mu
// guards.
type Finder struct {
	watcher   Watcher
	table     *process.Table
	start     func(*notify.Call) // lets an execve go on
	inherited map[string]bool    // the program's own streams, as links of /proc/PID/fd
	stub      int                // descriptor of the stub's file
	lastKey   uint64
	text      inspect.TextReader

	tried bool         // the exec stage's trial came
	Lost  atomic.Int64 // execves that went on although they may have been spawns to tell of

	mu   sync.Mutex
	ours map[string]*talk // by what was put at their 0 and 1, as links
	gone []*talk          // still in ours, though they ended: the oldest first
}

// maxGone is how many processes that ended are still known by the streams that they had: what they started may have them.
const maxGone = 1024

// Step is the step that fails where spawns cannot be found.
const Step = "find spawns"

// New opens what it needs to tell w, which may be nil, of spawns among the processes of t. streams are those of the jail's program; start
// lets an execve go on that nothing else happens to.
func New(w Watcher, t *process.Table, streams []*os.File, start func(*notify.Call)) (*Finder, error) {
	stub, err := trace.OpenStub()
	if err != nil {
		return nil, &step.Error{Op: Step, Err: err}
	}
	s := &Finder{watcher: w, table: t, start: start, stub: stub, inherited: make(map[string]bool), ours: make(map[string]*talk)}
	for _, f := range streams {
		if link, err := linkOfFile(f); err == nil && talks(link) {
			s.inherited[link] = true
		}
	}
	return s, nil
}

// Close ends what New opened.
func (s *Finder) Close() { unix.Close(s.stub) }

// Rules notify the calls that start programs.
func Rules() []filter.Rule { return filter.Each(filter.Notify, unix.SYS_EXECVE, unix.SYS_EXECVEAT) }

// linkOfFile spells what f stands for as a link of /proc/PID/fd does; "" for nil.
func linkOfFile(f *os.File) (link string, err error) {
	if f == nil {
		return "", nil
	}
	err = process.WithFD(f, func(fd int) (err error) {
		link, err = os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
		return err
	})
	return link, err
}

// Answer answers an execve or execveat. The first is the exec stage's trial, which succeeds where a call can be made another.
func (s *Finder) Answer(c *notify.Call) {
	switch {
	case !s.tried:
		s.tried = true
		if trace.Divert(c, func(r *trace.Registers) { r.Return(c, 0) }) != nil {
			c.Fail(unix.ENOTSUP)
		}
	case s.isStub(c):
		c.GoOn()
	case s.watcher == nil:
		s.start(c)
	default:
		s.tell(c)
	}
}

// tell tells the watcher of a spawn that somebody talks with. That holds only if the caller still waits: its PID may be
// another's otherwise.
func (s *Finder) tell(c *notify.Call) {
	spawn, err := s.look(c)
	if spawn == nil {
		if err != nil && c.Waits() {
			s.Lost.Add(1)
		}
		s.start(c)
		return
	}
	defer spawn.talk.task.Close()
	switch {
	case !c.Waits():
	case spawn.talk.stub:
		s.answer(c, spawn, &Answer{Stub: true})
	default:
		s.answer(c, spawn, s.watcher.Spawning(spawn))
	}
}

// answer carries an answer out.
func (s *Finder) answer(c *notify.Call, spawn *Spawn, a *Answer) {
	p := spawn.talk
	if a == nil {
		p.restore(nil)
		s.start(c)
		return
	}
	p.stub = p.stub || a.Stub
	p.await(s)
	err := s.put(c, p, a)
	p.restore(a)
	closeStdio(a)
	switch {
	case err == nil && a.Stub:
		err = s.startStub(c)
	case err == nil:
		s.start(c)
	}
	if err != nil {
		c.Fail(unix.EIO)
		if a.Failed != nil {
			a.Failed(err)
		}
	}
}

// put replaces the standard streams of the caller.
func (s *Finder) put(c *notify.Call, p *talk, a *Answer) error {
	for i, f := range a.Stdio {
		if f == nil {
			continue
		}
		if i < 2 {
			s.remember(p, f)
		}
		err := process.WithFD(f, func(fd int) error {
			if err := unix.SetNonblock(fd, p.nonblock[i] && !a.Stub); err != nil {
				return err
			}
			_, err := c.AddFD(fd, i, 0)
			return err
		})
		if err != nil {
			return fmt.Errorf("put a stream at descriptor %d of process %d: %w", i, p.PID, err)
		}
	}
	return nil
}

func closeStdio(a *Answer) {
	for i, f := range a.Stdio {
		if f != nil && f != a.Stdio[0] || i == 0 && f != nil {
			f.Close() // twice for 2>&1, which os.File tells apart
		}
	}
}

// remember makes p known by f.
func (s *Finder) remember(p *talk, f *os.File) {
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
func (s *Finder) forget(p *talk) {
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

// owner returns whose stream link is; nil for nobody's.
func (s *Finder) owner(link string) *talk {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ours[link]
}

// startStub makes the caller execute the stub instead: its call fails, before it gets back to the program it is stopped
// for a moment as a debugger does, and goes on with another call, execveat of the stub's descriptor. Nothing is written into
// its memory, which after vfork is its parent's too; the empty path of that call is the end of the one that it gave.
func (s *Finder) startStub(c *notify.Call) error {
	at, err := c.AddFD(s.stub, -1, unix.O_CLOEXEC)
	if err != nil {
		return fmt.Errorf("give the stub to process %d: %w", c.Task, err)
	}
	path, argv, env := c.Args[0], c.Args[1], c.Args[2]
	if c.Nr == unix.SYS_EXECVEAT {
		path, argv, env = c.Args[1], c.Args[2], c.Args[3]
	}
	text, err := s.text.Path(c.Task, path)
	if err != nil {
		return fmt.Errorf("read a path of process %d: %w", c.Task, err)
	}
	s.onTheWay(c.Task, at+1)
	err = trace.Divert(c, func(r *trace.Registers) {
		r.Call(c, unix.SYS_EXECVEAT, uint64(at), path+uint64(len(text)), argv, env, unix.AT_EMPTY_PATH)
	})
	if err != nil {
		s.onTheWay(c.Task, 0)
	}
	return err
}

// onTheWay notes that a thread is to execute the descriptor before stub, and returns what was noted.
func (s *Finder) onTheWay(task, stub int) (was int) {
	s.table.Lock()
	defer s.table.Unlock()
	th := s.table.Thread(task)
	if th == nil && stub == 0 {
		return 0
	}
	th = s.table.Note(task)
	was, th.Stub = th.Stub, stub
	s.table.Forget(task)
	return was
}

// isStub reports whether this is the call that startStub made of another.
func (s *Finder) isStub(c *notify.Call) bool {
	at := s.onTheWay(c.Task, 0)
	return at > 0 && c.Nr == unix.SYS_EXECVEAT && c.Args[0] == uint64(at-1) && c.Args[4] == unix.AT_EMPTY_PATH
}

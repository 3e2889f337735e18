package jail

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// still is Inputs whose time stands still, but that each read is a millisecond later, and whose random bytes count up.
type still struct {
	mu       sync.Mutex
	programs []string
	ownTicks []string           // of programs
	names    map[Source]string  // of programs
	parents  map[string]string  // of programs; "" for a fork
	ended    map[string][]Ended // by name
	forked   int
	hold     map[string]string        // which program's end waits for the start of which
	started  map[string]chan struct{} // closed as such a one starts
}

const stillAt = 1_000_000_000 * int64(time.Second) // 2001-09-09

type stillSource struct {
	mu sync.Mutex
	n  int64
	r  *rand.ChaCha8

	draws map[[2]uint64]*rand.ChaCha8 // by place and length

	seed, opened uint64

	places []uint64 // where the wall time was read

	until <-chan struct{} // nil: it ends at once
}

func (s *stillSource) Beginning() func(context.Context) { return nil }

func (s *stillSource) Leaving(func() []Source) func(context.Context) { return nil }
func (s *stillSource) Forking(int, bool) func(context.Context)       { return nil }
func (s *stillSource) Waking() func(context.Context)                 { return nil }
func (s *stillSource) Finding(int) func(context.Context)             { return nil }
func (s *stillSource) Sleeping() func(context.Context) func()        { return nil }

func (s *stillSource) Wrote(_ string, _, at, _ int64) int64 { return at }

func (s *stillSource) Ending(Exit, func() ([]Source, bool)) func(context.Context) syscall.Signal {
	if s.until == nil {
		return nil
	}
	return func(ctx context.Context) syscall.Signal {
		select {
		case <-s.until:
		case <-ctx.Done():
		}
		return 0
	}
}

func newStill(seed uint64) *stillSource {
	var b [32]byte
	binary.NativeEndian.PutUint64(b[:], seed)
	return &stillSource{r: rand.NewChaCha8(b), seed: seed}
}

func (s *stillSource) Now(place uint64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.places = append(s.places, place)
	s.n++
	return stillAt + s.n*1e6
}

func (s *stillSource) Behind() int64 { return time.Now().UnixNano() - stillAt }

// Fill draws what each place has in each length, whichever thread comes first.
func (s *stillSource) Fill(place uint64, b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := [2]uint64{place, uint64(len(b))}
	if place == 0 {
		s.r.Read(b)
		return
	}
	if s.draws[of] == nil {
		if s.draws == nil {
			s.draws = make(map[[2]uint64]*rand.ChaCha8)
		}
		var seed [32]byte
		for i, v := range []uint64{s.seed, of[0], of[1]} {
			binary.LittleEndian.PutUint64(seed[8*i:], v)
		}
		s.draws[of] = rand.NewChaCha8(seed)
	}
	s.draws[of].Read(b)
}

func (s *still) Started(p *Program) Source {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.Forked {
		s.forked++
		return newStill(uint64(1000 + s.forked))
	}
	argv := strings.Join(p.Argv, " ")
	s.programs = append(s.programs, argv)
	if p.OwnTicks {
		s.ownTicks = append(s.ownTicks, argv)
	}
	if c := s.started[argv]; c != nil {
		close(c)
	}
	name := fnv.New64() // not their number: those of a pipeline start side by side
	io.WriteString(name, argv)
	source := newStill(name.Sum64() >> 24)
	source.until = s.started[s.hold[argv]]
	s.names[source] = argv
	if s.parents == nil {
		s.parents = make(map[string]string)
	}
	s.parents[argv] = s.names[p.Parent]
	return source
}

func (s *still) Ended(source Source, e Ended) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := s.names[source]
	s.ended[name] = append(s.ended[name], e)
}

func (s *stillSource) Tick(uint64) int64 {
	var ts unix.Timespec
	unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	return ts.Nano()
}

func (s *stillSource) TickBehind() int64 { return 0 }

func (s *stillSource) Elapses() bool { return true }

func (s *stillSource) Asked(_, _ string, now []byte) []byte { return now }

func (s *stillSource) Opened() Filler {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened++
	return stillDevice{newStill(s.seed<<20 + s.opened)}
}

type stillDevice struct{ *stillSource }

func (d stillDevice) Fill(b []byte) { d.stillSource.Fill(0, b) }

func (s *still) Reads(string) {}

func (s *still) Changing() bool { return false }

func (s *still) Recent(int64) bool { return false }

func (s *stillSource) Port() uint16 { return PortOf(stillDevice{s}) }

func (s *stillSource) Has(uint16) {}

func inputsOf(t *testing.T, c *Config) (*still, result) {
	t.Helper()
	s := new(still)
	return s, s.run(t, c)
}

func (s *still) run(t *testing.T, c *Config) result {
	t.Helper()
	s.names, s.ended = make(map[Source]string), make(map[string][]Ended)
	c.Inputs, c.Shifted = s, true
	return run(t, c, nil)
}

// TestInputsEnding holds up the end of a process until another one starts, or until the jail is over.
func TestInputsEnding(t *testing.T) {
	t.Parallel()
	s := &still{hold: map[string]string{"sleep 0": "sleep 0 0 0"}, started: map[string]chan struct{}{"sleep 0 0 0": make(chan struct{})}}
	r := s.run(t, shellConfig(t, "(sleep 0; echo held) & sleep 0 0; echo before; sleep 0 0 0; wait"))
	r.want(t, "before\nheld\n")
	s = &still{hold: map[string]string{"sleep 0": "never"}, started: map[string]chan struct{}{"never": make(chan struct{})}}
	r = s.run(t, shellConfig(t, "sleep 0 & echo over"))
	r.want(t, "over\n")
}

// TestInputsParent: what a process forked before it became another program is no child of that, though it asks for nothing before.
func TestInputsParent(t *testing.T) {
	t.Parallel()
	s, r := inputsOf(t, pythonConfig(t, `
import os
if os.fork(): os.wait(); os._exit(0)
began, begins = os.pipe(); ended, ends = os.pipe()
if os.fork() == 0:
    os.set_inheritable(ends, True); os.close(begins); os.read(began, 1)
    os.execv("/bin/echo", ["echo", "forked"])
os.close(ends); os.set_inheritable(begins, True); os.dup2(ended, 0)
os.execv("/bin/sh", ["sh", "-c", "echo >&%d; cat; echo parent" % begins])
`))
	r.want(t, "forked\nparent\n")
	if got, ok := s.parents["echo forked"]; got != "" || !ok {
		t.Errorf("a child of %q", got)
	}
	if got := s.parents["cat"]; !strings.HasPrefix(got, "sh -c") {
		t.Errorf("cat is a child of %q", got)
	}
}

// TestInputs has programs of several kinds tell the time and draw: twice the same, and the time that is given.
func TestInputs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, program, script string }{
		{"date", "sh", "date -u +%s.%N; date -u +%s"},
		{"shuf", "sh", "shuf -i 1-1000000 -n 3; mktemp -u; echo $$"},
		{"devices", "sh", "head -c 6 /dev/urandom | od -An -tx1; tr -dc a-z </dev/urandom | head -c 20000 | md5sum; dd if=/dev/random bs=7 count=1 2>/dev/null | od -An -tx1"},
		{"kernel", "sh", "cat /proc/sys/kernel/random/uuid /proc/sys/kernel/random/uuid"},
		{"perl", "sh", "perl -e 'print join(q(,), keys %{{a=>1,b=>2,c=>3,d=>4}}), rand()'; test -c /dev/urandom && echo a device"},
		{"python", "python3", "import time,uuid,random,os,threading\nprint(time.time(), uuid.uuid1(), uuid.uuid4(), random.random(), os.urandom(4), {'a','b','c','d'}, id(object()), hash('x'))"},
		{"thread", "python3", "import time,threading\nt=threading.Thread(target=lambda: print(time.time())); t.start(); t.join(); print(time.time())"},
		{"fork", "python3", "import os,uuid\nif os.fork(): os.wait()\nprint(uuid.uuid4())"},
		{"ports", "python3", "import socket\n" +
			"l=[socket.create_server(('127.0.0.1',0)) for _ in range(3)]+[socket.create_server(('::1',0),family=socket.AF_INET6)]\n" +
			"c=[socket.create_connection(s.getsockname()[:2]) for s in l]\nu=socket.socket(socket.AF_INET,socket.SOCK_DGRAM);u.connect(('127.0.0.1',9))\n" +
			"print([s.getsockname()[1] for s in l+c+[u]], [s.accept()[1][1] for s in l])"},
		{"mkdtemp", "node", "const fs=require('fs'); const of=fs.mkdtempSync('/dev/shm/'); fs.mkdirSync(of+'/abcdef', 0o700); console.log(of, fs.mkdtempSync(of+'/x-'), fs.readdirSync(of).length, fs.existsSync(of+'/abcdef'))"},
		{"node", "node", "console.log(Date.now(), crypto.randomUUID(), Math.random())"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path, err := exec.LookPath(c.program)
			if err != nil {
				t.Skip(c.program, " is not here")
			}
			flag := "-c"
			if c.program == "node" {
				flag = "-e"
			}
			config := func() *Config {
				return &Config{Path: path, Argv: []string{c.program, flag, c.script}, Dir: "/", TTY: -1, Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent"}}
			}
			s1, r1 := inputsOf(t, config())
			s2, r2 := inputsOf(t, config())
			if r1.stdout != r2.stdout || r1.stderr != r2.stderr || r1.stderr != "" {
				t.Errorf("first\n%s%s\nthen\n%s%s", r1.stdout, r1.stderr, r2.stdout, r2.stderr)
			}
			slices.Sort(s1.programs) // those of a pipeline start side by side
			slices.Sort(s2.programs)
			if !slices.Equal(s1.programs, s2.programs) {
				t.Errorf("programs %q, then %q", s1.programs, s2.programs)
			}
			t.Logf("%s%d programs, %d forks", r1.stdout, len(s1.programs), s1.forked)
		})
	}
}

// TestInputsWait waits for moments of a wall time that is far behind the kernel's.
func TestInputsWait(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("no python3 here")
	}
	path, _ := exec.LookPath("python3")
	script := `
import ctypes, time, os
libc = ctypes.CDLL(None, use_errno=True)
class ts(ctypes.Structure): _fields_ = [("s", ctypes.c_long), ("ns", ctypes.c_long)]
class its(ctypes.Structure): _fields_ = [("i", ts), ("v", ts)]
def at(after, clock=time.CLOCK_REALTIME):
    t = time.clock_gettime(clock) + after
    return ts(int(t), int(t % 1 * 1e9))
def took(what, f):
    m = time.monotonic()
    r = f()
    print(what, r, 0.09 < time.monotonic() - m < 30)
sem = (ctypes.c_char * 64)()
libc.sem_init(sem, 0, 0)
when = at(0.1)
was = (when.s, when.ns)
took("sem_timedwait", lambda: libc.sem_timedwait(sem, ctypes.byref(when)))
print("untouched", was == (when.s, when.ns))
took("clock_nanosleep", lambda: libc.clock_nanosleep(0, 1, ctypes.byref(at(0.1)), None))
took("of atomic time", lambda: libc.clock_nanosleep(time.CLOCK_TAI, 1, ctypes.byref(at(0.1, time.CLOCK_TAI)), None))
fd = libc.timerfd_create(0, 0)
took("timerfd", lambda: libc.timerfd_settime(fd, 1, ctypes.byref(its(ts(0, 0), at(0.1))), None) or len(os.read(fd, 8)))
`
	_, r := inputsOf(t, &Config{Path: path, Argv: []string{"python3", "-c", script}, Dir: "/", TTY: -1, Env: []string{"PATH=" + os.Getenv("PATH")}})
	r.want(t, "sem_timedwait -1 True\nuntouched True\nclock_nanosleep 0 True\nof atomic time 0 True\ntimerfd 8 True\n")
}

// TestInputsOwnTicks is told of which programs the monotonic clock is not answered: a Go program, with or without a build id, and no shell.
func TestInputsOwnTicks(t *testing.T) {
	t.Parallel()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	bare := filepath.Join(t.TempDir(), "bare")
	note := []byte("\x04\x00\x00\x00Go\x00\x00")
	if err := os.WriteFile(bare, bytes.Replace(program, note, make([]byte, len(note)), 1), 0o700); err != nil {
		t.Fatal(err)
	}
	s, _ := inputsOf(t, shellConfig(t, exe+" -test.run=^$; "+bare+" -test.run=^$; exec true"))
	if want := []string{exe + " -test.run=^$", bare + " -test.run=^$"}; !reflect.DeepEqual(s.ownTicks, want) {
		t.Errorf("%q, not %q", s.ownTicks, want)
	}
}

// helperElapsed prints durations by each of package time's ways to them, once a timer has ended. A timer runs in the scheduler, and another one
// where its channel is looked at.
func helperElapsed([]string) int {
	began := time.Now()
	since, until := time.Since(began), time.Until(began.Add(time.Hour))
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	deadline, _ := ctx.Deadline()
	<-ctx.Done()
	now := time.Now()
	fmt.Println(began, since, until, deadline.Sub(began), now.Sub(began))
	<-time.After(time.Millisecond)
	for at := time.After(time.Millisecond); ; {
		select {
		case <-at:
			return 0
		default:
		}
	}
}

// TestInputsElapsed has a Go program make durations of the wall time that it is given, while its timers wait by the kernel's clock.
func TestInputsElapsed(t *testing.T) {
	t.Parallel()
	if runtime.GOARCH != "amd64" {
		t.Skip("the kernel's monotonic clock is read here")
	}
	s, r := inputsOf(t, helperConfig(t, "elapsed"))
	s2, r2 := inputsOf(t, helperConfig(t, "elapsed"))
	want := " 1ms 59m59.998s 13ms 5ms\n" // a read of the clock takes 1 ms
	if !strings.HasSuffix(r.stdout, want) || !strings.Contains(r.stdout, " m=+0.0") || r.stdout != r2.stdout {
		t.Errorf("%q, then %q, not …%q", r.stdout, r2.stdout, want)
	}
	for _, s := range []*still{s, s2} {
		for source := range s.names {
			if p := source.(*stillSource).places; len(p) < 2 || p[len(p)-1] != p[len(p)-2] || p[len(p)-1] == p[len(p)-3] {
				t.Errorf("timers read the time at %x", p)
			}
		}
	}
}

// TestInputsPlaces reads the wall time twice at two places of bash and of Python each, of two functions that ask the kernel by their own code.
func TestInputsPlaces(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"bash":    "for i in 1 2; do : $EPOCHREALTIME; done; for i in 1 2; do printf '%(%s)T'; done",
		"python3": "import time\nfor i in 1, 2: time.time()\nfor i in 1, 2: time.localtime()\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path, err := exec.LookPath(name)
			if err != nil || runtime.GOARCH != "amd64" {
				t.Skip("no program here whose tables can be read")
			}
			argv := []string{name, "-c", script}
			s, _ := inputsOf(t, &Config{Path: path, Argv: argv, Dir: "/", TTY: -1, Env: []string{"PATH=" + os.Getenv("PATH")}})
			for source, is := range s.names {
				p := source.(*stillSource).places
				if !strings.HasSuffix(is, script) || len(p) < 4 {
					continue // what a name stands for may be a script that executes the program
				}
				if p[len(p)-1] != p[len(p)-2] || p[len(p)-3] != p[len(p)-4] || p[len(p)-1] == p[len(p)-3] {
					t.Errorf("read at %x", p)
				}
				return
			}
			t.Errorf("it ran %q", s.programs)
		})
	}
}

// TestInputsEnds is told of each program, and how it ended.
func TestInputsEnds(t *testing.T) {
	t.Parallel()
	s, r := inputsOf(t, shellConfig(t, "sh -c 'exit 3'; sh -c 'kill -9 $$'; /nonexistent; exec true"))
	if r.exit != (Exit{}) {
		t.Error(r.exit)
	}
	delete(s.ended, "") // forks
	want := map[string][]Ended{
		s.programs[0]:      {{Again: true}},
		"sh -c exit 3":     {{Exit: Exit{Code: 3}, Known: true}},
		"sh -c kill -9 $$": {{Exit: Exit{Signal: unix.SIGKILL}, Known: true}},
		"true":             {{Known: true}},
	}
	if !reflect.DeepEqual(s.ended, want) {
		t.Errorf("ended %v, not %v", s.ended, want)
	}
}

package jail

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/internal/jail/connect"
	"github.com/tapedeck-dev/tapedeck/internal/jail/spawns"
	"golang.org/x/sys/unix"
)

// TestSpawnsUnreadable: what a program starts that hides its memory cannot be looked at. It goes on, and is counted.
func TestSpawnsUnreadable(t *testing.T) {
	t.Parallel()
	exe := os.Getenv(unreadableVar)
	if exe == "" {
		t.Skip("needs a program of root's: runs in TestUnprivileged")
	}
	e := new(ear)
	c := helperConfig(t, "talk", "hello\n", "/bin/cat")
	c.Path, c.Spawns = exe, e
	var lost func() int64
	run(t, c, func(j *Jail) { lost = j.SpawnsLost }).want(t, "hello\nexit status 0 false\n")
	e.want(t)
	if n := lost(); n != 1 {
		t.Errorf("%d lost", n)
	}
}

// TestSpawnsHidden: a program that does not want to be dumped hides its descriptors from everybody but root and who may trace it.
func TestSpawnsHidden(t *testing.T) {
	t.Parallel()
	for _, stub := range []bool{false, true} {
		e, want := new(ear), "hello\nexit status 0 false\n"
		if stub {
			e.hook, want = answering(e, 9), "yes: hello\nexit status 9 true\n"
		}
		r := runSpawns(t, helperConfig(t, "hidden", "hello\n", "/bin/cat"), e)
		r.want(t, want)
		e.want(t, "cat")
	}
}

// helperHidden talks as a program that does not want to be dumped.
func helperHidden(args []string) int {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		fmt.Println(err)
		return 1
	}
	return helperTalk(args)
}

// TestSpawnsDeaf: where a call is forbidden that spawns or connects are answered with there is no jail, and it says why.
func TestSpawnsDeaf(t *testing.T) {
	t.Parallel()
	forbidden := func(nr int) (string, error) {
		c := helperConfig(t, "deaf", strconv.Itoa(nr))
		cmd := exec.Command(c.Path, c.Argv[1:]...)
		cmd.Env = c.Env
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	for nr, want := range map[int]string{
		unix.SYS_PTRACE: spawns.Step + ": operation not supported", unix.SYS_PIDFD_OPEN: connect.Step + ": operation not permitted",
		unix.SYS_PIDFD_GETFD: connect.Step + ": operation not permitted",
	} {
		if s, err := forbidden(nr); err == nil || !strings.HasPrefix(s, "jail unavailable: ") || !strings.Contains(s, want) {
			t.Errorf("without call %d: %v\n%s", nr, err, s)
		}
	}
}

// helperDeaf starts a jail after it took from itself a call, and has a program talk there.
func helperDeaf(args []string) int {
	nr, _ := strconv.Atoi(args[0])
	if err := forbid(uint32(nr)); err != nil {
		fmt.Println(err)
		return 1
	}
	return recordTalk(func(j *Jail) error {
		_, err := fmt.Println(j.NotCovered())
		return err
	})
}

// recordTalk has a program talk in a jail, after a function, and prints what was told of.
func recordTalk(then func(*Jail) error) int {
	exe, _ := os.Executable()
	e := new(ear)
	j, err := Start(context.Background(), &Config{Path: exe, Argv: []string{"helper", "hello\n", "/bin/cat"}, Dir: "/", TTY: -1,
		Env: []string{helperVar + "=talk"}, Stdout: os.Stdout, Stderr: os.Stderr, Spawns: e})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer j.Close()
	if err := errors.Join(then(j), j.Release()); err != nil {
		fmt.Println(err)
		return 1
	}
	j.Wait()
	e.mu.Lock()
	defer e.mu.Unlock()
	fmt.Println("told of", e.told)
	return 0
}

// TestSpawnsStarved: where the recorder has no descriptor left a spawn goes on unseen.
func TestSpawnsStarved(t *testing.T) {
	t.Parallel()
	c := helperConfig(t, "starvedspawn")
	cmd := exec.Command(c.Path)
	cmd.Env = c.Env
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "hello\nexit status 0 false\ntold of []\n" {
		t.Errorf("%v\n%s", err, out)
	}
}

// helperStarvedSpawn is a recorder that may open no more files once its jail is there.
func helperStarvedSpawn([]string) int {
	return recordTalk(func(*Jail) error {
		return unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 3, Max: 3})
	})
}

// TestSpawnsLeft: what runs with the streams of a program that was told of and left alone is part of that talk.
func TestSpawnsLeft(t *testing.T) {
	t.Parallel()
	e := &ear{left: true}
	r := runSpawns(t, pythonConfig(t, "from subprocess import *\nprint(Popen('cat; (cat); sh -c \"cat; true\"', shell=True, stdin=PIPE, stdout=PIPE).communicate(b'hello'))"), e)
	r.want(t, "(b'hello', None)\n")
	e.want(t, "sh -c cat; (cat); sh -c \"cat; true\"")
}

// TestSpawnsOwnSocket: a program whose own streams are a socket is not talked with inside.
func TestSpawnsOwnSocket(t *testing.T) {
	t.Parallel()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "ours"), os.NewFile(uintptr(fds[1]), "theirs")
	defer ours.Close()
	e := new(ear)
	c := shellConfig(t, "cat; exec sh -c 'cat; echo done'")
	c.Stdin, c.Stdout, c.Spawns = theirs, theirs, e
	j, err := Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	theirs.Close()
	if err := j.Release(); err != nil {
		t.Fatal(err)
	}
	ours.WriteString("hello")
	unix.Shutdown(fds[0], unix.SHUT_WR)
	out, err := io.ReadAll(ours)
	if x, errWait := j.Wait(); string(out) != "hellodone\n" || err != nil || errWait != nil || x != (Exit{}) {
		t.Errorf("%q %v %v %v", out, err, x, errWait)
	}
	e.want(t)
}

// TestSpawnsBlocking: how streams block is as without us, where they were replaced and where they were taken and left.
func TestSpawnsBlocking(t *testing.T) {
	t.Parallel()
	const child = `[sys.executable, '-c', 'import os; print(os.get_blocking(0), os.get_blocking(1))']`
	for name, tt := range map[string]struct{ script, want string }{
		"pipes":         {"p = Popen(" + child + ", stdin=PIPE, stdout=PIPE)\nprint(p.communicate()[0])", "b'True True\\n'\n"},
		"without":       {"r, w = os.pipe()\nos.set_blocking(r, False)\np = Popen(" + child + ", stdin=r, stdout=PIPE)\nprint(p.communicate()[0])", "b'False True\\n'\n"},
		"sockets":       {"a, b = socket.socketpair()\np = Popen(" + child + ", stdin=b, stdout=b)\nprint(a.recv(100))", "b'True True\\n'\n"},
		"a socket each": {"a, b = socket.socketpair()\nc, d = socket.socketpair()\nd.setblocking(False)\np = Popen(" + child + ", stdin=b, stdout=d)\nprint(c.recv(100))", "b'True False\\n'\n"},
		"datagrams":     {"a, b = socket.socketpair(type=socket.SOCK_DGRAM)\np = Popen(" + child + ", stdin=b, stdout=b)\nprint(a.recv(100))", "b'True True\\n'\n"},
	} {
		for _, left := range []bool{false, true} {
			t.Run(fmt.Sprint(name, "/left ", left), func(t *testing.T) {
				e := &ear{left: left}
				if left {
					e.hook = func(s *Spawn) *SpawnAnswer {
						if st, err := s.Streams(); err != nil {
							t.Error(err)
						} else {
							st.Close()
						}
						return nil
					}
				}
				runSpawns(t, pythonConfig(t, "import os, socket, sys\nfrom subprocess import *\n"+tt.script), e).want(t, tt.want)
				if told := len(e.told) == 1; told != (name != "datagrams") {
					t.Errorf("told of %q", e.told)
				}
			})
		}
	}
}

package jail

import (
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// answering says yes to each line that it hears for a stub, and lets that end with code once its input ends.
func answering(e *ear, code byte) func(*Spawn) *SpawnAnswer {
	return func(s *Spawn) *SpawnAnswer {
		st, err := s.Streams()
		if err != nil {
			e.failed = append(e.failed, err)
			return nil
		}
		e.wg.Go(func() {
			defer st.Close()
			buf := make([]byte, 100)
			for {
				n, err := st.Far[0].Read(buf)
				if err != nil {
					break
				}
				st.Far[1].Write(append([]byte("yes: "), buf[:n]...))
			}
			st.Near[0].Write([]byte{code})
			end := <-s.Ended()
			e.mu.Lock()
			e.ends = append(e.ends, end)
			e.mu.Unlock()
		})
		return &SpawnAnswer{Stdio: st.Put, Stub: true, Failed: func(err error) { e.failed = append(e.failed, err) }}
	}
}

// becoming is a shell's way to be a helper that executes another program from one of its later threads.
func becoming(t testing.TB, how string, args ...string) []string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return append([]string{"/usr/bin/env", helperVar + "=become", exe, how}, args...)
}

// TestStub: whatever way a program is started, and whether or not there is one, what the recorder answers is heard instead.
func TestStub(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		argv []string
		only string // the stub stands for the program of this name alone; what comes before it goes on
		want string
	}{
		"a program":            {[]string{"/bin/sh", "-c", "echo no"}, "sh", "yes: hello\nexit status 9 true\n"},
		"none":                 {[]string{"/none/there", "a"}, "there", "yes: hello\nexit status 9 true\n"},
		"no executable":        {[]string{"/etc/passwd"}, "passwd", "yes: hello\nexit status 9 true\n"},
		"what a shell becomes": {[]string{"/bin/sh", "-c", "exec cat -u"}, "cat", "yes: hello\nexit status 9 true\n"},
		"nothing becomes":      {[]string{"/bin/sh", "-c", "exec nosuch"}, "nosuch", "exit status 127 true\n"},
		"from a thread":        {becoming(t, "execve", "cat"), "cat", "yes: hello\nexit status 9 true\n"},
		"from many threads":    {becoming(t, "race", "cat"), "cat", "yes: hello\nexit status 9 true\n"},
		"by descriptor":        {becoming(t, "execveat", "/bin/cat"), "cat", "yes: hello\nexit status 9 true\n"},
		"in a user namespace":  {[]string{"unshare", "-U", "-r", "cat"}, "cat", "yes: hello\nexit status 9 true\n"},
		"in its own mounts":    {[]string{"unshare", "-U", "-r", "-m", "-p", "-f", "sh", "-c", "mount -t tmpfs none /mnt && exec cat"}, "nobody", "hello\nexit status 0 false\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := exec.LookPath(tt.argv[0]); err != nil && tt.argv[0][0] != '/' {
				t.Skip(err)
			}
			if tt.argv[0] == "unshare" && os.Geteuid() == 0 {
				t.Skip("a uid 0 without capabilities cannot map an id")
			}
			e := &ear{only: tt.only}
			e.hook = answering(e, 9)
			r := runSpawns(t, helperConfig(t, "talk", append([]string{"hello\n"}, tt.argv...)...), e)
			if r.exit != (Exit{}) || r.stdout != tt.want && !strings.HasSuffix(tt.want, "127 true\n") {
				t.Errorf("%q, want %q; %s; told of %q, again %q", r.stdout, tt.want, r.stderr, e.told, e.again)
			}
			e.wg.Wait()
			for _, err := range e.failed {
				t.Error(err)
			}
			if strings.HasPrefix(tt.want, "yes") && !slices.Equal(e.exits(), []Ended{{Exit: Exit{Code: 9}, Known: true}}) {
				t.Errorf("ended %v", e.ends)
			}
		})
	}
}

// became waits until the kernel has set p up: Popen knows a moment earlier that the old program is gone.
const became = "said = ''\nwhile not said: said = open(f'/proc/{p.pid}/cmdline').read()\n"

// TestStubEnds: a stub dies of what kills its program, and the recorder can let it die so.
func TestStubEnds(t *testing.T) {
	for name, tt := range map[string]struct {
		script string
		by     syscall.Signal // of the recorder
		want   string
	}{
		"terminated by its parent": {"p = Popen(['server'], stdin=PIPE, stdout=PIPE)\np.stdin.write(b'x'); p.stdin.flush()\np.stdout.read(1)\np.terminate()\nprint(p.wait())", 0, "-15"},
		"killed by its parent":     {"p = Popen(['server'], stdin=PIPE, stdout=PIPE)\np.stdin.write(b'x'); p.stdin.flush()\np.stdout.read(1)\np.kill()\nprint(p.wait())", 0, "-9"},
		"died as recorded":         {"p = Popen(['server'], stdin=PIPE, stdout=PIPE)\np.stdin.close()\nprint(p.wait())", syscall.SIGSEGV, "-11"},
		"ended as recorded":        {"p = Popen(['server'], stdin=PIPE, stdout=PIPE)\np.stdin.close()\nprint(p.wait())", 0, "9"},
		"stopped and continued":    {"import signal\np = Popen(['server'], stdin=PIPE, stdout=PIPE)\np.send_signal(signal.SIGSTOP)\np.send_signal(signal.SIGCONT)\np.stdin.close()\nprint(p.wait())", 0, "9"},
		"its arguments":            {"p = Popen(['server', 'a', 'b'], stdin=PIPE, stdout=PIPE)\n" + became + "print(said.split(chr(0))[:-1], p.poll())", 0, "['server', 'a', 'b'] None"},
		"a short path":             {"p = Popen(['./x'], stdin=PIPE, stdout=PIPE)\nprint(p.communicate(b'x'), p.wait())", 0, "(b'yes: x', None) 9"},
		"its descriptors":          {"import os\np = Popen(['server'], stdin=PIPE, stdout=PIPE)\n" + became + "print(sorted(os.listdir(f'/proc/{p.pid}/fd')))", 0, "['0', '1', '2']"},
	} {
		t.Run(name, func(t *testing.T) {
			c := pythonConfig(t, "from subprocess import *\n"+tt.script)
			e := new(ear)
			e.hook = answering(e, 9)
			if tt.by != 0 {
				e.hook = func(s *Spawn) *SpawnAnswer { return dying(e, s, tt.by) }
			}
			runSpawns(t, c, e).want(t, tt.want+"\n")
			if len(e.told) != 1 || len(e.failed) > 0 {
				t.Errorf("told of %q, failed: %v", e.told, e.failed)
			}
			e.wg.Wait()
		})
	}
}

// dying is a stub that dies of sig once its input has ended.
func dying(e *ear, s *Spawn, sig syscall.Signal) *SpawnAnswer {
	st, err := s.Streams()
	if err != nil {
		e.failed = append(e.failed, err)
		return nil
	}
	e.wg.Go(func() {
		defer st.Close()
		io.Copy(io.Discard, st.Far[0])
		s.Signal(sig)
		<-s.Ended()
	})
	return &SpawnAnswer{Stdio: st.Put, Stub: true}
}

// TestStubKilledAnyTime: processes that are killed at whatever point of their execve leave nothing behind, and nothing hangs.
func TestStubKilledAnyTime(t *testing.T) {
	const script = `import os, random, signal, time
from subprocess import *
random.seed(1)
for i in range(150):
    (a, b), (c, d) = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        os.dup2(a, 0); os.dup2(d, 1)
        os.closerange(3, 100)
        try: os.execv('/none/server', ['server'])
        except OSError: os._exit(1)
    time.sleep(random.random() / 500)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    for fd in (a, b, c, d): os.close(fd)
print(Popen(['server'], stdin=PIPE, stdout=PIPE).communicate(b'x'))
`
	before := openFDs(t)
	e := new(ear)
	e.hook = answering(e, 0)
	runSpawns(t, pythonConfig(t, script), e).want(t, "(b'yes: x', None)\n")
	e.wg.Wait()
	t.Logf("told of %d, %d failed", len(e.told), len(e.failed))
	if after := openFDs(t); after > before {
		t.Errorf("%d descriptors, %d before", after, before)
	}
}

package deck_test

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/tapedeck-dev/tapedeck/deck"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// sh has a shell run what a test says, by "sh" as program: "$0" "$@" are what it is given.
func (b *bench) sh(script string) (*deck.Result, string) {
	b.t.Helper()
	b.through = []string{"/bin/sh", "-c", script}
	return b.record("")
}

const drawing = "date +%s.%N; shuf -i 1-1000000 -n 3; od -An -N8 -tx1 /dev/urandom; mktemp -u; echo $$; sh -c 'echo $$'"

// TestGivenAgain: a replay reads the same times and draws the same numbers, and so does the replay of that replay; with real time it
// does not, and neither where another key has other seeds.
func TestGivenAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	res, out := b.sh(drawing)
	kept := filepath.Join(t.TempDir(), "kept.rec")
	v, again := b.replay(res.Recording, &deck.ReplayOptions{Out: kept})
	b.green(v)
	if again != out {
		t.Errorf("first\n%s\nagain\n%s", out, again)
	}
	rec, err := recording.Open(kept)
	if err != nil {
		t.Fatal(err)
	}
	if v, third := b.replay(rec, nil); third != out || !v.Faithful() {
		t.Errorf("first\n%s\na replay of a replay\n%s", out, third)
	}

	o := &deck.ReplayOptions{Argv: append([]string{"env", "MORE=1"}, b.through...)}
	o.Argv = append(o.Argv, res.Recording.Manifest.Argv[len(b.through):]...)
	if v, fourth := b.replay(res.Recording, o); fourth != out || !v.Faithful() {
		t.Errorf("first\n%s\nwith another environment\n%s\n%s", out, fourth, verdictText(t, v))
	}

	b.config = t.TempDir()
	if v, other := b.replay(res.Recording, nil); other == out || !strings.Contains(verdictText(t, v), "made with another project key") {
		t.Errorf("with another key\n%s\n%s", other, verdictText(t, v))
	}
	b.realTime = true
	res, out = b.sh(drawing)
	if _, again := b.replay(res.Recording, nil); again == out {
		t.Errorf("with real time the same: %s", out)
	}
	if a := res.Recording.Manifest.Axes; a["clock"].On || a["random"].On {
		t.Errorf("%+v", a)
	}
}

// TestListAgain: who looks through all processes finds on a replay those that were there then.
func TestListAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if _, err := exec.LookPath("pgrep"); err != nil {
		t.Skip("pgrep is not here: ", err)
	}
	const script = `(if [ -e later ]; then read x <fifo; fi) & if [ ! -e later ]; then wait; fi
		pgrep -P $$; echo $?; if [ -e later ]; then echo >fifo; fi; wait`
	if err := syscall.Mkfifo(filepath.Join(b.dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	res, out := b.sh(script)
	b.put("later", "")
	if _, again := b.replay(res.Recording, nil); again != out || out != "1\n" {
		t.Errorf("found %q, and on a replay, where a process is there longer, %q", out, again)
	}
}

// TestListsWhatRests: who looks through all processes does not find one that its starter forked and that is over at once, but one that stays.
func TestListsWhatRests(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("pgrep"); err != nil {
		t.Skip("pgrep is not here: ", err)
	}
	b := newBench(t)
	const script = `(for i in 0 1 2 3 4 5 6 7 8 9; do for i in 0 1 2 3 4 5 6 7 8 9; do for i in 0 1 2; do read x </dev/null; done; done; done) & pgrep -P $$; echo $?
		mkfifo fifo; (read x <fifo; echo $x) & pgrep -P $$ >/dev/null; echo $? >fifo; wait`
	res, out := b.sh(script)
	v, again := b.replay(res.Recording, nil)
	b.green(v)
	if out != "1\n0\n" || again != out {
		t.Errorf("found %q, and on a replay %q", out, again)
	}
}

// TestChildrenCompare: a child that has no effect is seen where it is added, dropped or changed.
func TestChildrenCompare(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	res, _ := b.sh("true; /bin/echo hi >/dev/null; false; :")
	for script, want := range map[string]fidelity.Category{
		"true; /bin/echo ho >/dev/null; false; :":       fidelity.ProcessArgs,
		"/bin/true; /bin/echo hi >/dev/null; :":         fidelity.MissingInRecorded, // true is a builtin
		"true; :":                                       fidelity.MissingInReplay,
		"true; cd /; /bin/echo hi >/dev/null; false; :": fidelity.ProcessCwd,
	} {
		b.through[2] = script
		argv, _ := b.self("")
		v, _ := b.replay(res.Recording, &deck.ReplayOptions{Argv: argv})
		if v.Faithful() || v.Divergences[0].Category != want {
			t.Errorf("%s:\n%s", script, verdictText(t, v))
		}
	}
	var programs []string
	f, err := res.Recording.OpenTape()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for rec, err := range f.Records() {
		if k, ok := rec.Kind.(*tape.ProcessSpawn); ok && err == nil {
			programs = append(programs, filepath.Base(k.Program))
		}
	}
	if got := strings.Join(programs, " "); got != "echo sh" {
		t.Errorf("programs %q", got)
	}
}

// TestStreamsOfChildrenCompare: what a program says to one that it started, and what that answers, is seen where it has no other effect.
func TestStreamsOfChildrenCompare(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	res, _ := b.record("dictate", "read", "one\n")
	exe := res.Recording.Manifest.Argv[0]
	for _, tt := range []struct {
		args []string
		want []fidelity.Category
	}{
		{[]string{"read", "one\n"}, nil},
		{[]string{"read", "two\n"}, []fidelity.Category{fidelity.ProcessStdinHash}},
		{[]string{"read", "one\ntwo\n"}, []fidelity.Category{fidelity.ProcessStdinHash, fidelity.ProcessStdoutHash}},
		{[]string{"dropped", "one\n"}, nil}, // what nobody reads is not looked at
		{[]string{"dropped", "two\n"}, []fidelity.Category{fidelity.ProcessStdinHash}},
	} {
		v, _ := b.replay(res.Recording, &deck.ReplayOptions{Argv: append([]string{exe}, tt.args...)})
		var got []fidelity.Category
		for _, d := range v.Divergences {
			got = append(got, d.Category)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%q: %v, want %v\n%s", tt.args, got, tt.want, verdictText(t, v))
		}
	}
}

// notCovered is where a file may be made that a replay finds and its recording did not.
func notCovered(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "tapedeck-") // which is no temporary directory of a run
	if err != nil {
		t.Skip("nothing can be made outside what is covered:", err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "later")
}

// TestThreadsThatDoTheSame: what a thread draws and reads, and what its children do, is its own, whichever thread comes first and whatever number
// it has.
func TestThreadsThatDoTheSame(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	later := notCovered(t)
	rec := b.script("python3", "-c", `import os, subprocess, sys, threading, uuid
later = os.path.exists(sys.argv[1])
turn, said = [threading.Event(), threading.Event()], [None, None]
if later: subprocess.run(["true"]) # a number that a thread had
turn[later].set()
def work(n):
    turn[n].wait()
    said[n] = uuid.uuid4(), subprocess.run(["sh", "-c", "date +%N; head -c 8 /dev/urandom | od -An -tx1"], stdout=subprocess.PIPE, text=True).stdout
    turn[1-n].set()
threads = [threading.Thread(target=work, args=[n]) for n in range(2)]
for t in threads: t.start()
for t in threads: t.join()
print(*said)`, later)
	_, first := b.replay(rec, nil)
	if err := os.WriteFile(later, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	v, other := b.replay(rec, nil)
	if other != first || v.Faithful() {
		t.Errorf("first\n%s\nthe other one first\n%s%v", first, other, v.Report)
	}
}

// TestThreadThatComesFirst: what a thread draws is its own where it draws something before that another thread drew first while recording.
func TestThreadThatComesFirst(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	later := notCovered(t)
	rec := b.script("python3", "-c", `import os, sys, threading, uuid
def work():
    if os.path.exists(sys.argv[1]): os.getrandom(1)
    print(uuid.uuid4(), flush=True)
for _ in range(2):
    t = threading.Thread(target=work)
    t.start()
    t.join()`, later)
	if err := os.WriteFile(later, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if v, out := b.replay(rec, nil); !v.Faithful() {
		t.Errorf("%s%v", out, v.Report)
	}
}

// TestPoolOfProcesses: workers that wait at one pipe take the work in the order in which they were made, so each piece has the same draws and times.
func TestPoolOfProcesses(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.upstream("api.example.com", func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })
	later := notCovered(t)
	rec := b.script("python3", "-c", `import multiprocessing, os, random, sys, time, urllib.request, uuid
def begin():
    if os.path.exists(sys.argv[1]) and multiprocessing.current_process()._identity[0] % 2: sum(range(10**6)) # is slower than the next
def work(n):
    body = f"task {n} {uuid.uuid4()} {time.time()} {random.random()}"
    return urllib.request.urlopen("http://api.example.com/", body.encode()).read().decode()
with multiprocessing.get_context("fork").Pool(4, begin) as pool: print(*pool.map(work, range(4), chunksize=1), sep="\n")`, later)
	if err := os.WriteFile(later, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if v, out := b.replay(rec, nil); !v.Faithful() {
		t.Errorf("%s%v", out, v.Report)
	}
}

// TestPipelineOfForks: the stages of a pipeline that execute nothing read their own times again, where the other one asks first and all have other PIDs.
func TestPipelineOfForks(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	later := notCovered(t)
	rec := b.script("bash", "-c", `late() { for ((i = 0; i < 100000; i++)); do :; done; }
[ -e "$1" ] && (:) # takes a number
{ [ -e "$1" ] && late; echo $EPOCHREALTIME > one.txt; } | { [ -e "$1" ] || late; echo $EPOCHREALTIME > two.txt; }
echo`, "bash", later)
	if err := os.WriteFile(later, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if v, out := b.replay(rec, nil); !v.Faithful() {
		t.Errorf("%s%v", out, v.Report)
	}
}

// TestReaderThatEndsLater: who SIGPIPE ended before its reader, which reads no more but lives on, and now ends with that, waits for it no longer than it
// takes: their end is no other order.
func TestReaderThatEndsLater(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	later := notCovered(t)
	rec := b.script("sh", "-c", `sh -c 'echo a; i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done; echo b' |
sh -c 'read -r a; [ -e "$1" ] || { exec <&-; i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; }' sh "$1"
echo`, "sh", later)
	if err := os.WriteFile(later, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	v, out := b.replay(rec, nil)
	if lost := strings.Contains(strings.Join(v.Notes, "\n"), "order"); !v.Faithful() || lost {
		t.Errorf("%s%v %q", out, v.Report, v.Notes)
	}
}

// TestThreadsThatWake: a thread that tells an event loop to go on, by a byte, does first what it does behind that: so the loop finds it idle again,
// and makes no other one.
func TestThreadsThatWake(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if _, out := b.sh(`python3 -c 'import socket, threading
here, there = socket.socketpair()
there.setblocking(False)
idle = []
def work(n):
    there.send(b"\0")
    for _ in range(10000): pass
    idle.append(n)
for n in range(20):
    threading.Thread(target=work, args=[n]).start()
    here.recv(1)
    print(len(idle) - n, end="")'`); out != strings.Repeat("1", 20) {
		t.Error(out)
	}
}

// TestThreadsThatMakeThreads: each is known by who made it, whichever of two makers comes first, and beside which others.
func TestThreadsThatMakeThreads(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	later := notCovered(t)
	rec := b.script("python3", "-c", `import os, subprocess, sys, threading, uuid
later = os.path.exists(sys.argv[1])
turn, said = [threading.Event(), threading.Event()], [None, None]
turn[later].set()
def draw(n): said[n] = uuid.uuid4(), subprocess.run(["sh", "-c", "head -c 8 /dev/urandom | od -An -tx1"], stdout=subprocess.PIPE, text=True).stdout
def make(n):
    turn[n].wait()
    made = threading.Thread(target=draw, args=[n])
    made.start()
    made.join()
    turn[1-n].set()
makers = [threading.Thread(target=make, args=[n]) for n in range(2)]
for m in makers: m.start()
for m in makers: m.join()
print(*said)`, later)
	_, first := b.replay(rec, nil)
	if err := os.WriteFile(later, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if v, other := b.replay(rec, nil); other != first {
		t.Errorf("first\n%s\nthe other one first\n%s%v", first, other, v.Report)
	}
}

// TestForksBesideEnds: dash catches the ends of its children so that no call is begun again for them, and forks while they come. A fork that the
// jail had to answer would fail with EINTR where one comes before the jail has received the call.
func TestForksBesideEnds(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if _, out := b.sh("i=0; while [ $i -lt 100 ]; do : | : | : ; i=$((i+1)); done; echo whole"); out != "whole\n" {
		t.Error(out)
	}
}

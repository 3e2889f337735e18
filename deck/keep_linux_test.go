package deck_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/deck"
	"github.com/tapedeck-dev/tapedeck/deck/follow"
	"github.com/tapedeck-dev/tapedeck/deck/library"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/tape"
)

func init() {
	programs["unpacker"] = playUnpacker
	programs["keeper"] = playKeeper
	programs["held"] = playHeld
	programs["recorder-of-held"] = recordHeld
}

// recordHeld records the program "held" against the upstream args[0] into args[1].
func recordHeld(args []string) int {
	exe, err := os.Executable()
	if err != nil {
		return fail(err)
	}
	os.Setenv(programVar, "held")
	_, err = deck.Record(context.Background(), &deck.RecordOptions{
		Argv: []string{exe}, Output: args[1], ConfigDir: args[2], Upstreams: map[string]string{"api.example.com": args[0]},
		Streams: deck.Streams{Stdout: os.Stdout, Stderr: os.Stderr},
	})
	if err != nil {
		return fail(err)
	}
	return 0
}

// playUnpacker unpacks args[0] as args[1], to be killed meanwhile.
func playUnpacker(args []string) int {
	lib := library.Of(filepath.Dir(args[1]))
	fmt.Println("begin")
	_, err := lib.Unpack(context.Background(), args[0], &library.UnpackOptions{Output: args[1]})
	if err != nil {
		return fail(err)
	}
	return 0
}

// playKeeper does to the library of the work tree args[1] what args[0] says, again and again.
func playKeeper(args []string) int {
	lib := library.Of(args[1])
	for range 30 {
		switch args[0] {
		case "gc":
			if _, err := lib.GC(context.Background(), &library.GCOptions{Grace: -1}); err != nil {
				return fail(err)
			}
		case "rm":
			entries, err := lib.List()
			if err != nil {
				return fail(err)
			}
			for i := range entries {
				if e := &entries[i]; e.Recording != nil && e.Recording.Finished() && strings.HasPrefix(e.Name, "old") {
					if _, err := lib.Remove(e); err != nil && !errors.Is(err, fs.ErrNotExist) {
						return fail(err)
					}
				}
			}
		}
	}
	return 0
}

// playHeld says that it has begun, and ends with an answer that comes in halves.
func playHeld([]string) int {
	fmt.Println("begun")
	res, err := http.Get("http://api.example.com/slow")
	if err != nil {
		return fail(err)
	}
	io.Copy(io.Discard, res.Body)
	res.Body.Close()
	return 0
}

// TestKilledUnpacker kills an unpacker at random moments: its recording is there whole or not at all, and the next one
// takes away what it left.
func TestKilledUnpacker(t *testing.T) {
	root := t.TempDir()
	c := craft(t, filepath.Join(root, "a.rec"), "an-id", "finished", 400)
	file := filepath.Join(root, "packed")
	if _, err := library.Pack(context.Background(), c.open(t), file, nil); err != nil {
		t.Fatal(err)
	}
	whole, rounds := 0, 10
	for i := range rounds {
		rec := filepath.Join(root, fmt.Sprintf("round-%d", i))
		exe, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(exe, file, rec)
		cmd.Env = append(os.Environ(), programVar+"=unpacker")
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		bufio.NewReader(out).ReadString('\n')
		time.Sleep(time.Duration(rand.IntN(120)) * time.Millisecond) // the moment of death is what the test varies
		cmd.Process.Signal(syscall.SIGKILL)
		cmd.Wait()
		if _, err := os.Lstat(rec); err == nil {
			whole++
			sound(t, rec, 400, 400)
		}
	}
	t.Logf("%d of %d were done before they were killed", whole, rounds)
	lib := library.Of(root)
	if _, err := lib.Unpack(context.Background(), file, &library.UnpackOptions{Output: filepath.Join(root, "last")}); err != nil {
		t.Fatal(err)
	}
	noneLeft(t, root)
}

// A tail is Follow at work in a goroutine, which ends with it.
type tail struct {
	rec     *recording.Recording
	records chan *tape.Record
	parts   chan follow.Streaming
	end     chan error
	done    bool // finished; read it behind end
}

func followed(t testing.TB, dir string) *tail {
	t.Helper()
	rec, err := recording.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	tl := &tail{rec: rec, records: make(chan *tape.Record, 1000), parts: make(chan follow.Streaming, 10000), end: make(chan error, 1)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		done, err := follow.Follow(ctx, rec, &follow.Options{
			Record: func(r *tape.Record) error { tl.records <- r; return nil },
			Parts: func(all []follow.Streaming) error {
				for _, s := range all {
					tl.parts <- s
				}
				return nil
			},
		})
		tl.done = done
		tl.end <- err
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return tl
}

func receive[T any](t testing.TB, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(10 * time.Second):
		t.Fatalf("%s: nothing came", what)
		panic("unreachable")
	}
}

// A live is a recorder in a process of its own, whose program waits in the middle of an answer.
type live struct {
	cmd     *exec.Cmd
	rec     string
	release func() // lets the answer go on
}

func (b *bench) live(rec string) *live {
	b.t.Helper()
	hold := make(chan struct{})
	srv := b.upstream("api.example.com", func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "first half, ")
		w.(http.Flusher).Flush()
		<-hold
		io.WriteString(w, "second half")
	})
	l := &live{rec: rec, release: sync.OnceFunc(func() { close(hold) })}
	b.t.Cleanup(l.release) // before the server closes, which waits for it
	argv, env := b.self("recorder-of-held", srv.URL, rec, b.config)
	l.cmd = exec.Command(argv[0], argv[1:]...)
	l.cmd.Env, l.cmd.Dir, l.cmd.Stderr = env, b.dir, os.Stderr
	out, err := l.cmd.StdoutPipe()
	if err != nil {
		b.t.Fatal(err)
	}
	if err := l.cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { l.cmd.Process.Kill(); l.cmd.Wait() })
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		b.t.Fatalf("the program never started: %v", err)
	}
	return l
}

func TestFollowUntilTheEnd(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	l := b.live(filepath.Join(t.TempDir(), "a.rec"))
	tl := followed(t, l.rec)
	for s := range tl.parts {
		if s.Len == int64(len("first half, ")) && strings.HasSuffix(s.URL, "/slow") {
			break
		}
	}
	if tl.rec.Live() != recording.LiveYes {
		t.Error("a recorder at work is not told as live")
	}
	l.release()
	var kinds []string
	for len(kinds) == 0 || kinds[len(kinds)-1] != "process_spawn" {
		if k := receive(t, tl.records, "a record").Kind.Name(); k != "name_lookup" {
			kinds = append(kinds, k)
		}
	}
	if err := receive(t, tl.end, "the end"); err != nil || !tl.done || fmt.Sprint(kinds) != "[http_exchange process_spawn]" {
		t.Errorf("%v, finished %t, %v", kinds, tl.done, err)
	}
	if tl.rec.Live() != recording.LiveNo {
		t.Error("a finished recording is told as live")
	}
}

func TestFollowUntilTheRecorderDies(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	l := b.live(filepath.Join(t.TempDir(), "a.rec"))
	tl := followed(t, l.rec)
	receive(t, tl.parts, "the part")
	// What is being recorded is not to be touched.
	lib := library.Of(b.dir)
	e, err := lib.Entry(l.rec)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lib.Remove(e); !errors.Is(err, recording.ErrLive) {
		t.Errorf("removed while it is recorded: %v", err)
	}
	if _, err := library.Pack(context.Background(), e.Recording, filepath.Join(b.home, "x"), nil); !errors.Is(err, recording.ErrLive) {
		t.Errorf("packed while it is recorded: %v", err)
	}
	if err := l.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := receive(t, tl.end, "the end"); err != nil || tl.done {
		t.Errorf("finished %t, %v", tl.done, err)
	}
	if _, err := lib.Remove(e); err != nil {
		t.Errorf("a dead recording stays: %v", err)
	}
}

// A line that is not whole is waited for, and told once it is.
func TestFollowWaitsForTheLine(t *testing.T) {
	c := craft(t, filepath.Join(t.TempDir(), "a.rec"), "id", "recording", 0)
	lock, err := os.Open(c.dir) // as a recorder does
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	tl := followed(t, c.dir)
	f, err := os.OpenFile(filepath.Join(c.dir, "run.tape"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	line := tape.AppendRecord(nil, &tape.Record{Kind: &tape.ClockSleep{DurationMS: 1}})
	line = append(bytes.TrimSpace(line), '\n')
	for _, part := range [][]byte{line[:10], line[10:40]} {
		if _, err := f.Write(part); err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond) // long enough to be looked at; nothing waits for it
		if len(tl.records) > 0 {
			t.Error("half a line was told")
		}
	}
	begun := time.Now()
	if _, err := f.Write(line[40:]); err != nil {
		t.Fatal(err)
	}
	if got := receive(t, tl.records, "the record"); got.Kind.Name() != "clock_sleep" {
		t.Errorf("%+v", got)
	}
	t.Logf("told after %v", time.Since(begun))
	finished := strings.Replace(contents(t, c.dir)["recording.json"], `"recording"`, `"finished"`, 1)
	if err := os.Rename(c.write(t, ".tmp-1", finished), filepath.Join(c.dir, "recording.json")); err != nil { // as a recorder does
		t.Fatal(err)
	}
	if err := receive(t, tl.end, "the end"); err != nil || !tl.done {
		t.Errorf("finished %t, %v", tl.done, err)
	}
}

// TestKeepersBesideARecorder runs GC and Remove in processes of their own while a recorder is killed and others record
// into the same library. Every recording that is left must hold.
func TestKeepersBesideARecorder(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	srv := b.upstream("api.example.com", func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, strings.Repeat("a body that is a blob of its own\n", 1000)+r.URL.Path)
	})
	lib := library.Of(b.dir)
	for i := range 20 {
		craft(t, filepath.Join(lib.Dir, fmt.Sprintf("old-%d.rec", i)), fmt.Sprintf("old-%d", i), "finished", 10)
	}
	if err := os.WriteFile(filepath.Join(b.dir, "a file"), bytes.Repeat([]byte("of the work tree"), 1000), 0o644); err != nil {
		t.Fatal(err)
	}
	var keepers []*exec.Cmd
	for _, what := range []string{"gc", "rm", "gc"} {
		argv, env := b.self("keeper", what, b.dir)
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Env, cmd.Stderr = env, os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		keepers = append(keepers, cmd)
	}
	var made []*recording.Recording
	for range 3 {
		res, out := b.record("get", "http://api.example.com/a", "http://api.example.com/b")
		if res.Exit.Code != 0 {
			t.Errorf("exit %d: %s", res.Exit.Code, out)
		}
		made = append(made, res.Recording)
	}
	b.killRecorder(srv.URL, filepath.Join(lib.Dir, "killed.rec"), 20*time.Millisecond)
	for _, cmd := range keepers {
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v: %v", cmd.Args, err)
		}
	}
	entries, err := lib.List()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Err != nil {
			t.Errorf("%s: %v", e.Name, e.Err)
			continue
		}
		if v, err := verified(e.Path); err != nil || len(v.Problems) > 0 {
			t.Errorf("%s: %+v, %v", e.Name, v, err)
		}
	}
	for _, rec := range made {
		v, _ := b.replay(rec, nil)
		b.green(v)
	}
}

// Of the scratches of runs those go that nobody holds.
func TestGCOfScratches(t *testing.T) {
	base := filepath.Join("/var/tmp", fmt.Sprintf("tapedeck-%d", os.Getuid()))
	if err := os.MkdirAll(base, 0o700); err != nil {
		t.Skip(err)
	}
	var dirs []string
	for _, name := range []string{"held-", "stale-"} {
		dir, err := os.MkdirTemp(base, name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		dirs = append(dirs, dir)
		f, err := os.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		if name == "held-" {
			if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { f.Close() })
			continue
		}
		f.Close()
		if err := os.Mkdir(filepath.Join(dir, "work"), 0); err != nil { // as the kernel leaves it
			t.Fatal(err)
		}
	}
	lib := library.Of(t.TempDir())
	collect(t, lib, &library.GCOptions{DryRun: true})
	if missing(dirs[0]) {
		t.Error("a dry run removed the scratch of a run at work")
	}
	collect(t, lib, nil)
	if missing(dirs[0]) || !missing(dirs[1]) {
		t.Errorf("held gone: %t, stale gone: %t", missing(dirs[0]), missing(dirs[1]))
	}
}

// What is unpacked replays as the original does.
func TestUnpackedReplays(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.upstream("api.example.com", func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, strings.Repeat("answer ", 2000)+r.URL.Path)
	})
	res, want := b.record("get", "https://api.example.com/a", "http://api.example.com/b")
	file := filepath.Join(b.home, "packed.tar.zst")
	if _, err := library.Pack(context.Background(), res.Recording, file, nil); err != nil {
		t.Fatal(err)
	}
	rec, err := library.Of(b.home).Unpack(context.Background(), file, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(res.Recording.Dir); err != nil {
		t.Fatal(err)
	}
	v, got := b.replay(rec, nil)
	b.green(v)
	if got != want {
		t.Errorf("the program saw %q, recorded was %q", got, want)
	}
}

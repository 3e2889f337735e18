//go:build kill

package kill

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/integration/run"
)

func TestMain(m *testing.M) {
	if d, err := time.ParseDuration(os.Getenv(agentVar)); err == nil {
		os.Exit(playAgent(d))
	}
	run.Main(m)
}

// seeded is where all moments come from.
var seeded = sync.OnceValue(func() uint64 {
	if n, err := strconv.ParseUint(os.Getenv("KILL_SEED"), 10, 64); err == nil {
		return n
	}
	return rand.Uint64()
})

// moments is how many are tried of each kind in one box.
func moments(t *testing.T) int {
	n := 8
	if os.Getenv("TAPEDECK_LONG") != "" {
		n = 200
	}
	if os.Geteuid() == 0 {
		n /= 2 // in each of two boxes
	}
	t.Logf("%d moments; KILL_SEED=%d repeats them", n, seeded())
	return n
}

// rounds yields the numbers of that many rounds, and of more, five times as many at most, until tried is true: all moments of a few may
// lie before the work or behind it.
func rounds(t *testing.T, tried func() bool) iter.Seq[int] {
	n := moments(t)
	return func(yield func(int) bool) {
		for i := 0; i < n || i < 5*n && !tried(); i++ {
			if !yield(i) {
				return
			}
		}
	}
}

// A stage is a box with the agent, its upstream and a mark by which its processes are known.
type stage struct {
	t     *testing.T
	b     *run.Box
	rng   *rand.Rand
	top   string
	agent string
	url   string
	mark  string
	uid   int
	known map[string]bool // recordings of earlier rounds
}

const works = 350 * time.Millisecond // the agent, when nothing ends it

func newStage(t *testing.T, b *run.Box) *stage {
	s := &stage{
		t: t, b: b, rng: rand.New(rand.NewPCG(seeded(), 1)), top: filepath.Dir(b.Work), url: upstream(t).URL,
		known: make(map[string]bool),
	}
	s.agent = filepath.Join(s.top, "agent")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	b.WriteFile(s.agent, string(program))
	if err := os.Chmod(s.agent, 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range 30 {
		b.WriteFile(filepath.Join(b.Work, "src", fmt.Sprintf("file-%d", i)), fmt.Sprintln("what the run finds", i))
	}
	b.WriteFile(filepath.Join(s.top, "tmp", "there"), "before")
	s.mark = fmt.Sprintf("KILL_TEST_MARK=%d-%x", os.Getpid(), rand.Uint64())
	b.Setenv("KILL_TEST_MARK", s.mark[len("KILL_TEST_MARK="):])
	b.Setenv("TMPDIR", filepath.Join(s.top, "tmp"))
	b.Setenv(agentVar, works.String())
	st, err := os.Stat(b.Work)
	if err != nil {
		t.Fatal(err)
	}
	s.uid = int(st.Sys().(*syscall.Stat_t).Uid)
	return s
}

// recordArgs are the arguments of a record of the agent.
func (s *stage) recordArgs(flags ...string) []string {
	args := append([]string{"record", "--upstream", llmHost + "=" + s.url, "--upstream", itemHost + "=" + s.url}, flags...)
	return append(args, "--", s.agent)
}

// A running is a command under way.
type running struct {
	*exec.Cmd
	ready  chan struct{} // closed when the agent said so, or the command has ended
	ended  chan struct{}
	begun  time.Time
	stderr bytes.Buffer
}

// start starts a tapedeck whose program is the agent.
func (s *stage) start(args ...string) *running {
	s.t.Helper()
	os.Remove(filepath.Join(s.b.Work, logName))
	r := &running{Cmd: s.b.Command(args...), ready: make(chan struct{}), ended: make(chan struct{}), begun: time.Now()}
	r.Stderr = &r.stderr
	out, err := r.StdoutPipe()
	if err == nil {
		err = r.Start()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	go func() {
		defer close(r.ended)
		lines := bufio.NewReader(out)
		lines.ReadString('\n')
		close(r.ready)
		io.Copy(io.Discard, lines)
		r.Wait()
	}()
	return r
}

// killAt kills what victim finds d from now, and returns what was below the command before. Where the command has ended, or
// there is no victim, nothing is killed.
func (r *running) killAt(d time.Duration, victim func() int) (seen []process, killed bool) {
	select {
	case <-r.ended:
	case <-time.After(d):
		seen = below(r.Process.Pid)
		if pid := victim(); pid > 0 {
			killed = syscall.Kill(pid, syscall.SIGKILL) == nil
		}
	}
	<-r.ended
	return seen, killed
}

// whole is how long a run takes that nobody kills: the second one, for the first finds cold caches.
func (s *stage) whole(args ...string) (d time.Duration) {
	s.t.Helper()
	for range 2 {
		r := s.start(args...)
		<-r.ended
		if code := r.ProcessState.ExitCode(); code != 0 {
			s.t.Fatalf("status %d without a kill: %s", code, &r.stderr)
		}
		d = time.Since(r.begun)
		s.fresh()
	}
	return d
}

// fresh returns the recording that came since the last call; nil for none.
func (s *stage) fresh() *recording.Recording {
	s.t.Helper()
	res := s.b.Tapedeck("list", "--json")
	var list struct {
		Recordings []struct{ ID, Path, Error string }
	}
	if err := json.Unmarshal([]byte(res.Stdout), &list); err != nil || res.Status != 0 {
		s.t.Fatalf("list: %v, %v", err, res)
	}
	var found *recording.Recording
	for _, e := range list.Recordings {
		if s.known[e.ID] {
			continue
		}
		s.known[e.ID] = true
		rec, err := recording.Open(e.Path)
		if err != nil {
			if names, _ := os.ReadDir(e.Path); len(names) > 1 { // more than the beginning of recording.json
				s.t.Errorf("%s holds %v and does not open: %v", e.Path, names, err)
			}
			continue
		}
		if found != nil {
			s.t.Errorf("two recordings of one run: %s, %s", found.Dir, e.Path)
		}
		found = rec
	}
	return found
}

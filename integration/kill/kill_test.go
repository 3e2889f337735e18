//go:build kill

package kill

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/integration/run"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// tally counts what the rounds of one test met, so that a test that met nothing is seen.
type tally struct{ killed, none, unfinished, finished, whole, cut int }

// atWork says that something died while an answer was on the tape and the recording was not finished.
func (n *tally) atWork() bool { return n.unfinished > 0 && n.whole > 0 }

// round starts a record, kills victim at a moment and checks what is left. The moment is counted from the start, or where
// ready is true from the agent's word.
func (s *stage) round(i int, ready bool, most time.Duration, victim func(r *running) int, n *tally) (r *running, rec *recording.Recording, killed bool) {
	s.t.Helper()
	var flags []string
	if i%4 == 3 {
		flags = append(flags, "--isolated")
	}
	if i%4 == 0 { // what comes next has nothing to link to then
		s.removeAll()
	}
	r = s.start(s.recordArgs(flags...)...)
	if ready {
		<-r.ready
	}
	moment := time.Duration(s.rng.Int64N(int64(most)))
	seen, killed := r.killAt(moment, func() int { return victim(r) })
	if left := nothingRuns(seen, s.mark); len(left) > 0 {
		s.t.Errorf("round %d, %v: still running: %v", i, moment, left)
	}
	log := s.logOf(flags)
	rec = s.fresh() // the next command
	if left := s.scratches(rec); len(left) > 0 {
		s.t.Errorf("round %d, %v: left over: %v", i, moment, left)
	}
	if killed {
		n.killed++
	}
	s.loads(i, rec, n)
	if rec != nil && log != "" {
		whole, cut := s.answers(rec, log)
		n.whole, n.cut = n.whole+whole, n.cut+cut
	}
	if s.t.Failed() {
		s.t.Fatalf("round %d, killed %v after %v, flags %v; stderr: %s", i, killed, moment, flags, &r.stderr)
	}
	return r, rec, killed
}

// removeAll removes the recordings, unfinished ones too.
func (s *stage) removeAll() {
	s.t.Helper()
	for id := range s.known {
		if res := s.b.Tapedeck("rm", id); res.Status != 0 {
			s.t.Logf("rm: %v", res)
		}
		delete(s.known, id)
	}
}

// logOf copies the agent's log to where the next command leaves it alone; "" where there is none any more.
func (s *stage) logOf(flags []string) string {
	from := []string{filepath.Join(s.b.Work, logName)}
	if len(flags) > 0 {
		from, _ = filepath.Glob(fmt.Sprintf("/var/tmp/tapedeck-%d/*/*/upper/%s", s.uid, logName))
	}
	to := filepath.Join(s.t.TempDir(), logName)
	for _, f := range from {
		if b, err := os.ReadFile(f); err == nil && os.WriteFile(to, b, 0o600) == nil {
			return to
		}
	}
	return ""
}

// scratches lists the layers that are left of rec.
func (s *stage) scratches(rec *recording.Recording) []string {
	if rec == nil {
		return nil
	}
	left, _ := filepath.Glob(fmt.Sprintf("/var/tmp/tapedeck-%d/%s-*", s.uid, rec.Manifest.ID))
	return left
}

// loads checks that everything reads what was left, and says whether it is finished.
func (s *stage) loads(i int, rec *recording.Recording, n *tally) {
	s.t.Helper()
	if rec == nil {
		n.none++
		return
	}
	end := ""
	if rec.Finished() {
		n.finished++
	} else {
		n.unfinished++
		end = "unfinished"
	}
	for _, cmd := range []string{"verify", "show"} {
		if res := s.b.Tapedeck(cmd, rec.Dir); res.Status != 0 || !strings.Contains(res.Stdout+res.Stderr, end) {
			s.t.Errorf("round %d: %s: %v", i, cmd, res)
		}
	}
}

// The recorder dies at any moment, from its start to after its end.
func TestRecorder(t *testing.T) {
	run.Each(t, func(t *testing.T, b *run.Box) {
		s, n := newStage(t, b), new(tally)
		most := s.whole(s.recordArgs()...) * 11 / 10
		for i := range rounds(t, n.atWork) {
			_, rec, killed := s.round(i, false, most, func(r *running) int { return r.Process.Pid }, n)
			if rec == nil && !killed {
				t.Fatalf("round %d: there is no recording", i)
			}
		}
		t.Logf("%+v", *n)
		if !n.atWork() {
			t.Error("no recorder was killed at work: the test has tried nothing")
		}
	})
}

// The init dies, and everything in the jail with it: the recorder says so, and leaves the recording unfinished.
func TestInit(t *testing.T) {
	run.Each(t, func(t *testing.T, b *run.Box) {
		s, n := newStage(t, b), new(tally)
		for i := range rounds(t, n.atWork) {
			r, rec, killed := s.round(i, true, works, func(r *running) int { return initOf(r.Process.Pid) }, n)
			code := r.ProcessState.ExitCode()
			switch {
			case rec == nil:
				t.Fatalf("round %d: there is no recording: %s", i, &r.stderr)
			case killed && !rec.Finished() && (code != 125 || !strings.Contains(r.stderr.String(), "its init ended")):
				t.Errorf("round %d: status %d: %s", i, code, &r.stderr)
			case !killed && !rec.Finished():
				t.Errorf("round %d: status %d, unfinished, and nothing was killed: %s", i, code, &r.stderr)
			case rec.Finished() && code != 0: // the program had ended by then
				t.Errorf("round %d: status %d of a finished recording: %s", i, code, &r.stderr)
			}
		}
		t.Logf("%+v", *n)
		if !n.atWork() {
			t.Error("no init was killed at work: the test has tried nothing")
		}
	})
}

// The program dies: the recording is finished and says by what.
func TestProgram(t *testing.T) {
	run.Each(t, func(t *testing.T, b *run.Box) {
		s, n := newStage(t, b), new(tally)
		died := 0
		tried := func() bool { return died > 0 && n.whole > 0 }
		for i := range rounds(t, tried) {
			r, rec, killed := s.round(i, true, works, func(r *running) int { return programOf(r.Process.Pid) }, n)
			code := r.ProcessState.ExitCode()
			if rec == nil || !rec.Finished() || code != rec.Manifest.Exit.Code || code != 0 && !killed {
				t.Fatalf("round %d: status %d, recording %+v: %s", i, code, rec, &r.stderr)
			}
			if code == 0 { // it had ended before
				continue
			}
			died++
			if sp := lastSpawn(t, rec); code != 137 || rec.Manifest.Exit.Signal != "SIGKILL" || sp.ExitCode != 137 || sp.Signal != "SIGKILL" {
				t.Errorf("round %d: status %d, manifest %+v, tape %d %q", i, code, *rec.Manifest.Exit, sp.ExitCode, sp.Signal)
			}
		}
		t.Logf("%+v, died %d", *n, died)
		if !tried() {
			t.Error("no program was killed at work: the test has tried nothing")
		}
	})
}

// lastSpawn is the last record of a finished recording.
func lastSpawn(t *testing.T, rec *recording.Recording) *tape.ProcessSpawn {
	t.Helper()
	f, err := rec.OpenTape()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var last tape.Kind
	for r, err := range f.Records() {
		if err != nil {
			t.Fatal(err)
		}
		last = r.Kind
	}
	sp, ok := last.(*tape.ProcessSpawn)
	if !ok {
		t.Fatalf("the last record is %s", last.Name())
	}
	return sp
}

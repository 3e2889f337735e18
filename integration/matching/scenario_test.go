package matching

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// long says that the long form runs.
var long = os.Getenv("TAPEDECK_LONG") != ""

// sized is short in the short form, full in the long one.
func sized(short, full int) int {
	if long {
		return full
	}
	return short
}

// recording is the seed of the program while it is recorded; replays have 1, 2, 3, …
const recording = 0

// A scenario is a program and the upstream that it meets.
type scenario struct {
	upstream *upstream
	// program runs to its end, and adds what it found out to the account.
	program func(p *program)
	// speed is that of the replays: 0 answers at once, 1 as recorded.
	speed float64
}

// prove records the scenario once and replays it again and again, beside other tests: most of the time is spent waiting.
func (s *scenario) prove(t *testing.T) {
	t.Helper()
	t.Parallel()
	recorded := record(t, s.upstream.serve(t))
	recorded.held = &s.upstream.held
	want := s.play(recorded, recording)
	if t.Failed() {
		t.Fatal("the recording failed")
	}
	for round := range sized(2, 20) {
		replay := recorded.replay(s.speed)
		got := s.play(replay, uint64(round+1))
		s.check(recorded, replay)
		if !slices.Equal(got, want) {
			t.Errorf("round %d: the program's account of the replay is another one:\n%s", round, firstDifference(want, got))
		}
		if t.Failed() {
			t.Fatalf("round %d failed", round)
		}
	}
}

// play runs the program against r to the end, and returns its account in a stable order.
func (s *scenario) play(r *run, seed uint64) []string {
	p := newProgram(r, seed)
	s.program(p)
	r.end()
	slices.Sort(p.account)
	return p.account
}

// check holds the replay to what every scenario promises.
func (s *scenario) check(recorded, replay *run) {
	t := recorded.t
	t.Helper()
	if n := replay.book.Audit(); n != 0 {
		t.Errorf("%d answers crossed", n)
	}
	report := recorded.compare(replay)
	if !report.Faithful() || *report.Crossed != 0 || len(report.Unasked) != 0 || len(report.Refused) != 0 {
		for i, d := range report.Divergences {
			if i < 5 {
				t.Logf("%s in %s: %s\n%s", d.Category, d.Lane, d.Message, d.Cause)
			}
		}
		t.Errorf("%v, notes %q", report, report.Notes)
	}
}

func firstDifference(want, got []string) string {
	for i := range max(len(want), len(got)) {
		if i >= len(want) || i >= len(got) || want[i] != got[i] {
			return strings.Join([]string{"recorded " + at(want, i), "replay   " + at(got, i)}, "\n")
		}
	}
	return ""
}

func at(list []string, i int) string {
	if i >= len(list) {
		return "nothing"
	}
	return list[i]
}

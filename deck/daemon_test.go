package deck

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A telling is a tape that is told to a daemon while a test makes it.
type telling struct {
	*talkTape
	f *FakeDaemon
	d *daemonRun
}

func newTelling(t *testing.T) *telling {
	t.Helper()
	tt, f := newTalkTape(t), NewFakeDaemon()
	d := newDaemonRun(f.Sink(), scrub.New(scrub.Key{1}, nil), time.Minute)
	d.start.AgentName = "a"
	if err := d.open(context.Background(), "r"); err != nil {
		t.Fatal(err)
	}
	d.begin(&toldTape{Path: tt.path, Store: tt.store, Rec: tt.rec, Log: slog.New(slog.DiscardHandler)})
	return &telling{tt, f, d}
}

// says records a call of the main conversation, and hands it to the kernel.
func (te *telling) call(request, response string) {
	te.t.Helper()
	te.callIn("llm:a", request, response)
}

func (te *telling) callIn(lane, request, response string) {
	te.t.Helper()
	te.talkTape.call(lane, request, response)
	if err := te.rec.Flush(); err != nil {
		te.t.Fatal(err)
	}
}

// end ends the run as a recorder does, and returns what the daemon does not have.
func (te *telling) end() []string {
	te.t.Helper()
	te.d.stop()
	te.close()
	src := &talkSource{path: te.path, id: "r", heard: te.d.again()}
	if _, err := src.derive(func([]byte) error { return nil }); err != nil {
		te.t.Fatal(err)
	}
	gaps := te.d.settle()
	if err := te.d.complete(&runEnd{Err: errGone}); err != nil {
		te.t.Error(err)
	}
	te.f.set(func() {
		if te.f.sessions != 0 {
			te.t.Errorf("%d connections are left", te.f.sessions)
		}
	})
	return gaps
}

// want compares the turns of all runs.
func (te *telling) want(want ...[]string) {
	te.t.Helper()
	var got [][]string
	for _, r := range te.f.Runs() {
		got = append(got, r.texts())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		te.t.Errorf("(-want +got)\n%s", diff)
	}
}

// both is an answer that calls two tools.
func both(a, b string) string {
	return fmt.Sprintf(`{"type":"message","content":[{"type":"tool_use","id":%q,"name":"read","input":{"p":1}},{"type":"tool_use","id":%q,"name":"rm","input":{"q":[1, 2]}}],"stop_reason":"tool_use"}`, a, b)
}

// TestTurnsWhileTheRunGoesOn: a turn is told once its result is known, before anything else happens, in the order of the calls; a
// call without a result at the end; and what the policies say stands on the tape.
func TestTurnsWhileTheRunGoesOn(t *testing.T) {
	te := newTelling(t)
	te.f.Deny("rm")
	te.call(asks("s", readTool, user("one")), both("t1", "t2"))
	two := []string{user("one"), `{"role":"assistant","content":[]}`, gives("t2", "second"), `{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","is_error":true,"content":"first"}]}`}
	te.call(asks("s", readTool, two...), calls("t3"))
	te.f.wait(t, 1)
	te.want([]string{`read {"p":1} failed: first`, `rm {"q":[1, 2]} "second"`})
	te.call(asks("s", readTool, append(two, uses("t3"), gives("t3", "third"))...), calls("t4"))
	te.f.wait(t, 1)
	if gaps := te.end(); len(gaps) > 0 {
		t.Errorf("%q", gaps)
	}
	te.want([]string{`read {"p":1} failed: first`, `rm {"q":[1, 2]} "second"`, `read {"p":1} "third"`, `read {"p":1} `})
	if r := te.f.Runs()[0]; r.Outcome == nil || r.Outcome.Status != outcomeFailure || te.d.named.Turns != 4 {
		t.Errorf("%+v, %+v", r, te.d.named)
	}
	if want := []string{`read {"p":1}`, `rm {"q":[1,2]}`, `read {"p":1}`, `read {"p":1}`}; !slices.Equal(te.f.judged, want) {
		t.Errorf("judged %q", te.f.judged)
	}
	if got, want := te.verdicts(), []string{`t1 read {"kind":"allow"}`, `t2 rm {"kind":"deny","reason":"never","violations":[]}`, `t3 read {"kind":"allow"}`, `t4 read {"kind":"allow"}`}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func (te *telling) verdicts() (out []string) {
	te.t.Helper()
	tp, err := tape.Open(te.path, nil)
	if err != nil {
		te.t.Fatal(err)
	}
	defer tp.Close()
	for rec, err := range tp.Records() {
		if err != nil {
			te.t.Fatal(err)
		}
		k, ok := rec.Kind.(*tape.PolicyVerdict)
		if !ok {
			continue
		}
		if k.PolicySet != "aa" || k.ParamsPayload == nil || k.ParamsDigest.IsZero() {
			te.t.Errorf("%+v", k)
		}
		out = append(out, fmt.Sprintf("%s %s %s", k.ActionID, k.Tool, k.Verdict))
	}
	return out
}

// TestAnAnswerThatWasCutAtTheEnd: a call that the program got no whole answer with is judged and told, for nothing came after it.
func TestAnAnswerThatWasCutAtTheEnd(t *testing.T) {
	te := newTelling(t)
	te.call(asks("s", readTool, user("one")), strings.TrimSuffix(calls("t1"), `,"stop_reason":"tool_use"}`)+"}")
	if gaps := te.end(); len(gaps) > 0 {
		t.Errorf("%q", gaps)
	}
	te.want([]string{`read {"p":1} `})
	if got := te.verdicts(); len(got) != 1 {
		t.Errorf("%q", got)
	}
}

// rounds records n calls of tools with their results, one a turn.
func (te *telling) rounds(n int) (want []string) {
	te.t.Helper()
	history := []string{user("one")}
	for i := range n {
		id := fmt.Sprint("t", i)
		te.call(asks("s", readTool, history...), calls(id))
		history = append(history, uses(id), gives(id, id))
		want = append(want, fmt.Sprintf(`read {"p":1} "%s"`, id))
	}
	te.call(asks("s", readTool, history...), says("Done."))
	return want
}

// TestATurnOnce: where an answer of the daemon's was lost it is asked what it has, and what it has not is given once more.
func TestATurnOnce(t *testing.T) {
	for _, c := range []struct{ before, after int }{{1, 0}, {0, 1}, {2, 2}} {
		te := newTelling(t)
		te.f.set(func() { te.f.before, te.f.after = c.before, c.after })
		want := te.rounds(5)
		if gaps := te.end(); len(gaps) > 0 {
			t.Errorf("%+v: %q", c, gaps)
		}
		te.want(want)
		if te.d.named.Turns != 5 {
			t.Errorf("%+v", te.d.named)
		}
	}
}

// TestADaemonThatIsStartedAgain: what it ended goes on in another run.
func TestADaemonThatIsStartedAgain(t *testing.T) {
	te := newTelling(t)
	te.call(asks("s", readTool, user("one")), calls("t1"))
	te.call(asks("s", readTool, user("one"), uses("t1"), gives("t1", "1")), calls("t2"))
	te.f.wait(t, 1)
	te.f.restart()
	te.call(asks("s", readTool, user("one"), uses("t1"), gives("t1", "1"), uses("t2"), gives("t2", "2")), calls("t3"))
	te.f.wait(t, 1)
	te.f.restart() // before it got a turn of the third
	te.call(asks("s", readTool, user("one"), uses("t1"), gives("t1", "1"), uses("t2"), gives("t2", "2"), uses("t3"), gives("t3", "3")), says("Done."))
	gaps := te.end()
	if len(gaps) != 1 || !strings.Contains(gaps[0], "[r r-2 r-3]") {
		t.Errorf("%q", gaps)
	}
	te.want([]string{`read {"p":1} "1"`}, []string{`read {"p":1} "2"`}, []string{`read {"p":1} "3"`})
	runs := te.f.Runs()
	if runs[2].Outcome == nil || runs[2].Start.AgentID != "name:a" || !strings.Contains(runs[2].Start.OutcomeDescription, "r-2") {
		t.Errorf("%+v", runs[2])
	}
}

// TestADaemonThatIsGone holds nobody up while the run goes on, nor for long at its end, and what it did not get is said.
func TestADaemonThatIsGone(t *testing.T) {
	for name, fail := range map[string]func(*FakeDaemon){
		"away":    func(f *FakeDaemon) { f.away = true },
		"hanging": func(f *FakeDaemon) { f.hang = make(chan struct{}) },
	} {
		t.Run(name, func(t *testing.T) {
			te := newTelling(t)
			te.f.set(func() { fail(te.f) })
			te.rounds(100)
			te.d.left = 50 * time.Millisecond
			begun := time.Now()
			te.d.stop()
			te.close()
			src := &talkSource{path: te.path, id: "r", heard: te.d.again()}
			if _, err := src.derive(func([]byte) error { return nil }); err != nil {
				t.Fatal(err)
			}
			gaps := te.d.settle()
			err := te.d.complete(&runEnd{Err: errGone})
			if passed := time.Since(begun); passed > 10*time.Second {
				t.Errorf("it took %s", passed)
			}
			all := strings.Join(gaps, "\n")
			if err == nil || len(gaps) != 2 || !strings.Contains(all, "100 turns that the daemon did not get: ") || !strings.Contains(all, "verdicts of its policies on 100 tool calls: ") {
				t.Errorf("%v, %q", err, gaps)
			}
			te.want(nil)
		})
	}
}

// TestADaemonThatComesBack gets all of it, in order, once.
func TestADaemonThatComesBack(t *testing.T) {
	te := newTelling(t)
	te.f.set(func() { te.f.away = true })
	want := te.rounds(300)
	te.f.set(func() { te.f.away = false })
	if gaps := te.end(); len(gaps) > 0 {
		t.Errorf("%q", gaps)
	}
	te.want(want)
	if n := len(te.verdicts()); n != 300 {
		t.Errorf("%d verdicts", n)
	}
}

// TestADaemonThatRefuses: what is refused is said, with the daemon's reason, and the rest is told.
func TestADaemonThatRefuses(t *testing.T) {
	te := newTelling(t)
	te.f.set(func() {
		te.f.unknown = true
		te.f.refuse = func(turn string) string {
			if strings.Contains(turn, `"t3"`) {
				return "turn_too_large"
			}
			return ""
		}
	})
	want := te.rounds(6)
	gaps := te.end()
	te.want(slices.Delete(want, 3, 4))
	if diff := cmp.Diff([]string{"1 turn that the daemon did not take: turn_too_large", "verdicts of its policies on 6 tool calls: unknown method"}, gaps); diff != "" {
		t.Error(diff)
	}
}

// TestARunThatIsFull: what does not fit is counted, and the daemon is not asked about each.
func TestARunThatIsFull(t *testing.T) {
	te := newTelling(t)
	asked := 0
	te.f.set(func() {
		te.f.away = true
		te.f.full = 7
		te.f.refuse = func(string) string { asked++; return "" }
	})
	want := te.rounds(200)
	te.f.set(func() { te.f.away = false })
	gaps := te.end()
	te.want(want[:7])
	if diff := cmp.Diff([]string{"193 turns that the daemon did not take: a run has 2000 at most"}, gaps); diff != "" || asked > 500 {
		t.Errorf("%d turns were sent\n%s", asked, diff)
	}
}

// TestASecretThatIsKnownLate: what was told before is said, and what is told after is told without it.
func TestASecretThatIsKnownLate(t *testing.T) {
	const secret = "lt4Xw2Lk9Vb4Nm6Tr8Yp"
	te := newTelling(t)
	te.call(asks("s", readTool, user("one")), both("t1", "t2"))
	te.call(asks("s", readTool, user("one"), uses("t1"), gives("t1", "it is "+secret)), calls("t3"))
	te.f.wait(t, 1)
	te.d.scrub.AddSecret("token", secret)
	te.call(asks("s", readTool, user("one"), uses("t1"), gives("t1", "it is "+secret), uses("t3"), gives("t3", "once more "+secret)), says("Done."))
	gaps := te.end()
	if len(gaps) != 1 || !strings.HasPrefix(gaps[0], "1 turn that the daemon has otherwise than the tape") {
		t.Errorf("%q", gaps)
	}
	turns := te.f.Runs()[0].texts()
	if len(turns) != 3 || !strings.Contains(turns[0], secret) || strings.Contains(turns[1], secret) || !strings.Contains(turns[1], "once more td_") {
		t.Errorf("%q", turns)
	}
}

// TestAConversationThatOnlySeemedToGoOn: while another began it looked like the main one's next; once that goes on, what is left of
// it is told all the same.
func TestAConversationThatOnlySeemedToGoOn(t *testing.T) {
	te := newTelling(t)
	te.callIn("llm:title", asks("", "", user("title")), says("A title."))
	te.callIn("llm:a", asks("s", readTool, user("one")), says("First."))
	te.callIn("llm:b", asks("s", readTool, user("other")), calls("b1"))
	te.callIn("llm:b", asks("s", readTool, user("other"), uses("b1"), gives("b1", "b")), calls("b2"))
	te.f.wait(t, 1)
	te.callIn("llm:a", asks("s", readTool, user("one"), model("First."), user("two")), calls("a1"))
	te.callIn("llm:a", asks("s", readTool, user("one"), model("First."), user("two"), uses("a1"), gives("a1", "a")), says("Second."))
	te.f.wait(t, 1)
	gaps := te.end()
	te.want([]string{`read {"p":1} "b"`, `read {"p":1} "a"`})
	if len(gaps) != 1 || !strings.HasPrefix(gaps[0], "1 turn that the daemon has of another conversation") {
		t.Errorf("%q", gaps)
	}
}

func TestAgentName(t *testing.T) {
	for _, tt := range []struct{ path, argv, want string }{
		{"/usr/bin/node", "node /x/.bin/pi -p hi", "pi"},
		{"/usr/bin/python3.11", "python3 agents/fixer.py", "fixer"},
		{"/usr/bin/python3", "python3 -m fixer", "python3"},
		{"/usr/bin/node", "node", "node"},
		{"/x/codex", "codex exec", "codex"},
		{"/x/agent.sh", "./agent.sh now", "agent"},
	} {
		if got := agentName(tt.path, strings.Fields(tt.argv)); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.argv, got, tt.want)
		}
	}
}

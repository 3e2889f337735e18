package daemon_test

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck-dev/tapedeck/deck/daemon"
	"github.com/tapedeck-dev/tapedeck/deck/daemon/daemontest"
	"github.com/tapedeck-dev/tapedeck/deck/derive"
	"github.com/tapedeck-dev/tapedeck/deck/derive/derivetest"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A telling is a tape that is told to a daemon while a test makes it.
type telling struct {
	*derivetest.Tape
	f     *daemontest.Daemon
	d     *daemon.Run
	scrub *scrub.Scrubber
}

func newTelling(t *testing.T, patience time.Duration) *telling {
	t.Helper()
	te := &telling{Tape: derivetest.NewTape(t), f: daemontest.New(), scrub: scrub.New(scrub.Key{1}, nil)}
	o := te.f.Options()
	o.Agent, o.Patience = "a", patience
	var err error
	if te.d, err = daemon.Connect(t.Context(), o, te.scrub, &daemon.About{ID: "r"}); err != nil {
		t.Fatal(err)
	}
	te.d.Begin(&daemon.Tape{Path: te.Path, Store: te.Store, Rec: te.Rec, Log: slog.New(slog.DiscardHandler)})
	return te
}

// says records a call of the main conversation, and hands it to the kernel.
func (te *telling) call(request, response string) {
	te.T.Helper()
	te.callIn("llm:a", request, response)
}

func (te *telling) callIn(lane, request, response string) {
	te.T.Helper()
	te.Call(lane, request, response)
	if err := te.Rec.Flush(); err != nil {
		te.T.Fatal(err)
	}
}

// end ends the run as a recorder does, and returns what the daemon does not have.
func (te *telling) end() []string {
	te.T.Helper()
	te.d.Stop()
	te.Close()
	src := &derive.Source{Path: te.Path, ID: "r", Heard: te.d.Again()}
	if _, err := src.Derive(func([]byte) error { return nil }); err != nil {
		te.T.Fatal(err)
	}
	gaps := te.d.Settle()
	if err := te.d.Complete(&daemon.End{Err: daemontest.ErrGone}); err != nil {
		te.T.Error(err)
	}
	te.f.Set(func() {
		if te.f.Sessions != 0 {
			te.T.Errorf("%d connections are left", te.f.Sessions)
		}
	})
	return gaps
}

// want compares the turns of all runs.
func (te *telling) want(want ...[]string) {
	te.T.Helper()
	var got [][]string
	for _, r := range te.f.Runs() {
		got = append(got, r.Texts())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		te.T.Errorf("(-want +got)\n%s", diff)
	}
}

// both is an answer that calls two tools.
func both(a, b string) string {
	return fmt.Sprintf(`{"type":"message","content":[{"type":"tool_use","id":%q,"name":"read","input":{"p":1}},{"type":"tool_use","id":%q,"name":"rm","input":{"q":[1, 2]}}],"stop_reason":"tool_use"}`, a, b)
}

// TestTurnsWhileTheRunGoesOn: a turn is told once its result is known, before anything else happens, in the order of the calls; a
// call without a result at the end; and what the policies say stands on the tape.
func TestTurnsWhileTheRunGoesOn(t *testing.T) {
	te := newTelling(t, time.Minute)
	te.f.Deny("rm")
	te.call(derivetest.Asks("s", derivetest.ReadTool, derivetest.User("one")), both("t1", "t2"))
	two := []string{derivetest.User("one"), `{"role":"assistant","content":[]}`, derivetest.Gives("t2", "second"), `{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","is_error":true,"content":"first"}]}`}
	te.call(derivetest.Asks("s", derivetest.ReadTool, two...), derivetest.Calls("t3"))
	te.f.Wait(t, 1)
	te.want([]string{`read {"p":1} failed: first`, `rm {"q":[1, 2]} "second"`})
	te.call(derivetest.Asks("s", derivetest.ReadTool, append(two, derivetest.Uses("t3"), derivetest.Gives("t3", "third"))...), derivetest.Calls("t4"))
	te.f.Wait(t, 1)
	if gaps := te.end(); len(gaps) > 0 {
		t.Errorf("%q", gaps)
	}
	te.want([]string{`read {"p":1} failed: first`, `rm {"q":[1, 2]} "second"`, `read {"p":1} "third"`, `read {"p":1} `})
	if r := te.f.Runs()[0]; r.Outcome == nil || r.Outcome.Status != daemon.OutcomeFailure || te.d.Named.Turns != 4 {
		t.Errorf("%+v, %+v", r, te.d.Named)
	}
	if want := []string{`read {"p":1}`, `rm {"q":[1,2]}`, `read {"p":1}`, `read {"p":1}`}; !slices.Equal(te.f.Judged, want) {
		t.Errorf("judged %q", te.f.Judged)
	}
	if got, want := te.verdicts(), []string{`t1 read {"kind":"allow"}`, `t2 rm {"kind":"deny","reason":"never","violations":[]}`, `t3 read {"kind":"allow"}`, `t4 read {"kind":"allow"}`}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func (te *telling) verdicts() (out []string) {
	te.T.Helper()
	tp, err := tape.Open(te.Path, nil)
	if err != nil {
		te.T.Fatal(err)
	}
	defer tp.Close()
	for rec, err := range tp.Records() {
		if err != nil {
			te.T.Fatal(err)
		}
		k, ok := rec.Kind.(*tape.PolicyVerdict)
		if !ok {
			continue
		}
		if k.PolicySet != "aa" || k.ParamsPayload == nil || k.ParamsDigest.IsZero() {
			te.T.Errorf("%+v", k)
		}
		out = append(out, fmt.Sprintf("%s %s %s", k.ActionID, k.Tool, k.Verdict))
	}
	return out
}

// TestAnAnswerThatWasCutAtTheEnd: a call that the program got no whole answer with is judged and told, for nothing came after it.
func TestAnAnswerThatWasCutAtTheEnd(t *testing.T) {
	te := newTelling(t, time.Minute)
	te.call(derivetest.Asks("s", derivetest.ReadTool, derivetest.User("one")), strings.TrimSuffix(derivetest.Calls("t1"), `,"stop_reason":"tool_use"}`)+"}")
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
	te.T.Helper()
	history := []string{derivetest.User("one")}
	for i := range n {
		id := fmt.Sprint("t", i)
		te.call(derivetest.Asks("s", derivetest.ReadTool, history...), derivetest.Calls(id))
		history = append(history, derivetest.Uses(id), derivetest.Gives(id, id))
		want = append(want, fmt.Sprintf(`read {"p":1} "%s"`, id))
	}
	te.call(derivetest.Asks("s", derivetest.ReadTool, history...), derivetest.Says("Done."))
	return want
}

// TestATurnOnce: where an answer of the daemon's was lost it is asked what it has, and what it has not is given once more.
func TestATurnOnce(t *testing.T) {
	for _, c := range []struct{ before, after int }{{1, 0}, {0, 1}, {2, 2}} {
		te := newTelling(t, time.Minute)
		te.f.Set(func() { te.f.Before, te.f.After = c.before, c.after })
		want := te.rounds(5)
		if gaps := te.end(); len(gaps) > 0 {
			t.Errorf("%+v: %q", c, gaps)
		}
		te.want(want)
		if te.d.Named.Turns != 5 {
			t.Errorf("%+v", te.d.Named)
		}
	}
}

// TestADaemonThatIsStartedAgain: what it ended goes on in another run.
func TestADaemonThatIsStartedAgain(t *testing.T) {
	te := newTelling(t, time.Minute)
	te.call(derivetest.Asks("s", derivetest.ReadTool, derivetest.User("one")), derivetest.Calls("t1"))
	te.call(derivetest.Asks("s", derivetest.ReadTool, derivetest.User("one"), derivetest.Uses("t1"), derivetest.Gives("t1", "1")), derivetest.Calls("t2"))
	te.f.Wait(t, 1)
	te.f.Restart()
	te.call(derivetest.Asks("s", derivetest.ReadTool, derivetest.User("one"), derivetest.Uses("t1"), derivetest.Gives("t1", "1"), derivetest.Uses("t2"), derivetest.Gives("t2", "2")), derivetest.Calls("t3"))
	te.f.Wait(t, 1)
	te.f.Restart() // before it got a turn of the third
	te.call(derivetest.Asks("s", derivetest.ReadTool, derivetest.User("one"), derivetest.Uses("t1"), derivetest.Gives("t1", "1"), derivetest.Uses("t2"), derivetest.Gives("t2", "2"), derivetest.Uses("t3"), derivetest.Gives("t3", "3")), derivetest.Says("Done."))
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
	for name, fail := range map[string]func(*daemontest.Daemon){
		"away":    func(f *daemontest.Daemon) { f.Away = true },
		"hanging": func(f *daemontest.Daemon) { f.Hang = make(chan struct{}) },
	} {
		t.Run(name, func(t *testing.T) {
			te := newTelling(t, 50*time.Millisecond)
			te.f.Set(func() { fail(te.f) })
			te.rounds(100)
			te.d.Left = 50 * time.Millisecond
			begun := time.Now()
			te.d.Stop()
			te.Close()
			src := &derive.Source{Path: te.Path, ID: "r", Heard: te.d.Again()}
			if _, err := src.Derive(func([]byte) error { return nil }); err != nil {
				t.Fatal(err)
			}
			gaps := te.d.Settle()
			err := te.d.Complete(&daemon.End{Err: daemontest.ErrGone})
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
	te := newTelling(t, time.Minute)
	te.f.Set(func() { te.f.Away = true })
	want := te.rounds(300)
	te.f.Set(func() { te.f.Away = false })
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
	te := newTelling(t, time.Minute)
	te.f.Set(func() {
		te.f.Unknown = true
		te.f.Refuse = func(turn string) string {
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
	te := newTelling(t, time.Minute)
	asked := 0
	te.f.Set(func() {
		te.f.Away = true
		te.f.Full = 7
		te.f.Refuse = func(string) string { asked++; return "" }
	})
	want := te.rounds(200)
	te.f.Set(func() { te.f.Away = false })
	gaps := te.end()
	te.want(want[:7])
	if diff := cmp.Diff([]string{"193 turns that the daemon did not take: a run has 2000 at most"}, gaps); diff != "" || asked > 500 {
		t.Errorf("%d turns were sent\n%s", asked, diff)
	}
}

// TestASecretThatIsKnownLate: what was told before is said, and what is told after is told without it.
func TestASecretThatIsKnownLate(t *testing.T) {
	const secret = "lt4Xw2Lk9Vb4Nm6Tr8Yp"
	te := newTelling(t, time.Minute)
	te.call(derivetest.Asks("s", derivetest.ReadTool, derivetest.User("one")), both("t1", "t2"))
	te.call(derivetest.Asks("s", derivetest.ReadTool, derivetest.User("one"), derivetest.Uses("t1"), derivetest.Gives("t1", "it is "+secret)), derivetest.Calls("t3"))
	te.f.Wait(t, 1)
	te.scrub.AddSecret("token", secret)
	te.call(derivetest.Asks("s", derivetest.ReadTool, derivetest.User("one"), derivetest.Uses("t1"), derivetest.Gives("t1", "it is "+secret), derivetest.Uses("t3"), derivetest.Gives("t3", "once more "+secret)), derivetest.Says("Done."))
	gaps := te.end()
	if len(gaps) != 1 || !strings.HasPrefix(gaps[0], "1 turn that the daemon has otherwise than the tape") {
		t.Errorf("%q", gaps)
	}
	turns := te.f.Runs()[0].Texts()
	if len(turns) != 3 || !strings.Contains(turns[0], secret) || strings.Contains(turns[1], secret) || !strings.Contains(turns[1], "once more td_") {
		t.Errorf("%q", turns)
	}
}

// TestAConversationThatOnlySeemedToGoOn: while another began it looked like the main one's next; once that goes on, what is left of
// it is told all the same.
func TestAConversationThatOnlySeemedToGoOn(t *testing.T) {
	te := newTelling(t, time.Minute)
	te.callIn("llm:title", derivetest.Asks("", "", derivetest.User("title")), derivetest.Says("A title."))
	te.callIn("llm:a", derivetest.Asks("s", derivetest.ReadTool, derivetest.User("one")), derivetest.Says("First."))
	te.callIn("llm:b", derivetest.Asks("s", derivetest.ReadTool, derivetest.User("other")), derivetest.Calls("b1"))
	te.callIn("llm:b", derivetest.Asks("s", derivetest.ReadTool, derivetest.User("other"), derivetest.Uses("b1"), derivetest.Gives("b1", "b")), derivetest.Calls("b2"))
	te.f.Wait(t, 1)
	te.callIn("llm:a", derivetest.Asks("s", derivetest.ReadTool, derivetest.User("one"), derivetest.Model("First."), derivetest.User("two")), derivetest.Calls("a1"))
	te.callIn("llm:a", derivetest.Asks("s", derivetest.ReadTool, derivetest.User("one"), derivetest.Model("First."), derivetest.User("two"), derivetest.Uses("a1"), derivetest.Gives("a1", "a")), derivetest.Says("Second."))
	te.f.Wait(t, 1)
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
		if got := daemon.AgentName(tt.path, strings.Fields(tt.argv)); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.argv, got, tt.want)
		}
	}
}

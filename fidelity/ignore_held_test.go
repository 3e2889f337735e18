package fidelity

import (
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// TestHeld: a recorded write of what stood there before the replay and stands there after it does not gate. One that the
// replay changed does.
func TestHeld(t *testing.T) {
	recorded := []tape.Kind{wrote("a.txt", "x"), wrote("b.txt", "y"), program("done", 0)}
	held := func(paths string) *LaneOptions {
		return &LaneOptions{Held: func(r *tape.Record) bool { return strings.Contains(paths, tape.FileOf(r.Kind).Path) }}
	}
	for _, mode := range []Mode{Semantic, Outcome} {
		r := compareLanes(t, mode, recorded, []tape.Kind{program("done", 0)}, held("a.txt b.txt"))
		if !r.Faithful() || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "a.txt, b.txt held these very bytes") {
			t.Errorf("%v: %v, notes %q", mode, r, r.Notes)
		}
		if r := compareLanes(t, mode, recorded, []tape.Kind{program("done", 0)}, held("a.txt")); r.Total() != 1 {
			t.Errorf("%v, not held: %+v", mode, r.Divergences)
		}
		changed := []tape.Kind{wrote("b.txt", "z"), program("done", 0)}
		if r := compareLanes(t, mode, recorded, changed, held("a.txt b.txt")); r.Total() != 1 {
			t.Errorf("%v, changed: %+v", mode, r.Divergences)
		}
	}
}

// TestOtherInputs: what the runs were given in different forms is named where nothing nearer shows.
func TestOtherInputs(t *testing.T) {
	file := func(name, was, now string) Input {
		return Input{Name: "the file " + name + ", in which they differ", Short: "the file " + name, Bytes: func(s Side) ([]byte, error) {
			return []byte([]string{was, now}[s]), nil
		}}
	}
	a, b := []tape.Kind{program("river", 0)}, []tape.Kind{program("mountain", 0)}
	o := &LaneOptions{Inputs: []Input{file("a", "1", "2"), file("b", "1", "2"), file("c", "1", "2"), file("d", "1", "2")}}
	want := "nothing before it differs but what the runs were given: the file a, the file b, the file c and 1 more"
	if r := compareLanes(t, Semantic, a, b, o); r.Divergences[0].Follows != want {
		t.Errorf("%q", r.Divergences[0].Follows)
	}
	o.Inputs[3] = file("d", "a river", "a mountain")
	want = `follows from the file d, in which they differ, where "mountain" first appears`
	if r := compareLanes(t, Semantic, a, b, o); r.Divergences[0].Follows != want {
		t.Errorf("%q", r.Divergences[0].Follows)
	}
}

package fidelity_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// showing is what a terminal of four rows showed before "x" was typed, and at the end.
func showing(before, end []string) *fidelity.Showing {
	screen := func(rows []string) fidelity.Screen {
		return fidelity.Screen{Rows: append(slices.Clone(rows), make([]string, 4-len(rows))...), Cols: 40, Cursor: fidelity.ScreenCursor{Visible: true}}
	}
	return &fidelity.Showing{Moments: []fidelity.Moment{
		{Screen: screen(before), TMS: 1200, G: 2, Before: "x"}, {Screen: screen(end), TMS: 2000, Typed: 1, End: true},
	}}
}

// onScreens compares two runs whose programs printed other bytes.
func onScreens(t *testing.T, was, now *fidelity.Showing, s *fidelity.Screens) *fidelity.Report {
	t.Helper()
	shown := []*fidelity.Showing{was, now}
	run := func(out string) fidelity.Records {
		sp := &tape.ProcessSpawn{Program: "/bin/editor", StdoutDigest: cas.Sum([]byte(out)), Stdout: &tape.Payload{Hash: cas.Sum([]byte(out)), Len: int64(len(out))}}
		return func(yield func(*tape.Record, error) bool) { yield(&tape.Record{G: 9, Kind: sp}, nil) }
	}
	s.Stream = 1
	if s.Load == nil {
		s.Load = func(side fidelity.Side) (*fidelity.Showing, error) { return shown[side], nil }
	}
	r, err := fidelity.CompareLanes(fidelity.Semantic, run("a"), run("b"), &fidelity.LaneOptions{Screens: s})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func codes(r *fidelity.Report) (out []fidelity.Category) {
	for _, d := range r.Divergences {
		out = append(out, d.Category)
	}
	return out
}

func TestScreensGateInPlaceOfBytes(t *testing.T) {
	same := showing([]string{"one"}, []string{"two"})
	if r := onScreens(t, same, same, &fidelity.Screens{Gate: true}); !r.Faithful() {
		t.Errorf("the same screens differ: %v", codes(r))
	}
	r := onScreens(t, same, same, &fidelity.Screens{})
	if len(r.Divergences) != 1 || !strings.Contains(r.Divergences[0].Hint, "--tty") {
		t.Errorf("bytes that differ, screens that do not: %+v", r.Divergences)
	}
	other := showing([]string{"one"}, []string{"three"})
	if r := onScreens(t, same, other, &fidelity.Screens{}); len(r.Divergences) != 1 || r.Divergences[0].Hint != "" {
		t.Errorf("bytes and screens that differ: %+v", r.Divergences)
	}
}

// TestScreensThatCannotBeRead: where screens gate and one side's cannot be looked at, the verdict says so and is not green.
func TestScreensThatCannotBeRead(t *testing.T) {
	load := func(fidelity.Side) (*fidelity.Showing, error) { return nil, errors.New("frames.jsonl is torn") }
	r := onScreens(t, nil, nil, &fidelity.Screens{Gate: true, Load: load})
	if r.Faithful() || len(r.NotCompared) != 1 || !strings.Contains(r.NotCompared[0], "frames.jsonl is torn") {
		t.Errorf("not compared: %q", r.NotCompared)
	}
}

func TestScreensThatDiffer(t *testing.T) {
	was := showing([]string{"editor", "line one"}, []string{"editor", "line one"})
	now := showing([]string{"editor", "line two"}, []string{"editor", "line two"})
	now.Moments[1].Cursor.Col = 3
	now.Moments[1].Alt = true
	r := onScreens(t, was, now, &fidelity.Screens{Gate: true})
	want := []fidelity.Category{fidelity.ScreenRows, fidelity.ScreenAlternate, fidelity.ScreenCursorAt}
	if !slices.Equal(codes(r), want) { // the row is told once
		t.Fatalf("%v, want %v", codes(r), want)
	}
	var text bytes.Buffer
	if err := r.WriteText(&text, &fidelity.TextOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`before "x" was typed (at 1.200 s)`, "row 2", "- line one", "+ line two", "       ^^^"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is not in:\n%s", want, &text)
		}
	}
	if got := r.String(); !strings.HasSuffix(got, ", 2 screens compared)") {
		t.Errorf("%s: does not say how many screens were compared", got)
	}
	if b, err := json.Marshal(r); err != nil || !bytes.Contains(b, []byte(`"lane":"terminal"`)) || !bytes.Contains(b, []byte(`"screens":2`)) {
		t.Errorf("%s, %v", b, err)
	}
}

// TestWhatMovesIsCounted compares rows of which something moves by itself, on either side.
func TestWhatMovesIsCounted(t *testing.T) {
	digits := regexp.MustCompile(`[0-9]+`)
	for _, test := range []struct {
		was, now string
		moving   []fidelity.Moving
		same     bool
	}{
		{"⠋ Working (esc)", "⠙ Working (esc)", []fidelity.Moving{{Head: 0, Tail: 14}}, true},
		{"⠋ Working (esc)", "⠙ Waiting (esc)", []fidelity.Moving{{Head: 0, Tail: 14}}, false},
		{"⠋ Working (esc)", "⠙ Working (esc)", nil, false},
		{"⠋", "", []fidelity.Moving{{Head: 0, Tail: 14}}, false},
		{"took 3 of 7", "took 12 of 7", nil, true},
	} {
		was, now := showing([]string{test.was}, nil), showing([]string{test.now}, nil)
		now.Moments[0].Moving = test.moving
		r := onScreens(t, was, now, &fidelity.Screens{Gate: true, Mask: func(s string) string { return digits.ReplaceAllString(s, "N") }})
		if r.Faithful() != test.same {
			t.Errorf("%q and %q moving %v: %v", test.was, test.now, test.moving, codes(r))
		}
		if counted := r.Masked[fidelity.AnimationMask] == 1 && len(r.Notes) > 0; counted != (test.same && test.moving != nil) {
			t.Errorf("%q and %q: masked %v, notes %q", test.was, test.now, r.Masked, r.Notes)
		}
	}
}

func TestWhatLeftTheScreen(t *testing.T) {
	was, now := showing(nil, nil), showing(nil, nil)
	was.History, now.History = []string{"a", "b", "c"}, []string{"a", "B", "c"}
	r := onScreens(t, was, now, &fidelity.Screens{Gate: true})
	if !slices.Equal(codes(r), []fidelity.Category{fidelity.ScreenHistory}) || len(r.Divergences[0].Changes) != 1 || r.Divergences[0].Changes[0].Was != "b" {
		t.Errorf("%+v", r.Divergences)
	}
	was.Lost, was.History, now.History = 1, []string{"b", "c"}, []string{"a", "b", "c"}
	if r := onScreens(t, was, now, &fidelity.Screens{Gate: true}); !r.Faithful() {
		t.Errorf("the newest rows are the same: %v", codes(r))
	}
}

// TestUnsettledScreensDoNotCompare leaves out a screen that the program was still drawing, and says so; keys that never came
// are a divergence.
func TestUnsettledScreensDoNotCompare(t *testing.T) {
	was, now := showing([]string{"half"}, nil), showing([]string{"whole"}, nil)
	was.Moments[0].Drawing = true
	r := onScreens(t, was, now, &fidelity.Screens{Gate: true})
	if !r.Faithful() || len(r.Notes) != 1 {
		t.Errorf("%v, %q", codes(r), r.Notes)
	}
	now.Moments[1].Typed = 0
	r = onScreens(t, was, now, &fidelity.Screens{Gate: true})
	if !slices.Equal(codes(r), []fidelity.Category{fidelity.ScreenInput}) {
		t.Errorf("%v", codes(r))
	}
}

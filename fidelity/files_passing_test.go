package fidelity

import (
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// over is a write over what before stood there.
func over(path, before, content string) *tape.FileWrite {
	w := wrote(path, content)
	w.Before = inline(before)
	return w
}

func removed(path, before string) *tape.FileDelete {
	return &tape.FileDelete{File: tape.File{Path: path, Before: inline(before)}}
}

// TestStatesOnTheWay: what one run alone shows between two looks is a note as long as the end is the same.
func TestStatesOnTheWay(t *testing.T) {
	ask := func(n uint64) tape.Kind { return call("llm:a", n, "1", "x") }
	for name, tt := range map[string]struct {
		a, b []tape.Kind
		want int // divergences
	}{
		"a step that one side alone shows": {
			a: []tape.Kind{wrote("f", "1"), ask(1), over("f", "1", "2")}, b: []tape.Kind{ask(1), wrote("f", "2")},
		},
		"a file that one side alone shows before it goes": {
			a: []tape.Kind{ask(1)}, b: []tape.Kind{wrote("f", "1"), ask(1), removed("f", "1")},
		},
		"another step": {
			a:    []tape.Kind{wrote("f", "1"), ask(1), over("f", "1", "2")},
			b:    []tape.Kind{wrote("f", "other"), ask(1), over("f", "other", "2")},
			want: 1,
		},
		"another end": {
			a: []tape.Kind{wrote("f", "1"), ask(1), over("f", "1", "2")}, b: []tape.Kind{wrote("f", "1"), ask(1)}, want: 1,
		},
		"a file that stays on one side": {
			a: []tape.Kind{wrote("f", "1"), ask(1), removed("f", "1")}, b: []tape.Kind{wrote("f", "1"), ask(1)}, want: 1,
		},
		"a file that was there and goes on one side alone": {
			a: []tape.Kind{over("f", "0", "1"), ask(1), removed("f", "1")}, b: []tape.Kind{ask(1)}, want: 2,
		},
		"an empty directory that was there and goes on one side alone": {
			a: []tape.Kind{ask(1), &tape.FileDelete{File: tape.File{Path: "d", Mode: "040755"}}}, b: []tape.Kind{ask(1)}, want: 1,
		},
	} {
		for _, mode := range []Mode{Semantic, ByteIdentical} {
			r := compareLanes(t, mode, tt.a, tt.b, nil)
			if got := r.Total(); got < tt.want || tt.want == 0 && got > 0 {
				t.Errorf("%s, %s: %d divergences, want %d: %v", name, mode, got, tt.want, r.Divergences)
			}
			noted := strings.Contains(strings.Join(r.Notes, "\n"), "on the way")
			if noted != (tt.want == 0) {
				t.Errorf("%s, %s: notes %q", name, mode, r.Notes)
			}
		}
		if r := compareLanes(t, Outcome, tt.a, tt.b, nil); r.Faithful() != (tt.want == 0 || name == "another step") {
			t.Errorf("%s, outcome: %v", name, r.Divergences)
		}
	}
}

func TestIgnoredFilesAreANote(t *testing.T) {
	marked := func(content string) *tape.FileWrite {
		w := wrote("build/out", content)
		w.Extra = []tape.Field{{Name: "ignored", Value: []byte("true")}}
		return w
	}
	r := compareLanes(t, Semantic, []tape.Kind{marked("1")}, []tape.Kind{marked("2")}, nil)
	if !r.Faithful() || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "build/out") {
		t.Errorf("%v, notes %q", r.Divergences, r.Notes)
	}
	o := &LaneOptions{Watch: []string{"build"}}
	if r := compareLanes(t, Semantic, []tape.Kind{marked("1")}, []tape.Kind{marked("2")}, o); r.Total() != 1 {
		t.Errorf("watched: %v", r.Divergences)
	}
}

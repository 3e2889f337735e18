package fidelity

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/fidelity/internal/columns"
	"github.com/tapedeck-dev/tapedeck/scrub/masks"
	"github.com/tapedeck-dev/tapedeck/tape"
)

func textOf(t *testing.T, r *Report, o *TextOptions) string {
	t.Helper()
	var b bytes.Buffer
	if err := r.WriteText(&b, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Two values are shown where they differ, however narrow the lines are.
func TestValuesAreShownWhereTheyDiffer(t *testing.T) {
	where := "https://api.example.com/v1/a/rather/long/path/to/see/" // up to where they differ
	long := strings.Repeat("x", 90)
	ask := func(url, date string) []tape.Kind {
		x := get(url, 1, 200)
		x.Response = inline("same")
		x.ResponseHeaders = []tape.HeaderField{{Name: "Date", Value: date}}
		return []tape.Kind{&tape.EnvRead{VarName: "A" + url[len(url)-3:]}, x}
	}
	a, b := ask(where+"one?"+long, "Sun, 22 Nov 2026 01:00:00 GMT"), ask(where+"two?"+long, "Sun, 22 Nov 2026 02:00:00 GMT")
	r := mustCompare(t, ByteIdentical, tapeOf(a...), tapeOf(b...))
	for _, beside := range []bool{false, true} {
		got := textOf(t, r, &TextOptions{Width: map[bool]int{false: 60, true: 120}[beside], SideBySide: beside})
		for _, want := range []string{"one", "two", "01:00:00", "02:00:00"} {
			if !strings.Contains(got, want) {
				t.Errorf("beside %v: no %q in\n%s", beside, want, got)
			}
		}
	}
}

// Whole calls are shown before mere fields, and all of it where all is asked for.
func TestTheImportantRecordIsNotLeftOut(t *testing.T) {
	var a, b []tape.Kind
	for i := range 8 {
		a = append(a, &tape.ClockRead{Source: fmt.Sprint("s", i), ValueMS: 1})
		b = append(b, &tape.ClockRead{Source: fmt.Sprint("s", i), ValueMS: 2})
	}
	r := mustCompare(t, Semantic, tapeOf(a...), tapeOf(append(b, get("http://h.test/extra", 1, 200))...))
	got := textOf(t, r, &TextOptions{More: "--all"})
	if !strings.Contains(got, "http://h.test/extra") || !strings.Contains(got, "and 4 more") || !strings.Contains(got, "--all") {
		t.Error(got)
	}
	all := textOf(t, r, &TextOptions{All: true, More: "--all", Width: 20})
	if n := strings.Count(all, "the clock's value changed"); n != 8 || strings.Contains(all, "--all") || strings.Contains(all, "…") {
		t.Errorf("%d of 8:\n%s", n, all)
	}
}

// A drift of times is no cause: the first divergence that is none leads, and drifts are one line.
func TestDriftsDoNotLead(t *testing.T) {
	recs := func(at int64, name string) Records {
		rs := recordsOf(&tape.EnvRead{VarName: "A"}, &tape.EnvRead{VarName: "B"}, &tape.EnvRead{VarName: name})
		for _, r := range rs {
			r.VirtualTimeMS, r.MonotonicMS = at, at
		}
		return yieldAll(rs, nil)
	}
	for _, mode := range []Mode{ByteIdentical, PhaseAware} {
		r := mustCompare(t, mode, recs(1, "C"), recs(2, "D"))
		got := textOf(t, r, nil)
		if !strings.Contains(got, "first divergence: another variable was read") || !strings.Contains(got, "monotonic_drift 3, virtual_time_drift 3") {
			t.Errorf("%v:\n%s", mode, got)
		}
		lanes, err := CompareLanes(mode, recs(1, "C"), recs(2, "C"), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := textOf(t, lanes, nil); lanes.Total() != 6 || strings.Contains(got, "cause") {
			t.Errorf("%v: a drift is named as a cause:\n%s", mode, got)
		}
	}
}

// What is in no input, of a program with another command line, is not called without a cause.
func TestAnotherCommandLineIsNamed(t *testing.T) {
	ask := func(temperature string) tape.Kind {
		return call("llm:a", 1, `{"model":"m","temperature":`+temperature+`,"messages":[]}`, "x")
	}
	env := program("done\n", 0, "TEMP=0.9", "python3", "a.py")
	env.Program = "/usr/bin/env"
	r := compareLanes(t, Semantic, []tape.Kind{ask("0.1"), program("done\n", 0, "a.py")}, []tape.Kind{ask("0.9"), env},
		&LaneOptions{Masks: digitMasks, ProgramReplaced: true})
	if got := r.Divergences[0].Follows; !strings.Contains(got, "another command line (env TEMP=0.9 python3 a.py") {
		t.Errorf("%q", got)
	}
	if got := textOf(t, r, nil); strings.Contains(got, "nothing before it differs") {
		t.Error(got)
	}
}

// TestTheMostAlikeIsNearest: of calls that differ from a refused one in equally many places, it is held against the one that it has most in
// common with.
func TestTheMostAlikeIsNearest(t *testing.T) {
	recorded := []tape.Kind{
		call("llm:a", 1, `{"q":"topic 1"}`, "x"), call("llm:b", 2, `{"q":"topic 2"}`, "y"), call("llm:c", 3, `{"q":"join x, y"}`, "z"), program("z\n", 0),
	}
	r := compareLanes(t, Semantic, recorded, []tape.Kind{call("llm:a", 1, `{"q":"topic 1"}`, "x"), refused(2, `{"q":"join x"}`, "none"), program("", 1)}, nil)
	refused := slices.IndexFunc(r.Divergences, func(d Divergence) bool { return d.Category == MissingInRecorded })
	if near := r.Divergences[refused].Nearest; near == nil || *near != 2 {
		t.Errorf("nearest to the refused request: %v", near)
	}
}

// What comes after a refused request follows from it, whatever words it shares with an input or with a file.
func TestARefusedRequestIsTheCause(t *testing.T) {
	recorded := []tape.Kind{call("llm:a", 1, `{"q":"say hello"}`, "x"), wrote("log.txt", "fine\n"), program("fine\n", 0, "say hello")}
	prog := program("error: there is no recorded answer\n", 1, "hello there")
	replay := []tape.Kind{
		refused(1, `{"q":"hello there"}`, "none"), refused(2, `{"q":"hello there"}`, "none"),
		wrote("log.txt", "error: there is no recorded answer\n"), prog,
	}
	r := compareLanes(t, Semantic, recorded, replay, nil)
	seen := 0
	for _, d := range r.Divergences {
		switch d.Category {
		case ProcessStdoutHash, FileWriteHash, "process_exit_code":
			if seen++; !strings.Contains(d.Follows, "the refused request") {
				t.Errorf("%s follows from %q", d.Category, d.Follows)
			}
		case MissingInRecorded:
			if *d.Seq == 1 && !strings.Contains(d.Follows, "asks again") {
				t.Errorf("the second try: %q", d.Follows)
			}
		}
	}
	if seen != 3 {
		t.Errorf("%d of 3 divergences: %v", seen, codes(r))
	}
	folded, all := textOf(t, r, nil), textOf(t, r, &TextOptions{All: true})
	if n, m := strings.Count(folded, "\n"), strings.Count(all, "\n"); n > 17 || m < n+8 {
		t.Errorf("%d lines folded, %d in all:\n%s\n%s", n, m, folded, all)
	}
	if want := "a call that was not made, which ends in"; strings.Contains(folded, want) {
		t.Error(folded)
	}
}

func TestCommonWordsAreNotTraced(t *testing.T) {
	args := func(s string) []tape.Kind { return []tape.Kind{wrote("a.txt", "x\n"), program("", 0, s)} }
	said := func(s string, ks []tape.Kind) []tape.Kind {
		return append([]tape.Kind{get("http://h.test/", 1, 200), &tape.FileRead{File: wrote("b.txt", s).File}}, ks...)
	}
	for text, traced := range map[string]bool{
		"so there we are": false, "there": false, "kept in /srv/there for us": false, "with v2.1 of it": true, "tangerines": true,
	} {
		r := compareLanes(t, Semantic, said("", args("x")), said(text, args("look there v2.1 tangerines")), nil)
		if got := r.Divergences[0]; got.Category != "file_read_hash" || strings.Contains(got.Follows, "arguments") != traced {
			t.Errorf("%q: %s follows from %q", text, got.Category, got.Follows)
		}
	}
}

// What a program says does not follow from a file, which is looked at when it has ended.
func TestOutputDoesNotFollowFromAFile(t *testing.T) {
	run := func(s string) []tape.Kind { return []tape.Kind{wrote("a.txt", s), program(s, 0)} }
	r := compareLanes(t, Semantic, run("all is well\n"), run("an orange sky-blue parrot\n"), nil)
	for _, d := range r.Divergences {
		if d.Follows != "" {
			t.Errorf("%s follows from %q", d.Category, d.Follows)
		}
	}
	if r.Total() != 2 {
		t.Errorf("%v", codes(r))
	}
}

// The caller names both sides.
func TestSidesAreNamed(t *testing.T) {
	names := [2]string{"A", "B"}
	a := []tape.Kind{call("llm:a", 1, `{"messages":[{"role":"user","content":"one"}]}`, "x"), wrote("~/log", "1"), program("a\n", 0)}
	b := []tape.Kind{wrote("~/log", "2"), program("b\n", 1)}
	r := compareLanes(t, Semantic, a, b, &LaneOptions{Masks: digitMasks, Sides: names})
	plain := strings.NewReplacer("missing_in_replay", "", "missing_in_recorded", "").Replace // the codes stay
	got := plain(textOf(t, r, &TextOptions{SideBySide: true}))
	if strings.Contains(got, "replay") || !strings.Contains(got, "in A and not in B") || !strings.Contains(got, "A 0, B 1") {
		t.Error(got)
	}
	if !strings.Contains(got, "a call that was not made, which ends in messages[0] (user)") {
		t.Error(got)
	}
	for _, mode := range allModes {
		for _, aligned := range []bool{false, true} {
			r, err := CompareTapes(mode, tapeOf(a...), tapeOf(b...), &TapeOptions{Aligned: aligned, Sides: names})
			if err != nil {
				t.Fatal(err)
			}
			if got := plain(textOf(t, r, nil)); strings.Contains(got, "replay") || strings.Contains(got, "recorded") {
				t.Errorf("%v, aligned %v:\n%s", mode, aligned, got)
			}
		}
	}
}

// An escape is coloured and wrapped in one piece.
func TestEscapesStayWhole(t *testing.T) {
	for _, tt := range []struct{ was, now, whole, split string }{
		{`"milk\neggs"`, `"milk\nhams"`, reverse + "eggs" + reset, reverse + "neggs"},
		{`"a\u202eb"`, `"a\u202ec"`, reverse + "b" + reset, "u202eb"},
		{`x \x1b[2J`, `x \x07[2J`, reverse + `\x1b` + reset, reverse + "x1b"},
	} {
		r := newReport(Semantic)
		d := Divergence{Category: LLMRequestDigest, Message: "m"}
		d.show([]Change{ch("x", Changed, tt.was, tt.now)})
		r.add(d)
		got := textOf(t, r, &TextOptions{Color: true})
		if !strings.Contains(got, tt.whole) || strings.Contains(got, tt.split) {
			t.Errorf("%s: %q", tt.was, got)
		}
	}
	for width := 2; width < 20; width++ {
		lines := columns.Wrap([]columns.Segment{{Text: `"ab cdefgh ijkl\nmn"`}}, width)
		for _, l := range lines {
			if width >= 4 && (strings.HasSuffix(l.Text(), `\`) || columns.Width(l.Text()) > width) {
				t.Errorf("width %d: %q", width, l.Text())
			}
		}
	}
}

// TestNeighboursShareTheirColour: an added text of many words is one run of colour in each line, not one a word.
func TestNeighboursShareTheirColour(t *testing.T) {
	a, b := []tape.Kind{program("done", 0)}, []tape.Kind{program("done", 0), wrote("a.txt", "some words, and a few more of them")}
	r := compareLanes(t, Semantic, a, b, nil)
	got := textOf(t, r, &TextOptions{Color: true, SideBySide: true, Width: 120})
	want := bold + green + `"some words, and a few more of them"` + reset
	if !strings.Contains(got, want) {
		t.Errorf("want %q in\n%q", want, got)
	}
}

// TestATimeInAnotherForm: times of both runs may be taken by either of two that read the clock side by side; one that is written otherwise, or
// is an hour or a day from what was read, is the program's change.
func TestATimeInAnotherForm(t *testing.T) {
	m := masks.New(nil)
	for now, faithful := range map[string]bool{"2026-11-30T13:18:18Z": true, "2026-11-30T13:18:17+00:00": false, "2026-11-30T14:18:18Z": false, "2026-12-01T13:18:17Z": false} {
		o := &LaneOptions{Exact: true, Masks: [2]*masks.Masker{m, m}, Payload: payloadBytes}
		for _, s := range []string{"2026-11-30T13:18:17Z", "2026-11-30T13:18:18Z"} {
			at, err := time.Parse(time.RFC3339, s)
			if err != nil {
				t.Fatal(err)
			}
			for side := range o.Times {
				o.Times[side] = append(o.Times[side], at.UnixNano())
			}
		}
		a, b := []tape.Kind{wrote("log", "at 2026-11-30T13:18:17Z\n")}, []tape.Kind{wrote("log", "at "+now+"\n")}
		if r := compareLanes(t, Semantic, a, b, o); r.Faithful() != faithful {
			t.Errorf("%s: %v", now, codes(r))
		}
	}
}

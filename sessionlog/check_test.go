package sessionlog

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestCategoryCheck(t *testing.T) {
	for text, want := range map[string]string{
		"": "",
		`{"kind":"run_started"}` + "\n" + `{"kind":"memory_written"}` + "\n" + `{"kind":"large_result_spooled"}`:                         "",
		`{"kind":"page_in","category":"mm"}` + "\n" + `{"seq":0,"record_type":"page_in"}`:                                                "",
		`{"kind":"page_in","category":"mm"}` + "\n\n" + `{"seq":7,"event":{"kind":"tool_gated","turn":1}}` + "\n" + `{"kind":"page_in"}`: "line 3: tool_gated carries none as its category, want \"syscall\"",
		`{"kind":"page_in","category":null}`:      "line 1: page_in carries none as its category, want \"mm\"",
		`{"kind":"page_in","category":"sched"}`:   `line 1: page_in carries "sched" as its category, want "mm"`,
		`{"kind":"budget_new","category":1}`:      `line 1: budget_new carries "1" as its category, want "sched"`,
		`{"kind":"page_in","category":"m\u006d"}`: "",
	} {
		c, err := CheckCategories(NewReader(strings.NewReader(text), "a.jsonl", nil))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if c.First != nil {
			got = c.First.String()
		}
		if got != want || c.Passed != (want == "") || (c.Offenders == 0) != c.Passed {
			t.Errorf("%s: %+v, %s", text, c, got)
		}
	}
}

func TestCategoriesOfTheSamples(t *testing.T) {
	needSamples(t)
	for name, want := range map[string]int{"events_ask_user.json": 2, "events_ask_user.older.json": 0} {
		f, err := Open(filepath.Join(samples, name), nil)
		if err != nil {
			t.Fatal(err)
		}
		c, err := CheckCategories(f.Reader)
		if err != nil || c.Kernel != 3 || c.Offenders != 3 && want > 0 || c.Passed != (want == 0) || want > 0 && c.First.Line != want {
			t.Errorf("%s: %+v %v, %v", name, c, c.First, err)
		}
		f.Close()
	}
}

func TestFilter(t *testing.T) {
	turns := func(s string) Turns {
		r, err := ParseTurns(s)
		if err != nil {
			t.Fatalf("%s: %v", s, err)
		}
		return r
	}
	all := []string{"run_started -", "tool_gated 1", "page_in 2", "signal_disposed 3", "tea_break 4", "memory_written 5"}
	for _, c := range []struct {
		f    Filter
		want string
	}{
		{Filter{}, "run_started tool_gated page_in signal_disposed tea_break memory_written"},
		{Filter{Category: CategoryMM}, "page_in memory_written"},
		{Filter{Primitive: PrimitiveSched}, "run_started signal_disposed tea_break"},
		{Filter{Kernel: true}, "tool_gated page_in signal_disposed memory_written"},
		{Filter{Kind: "tea_break"}, "tea_break"},
		{Filter{Turns: turns("3")}, "signal_disposed"},
		{Filter{Turns: turns("2..3")}, "page_in signal_disposed"},
		{Filter{Turns: turns("4..")}, "tea_break memory_written"},
		{Filter{Turns: turns("..2")}, "tool_gated page_in"},
		{Filter{Turns: turns("..2"), Category: CategoryMM}, "page_in"},
	} {
		var got []string
		for _, one := range all {
			kind, turn, _ := strings.Cut(one, " ")
			n := int(turn[0] - '0')
			if c.f.Matches(Kind(kind), n, turn != "-") {
				got = append(got, kind)
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%+v wants %v, want %s", c.f, got, c.want)
		}
	}
	for _, bad := range []string{"", "x", "..", "3..2", "-1", "1..x", "..0", "0", "1.5"} {
		if r, err := ParseTurns(bad); err == nil {
			t.Errorf("%q is %+v", bad, r)
		}
	}
	for _, name := range []string{"mm", "proc", "x", ""} {
		_, err := ParseCategory(name)
		_, primitive := ParsePrimitive(name)
		if (err == nil) != (name == "mm" || name == "proc") || (primitive == nil) != (name == "mm") {
			t.Errorf("%q: %v, %v", name, err, primitive)
		}
	}
}

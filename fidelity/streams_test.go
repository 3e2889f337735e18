package fidelity

import (
	"slices"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/scrub/masks"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// TestHeardStreams compares what processes that the program started were given and wrote.
func TestHeardStreams(t *testing.T) {
	job := func(in, out string, more func(*tape.ProcessSpawn)) *tape.ProcessSpawn {
		p := &tape.ProcessSpawn{
			Program: "/bin/job", SpawnID: 2, ParentSpawnID: 1, Stdin: inline(in), Stdout: inline(out), Stderr: inline(""),
		}
		if more != nil {
			more(p)
		}
		return p
	}
	flag := func(names ...string) func(*tape.ProcessSpawn) {
		return func(p *tape.ProcessSpawn) {
			flags := make(map[string]bool)
			for _, n := range names {
				flags[n] = true
			}
			p.Extra = tape.FlagFields(flags)
		}
	}
	unheard := func(p *tape.ProcessSpawn) { p.Stdin = nil }
	unasked := flag(tape.OwnTicksKey, "stdout_cut")
	killed := func(p *tape.ProcessSpawn) { unasked(p); p.Signal = "SIGKILL" }
	child := &tape.ProcessSpawn{Program: "/bin/step", SpawnID: 3, ParentSpawnID: 2, Stdout: inline(""), Stderr: inline("")}
	m := masks.New(nil)
	long := strings.Repeat("x", 2*secretEdge)
	for name, tt := range map[string]struct {
		was, now []tape.Kind
		want     Category // "" for none
		noted    bool
	}{
		"the same":                    {[]tape.Kind{job("a", "b", nil)}, []tape.Kind{job("a", "b", nil)}, "", false},
		"another input":               {[]tape.Kind{job("a", "b", nil)}, []tape.Kind{job("A", "b", nil)}, ProcessStdinHash, false},
		"more input":                  {[]tape.Kind{job("a", "", nil)}, []tape.Kind{job("aa", "", nil)}, ProcessStdinHash, false},
		"input that was not read":     {[]tape.Kind{job("aa", "", nil)}, []tape.Kind{job("a", "", flag("stdin_cut"))}, "", false},
		"nothing of it":               {[]tape.Kind{job("aa", "", nil)}, []tape.Kind{job("", "", flag("stdin_cut"))}, "", false},
		"another, not read":           {[]tape.Kind{job("ab", "", flag("stdin_cut"))}, []tape.Kind{job("A", "", flag("stdin_cut"))}, ProcessStdinHash, false},
		"a date that a mask takes":    {[]tape.Kind{job("due 2026-03-19", "", nil)}, []tape.Kind{job("due 2026-03-20", "", nil)}, MaskedValue, false},
		"a date of the part":          {[]tape.Kind{job("due 2026-03-19.", "", flag("stdin_cut"))}, []tape.Kind{job("due 2026-03-20.", "", flag("stdin_cut"))}, MaskedValue, false},
		"a secret across the cut":     {[]tape.Kind{job(long+"<secr", "", flag("stdin_cut"))}, []tape.Kind{job(long+"sk-12", "", nil)}, "", false},
		"another output":              {[]tape.Kind{job("", "b", nil)}, []tape.Kind{job("", "B", nil)}, ProcessStdoutHash, false},
		"of a runtime":                {[]tape.Kind{job("", "b", nil)}, []tape.Kind{job("", "B", flag(tape.OwnTicksKey))}, "", true},
		"of one that was killed":      {[]tape.Kind{job("", "ab", killed)}, []tape.Kind{job("", "abc", killed)}, "", false},
		"more to one of no timers":    {[]tape.Kind{job("ab", "", flag("stdout_cut"))}, []tape.Kind{job("abc", "", flag("stdout_cut"))}, ProcessStdinHash, false},
		"more to one that was killed": {[]tape.Kind{job("ab", "", killed)}, []tape.Kind{job("abc", "", killed)}, ProcessStdinHash, false},
		"answers to what was unasked": {[]tape.Kind{job("ab", "ping", unasked)}, []tape.Kind{job("abc", "ping", unasked)}, "", true},
		"another answer to that":      {[]tape.Kind{job("ab", "ping", unasked)}, []tape.Kind{job("ax", "ping", unasked)}, ProcessStdinHash, false},
		"more to one read by nobody":  {[]tape.Kind{job("ab", "", unasked)}, []tape.Kind{job("abc", "", unasked)}, ProcessStdinHash, false},
		"lines of one":                {[]tape.Kind{job("", "a\nb\n", nil)}, []tape.Kind{job("", "b\na\n", nil)}, ProcessStdoutHash, false},
		"lines of several":            {[]tape.Kind{child, job("", "a\nb\n", nil)}, []tape.Kind{child, job("", "b\na\n", nil)}, "", true},
		"other lines of several":      {[]tape.Kind{child, job("", "a\nb\n", nil)}, []tape.Kind{child, job("", "b\nc\n", nil)}, ProcessStdoutHash, false},
		"recorded before":             {[]tape.Kind{job("", "", unheard)}, []tape.Kind{job("a", "b", nil)}, "", false},
		"output that went elsewhere":  {[]tape.Kind{job("a", "", flag("stdout_cut"))}, []tape.Kind{job("a", "b", nil)}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			of := func(kinds []tape.Kind) []tape.Kind {
				agent := program("", 0)
				agent.SpawnID = 1
				return append(slices.Clone(kinds), agent)
			}
			r := compareLanes(t, Semantic, of(tt.was), of(tt.now), &LaneOptions{Exact: true, Masks: [2]*masks.Masker{m, m}})
			var got Category
			if len(r.Divergences) > 0 {
				got = r.Divergences[0].Category
			}
			noted := slices.ContainsFunc(r.Notes, func(n string) bool { return strings.Contains(n, "which does not gate") })
			if got != tt.want || len(r.Divergences) > 1 || noted != tt.noted {
				t.Errorf("%+v, notes %q", r.Divergences, r.Notes)
			}
		})
	}
}

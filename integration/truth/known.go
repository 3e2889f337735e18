package main

import (
	"fmt"
	"io"
	"path"
	"strings"
)

// A gap is something that is wrong today and will be right: kinds and places are patterns of path.Match, without slashes.
type gap struct {
	mode        mode
	kind, place string
}

// missing are the changes that are not caught, and those that change nothing and are red.
var missing = []gap{}

// alarming are what differs in every run, by kind and place, where an unchanged replay is red.
var alarming = []gap{}

// expected reports whether o is wrong as it is known to be.
func expected(o *outcome) bool { return gapOf(o) != nil }

func gapOf(o *outcome) *gap {
	if o.Verdict == broken || o.Verdict == unmade {
		return nil
	}
	if o.Change == -1 {
		return alarmOf(o)
	}
	for i := range missing {
		if missing[i].fits(o.Mode, o.Kind, o.Place) {
			return &missing[i]
		}
	}
	return nil
}

// alarmOf is the gap that one of what differs in a program falls into.
func alarmOf(o *outcome) *gap {
	for _, v := range strings.Split(o.Kind, " + ") {
		kind, place, _ := strings.Cut(v, " / ")
		for i := range alarming {
			if alarming[i].fits(o.Mode, kind, place) {
				return &alarming[i]
			}
		}
	}
	return nil
}

func (g *gap) fits(m mode, kind, place string) bool {
	clean := func(s string) string { return strings.ReplaceAll(s, "/", " ") }
	k, _ := path.Match(g.kind, clean(kind))
	p, _ := path.Match(g.place, clean(place))
	return g.mode == m && k && p
}

// check is the status of a run that must hold: 1 on what is wrong and not expected, and on a gap that was tried and is none.
func check(outcomes []*outcome, stderr io.Writer) int {
	status := 0
	tried, wrong := map[*gap]int{}, map[*gap]int{}
	for _, o := range outcomes {
		g := gapOf(o)
		switch {
		case g == nil && o.wrong():
			status = 1
		case g != nil && o.Verdict != unjudged:
			tried[g]++
			if o.wrong() {
				wrong[g]++
			}
		}
	}
	for g, n := range tried {
		if wrong[g] == 0 {
			fmt.Fprintf(stderr, "%s, %s, %s: right in all of %d cases: take it out of known.go\n", g.mode, g.kind, g.place, n)
			status = 1
		}
	}
	return status
}

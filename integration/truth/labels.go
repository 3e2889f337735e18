package main

import (
	"slices"
	"strings"
)

// unwatched is why files do not compare in places where the jail has them compare.
const unwatched = "outside the jail only the work tree is looked at, before and after"

// labelOf is what the documents say of a constant that changes in a place: the one place where that is decided.
//
// In the jail time and randomness are given again, so everything compares exactly. Outside of it masks apply, and a mask
// that hides something says what.
func labelOf(m mode, place string, f form) (want, string) {
	if place == "child's environment" {
		return unseen, "of a child its program, arguments, directory, end and streams are recorded, not its environment"
	}
	if m == proxied {
		switch {
		case outsideTree(place):
			return unseen, unwatched
		case place == "large file":
			return unseen, "outside the jail a file over 64 MiB is listed as not covered"
		case f.noted:
			return noted, ""
		}
	}
	return caught, ""
}

// outsideTree reports whether place is one that is looked at in the jail alone.
func outsideTree(place string) bool {
	for _, where := range []string{"in HOME", "in TMP", "ignored by Git"} {
		if strings.Contains(place, where) {
			return true
		}
	}
	return false
}

// ofFiles is the label of a change of files in a place that is no constant.
func (m mode) ofFiles(place string) want {
	if m == proxied && outsideTree(place) {
		return unseen
	}
	return caught
}

// ofAsking is the label of another order of what models are asked: outside the jail nobody knows who asks.
func (g *generator) ofAsking() want {
	if g.mode == proxied {
		return noted
	}
	return caught
}

// ofStarting is the label of another order of children: timers of Node's own may start them.
func (g *generator) ofStarting() want {
	if g.language == node {
		return noted
	}
	return caught
}

// ofUnchanged is the label of a replay of the program as it was recorded. Outside the jail it may be red where no mask knows what differs.
func (p *program) ofUnchanged() (want, string) {
	for _, v := range p.varies {
		kind, _, _ := strings.Cut(v, " / ")
		unknown := slices.ContainsFunc(sources, func(s source) bool { return s.kind == kind && s.unmasked })
		if p.mode == proxied && unknown {
			return unseen, "outside the jail it is not given again, and no mask knows it"
		}
	}
	return harmless, ""
}

package truth

import (
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
)

// A gap is something that is wrong today and will be right. Kinds and places are patterns of path.Match, without slashes.
type gap struct {
	mode        mode
	kind, place string
	sometimes   bool // it is right in some runs: that it is says nothing
}

// missing are the changes that are not caught, and those that change nothing and are red: places first, whatever changes there, then
// kinds, wherever they are. Expected later, all of them.
var missing = slices.Concat([]gap{
	// Where a replay read times of its own, as Node's and threads of Python do now and then, those do not gate that hold a word which may be
	// made of a time.
	{jailed, "*", "*in HOME", true},
	{jailed, "*", "*in TMP", true},
	{jailed, "order of *", "HTTP", true}, // of Node, where requests that were under way at once came before in one conversation
	{jailed, "order of model calls", "*", true},
	{jailed, "the same command line, given", "*", true},

	{proxied, "mode: group", "file in the work tree", false},
	{proxied, "mode of a found file", "file in the work tree", false},
	{proxied, "empty directory *", "file in the work tree", false},
	{proxied, "FIFO dropped", "file in the work tree", false},
	{proxied, "extended attribute", "file in the work tree", false},
	{proxied, "path before a file name", "file name of multipart", false},
	{proxied, "number of links", "*", true},
	{proxied, "provider's id", "*", true},
	{proxied, "temporary name", "*", true},
}, masked(proxied, "std*"), masked(proxied, "file in the work tree"))

// masked are the kinds of constants that a mask takes for something that differs in every run. Outside the jail that is no gap where a note
// says what it hid.
func masked(m mode, place string) []gap {
	var gaps []gap
	for _, f := range forms {
		if f.noted {
			gaps = append(gaps, gap{m, f.kind, place, f.kind == "temporary name"})
		}
	}
	return gaps
}

// alarming are what differs in every run, by kind and place, where an unchanged replay is red.
var alarming = []gap{
	{jailed, "time of an own file", "*", true},
	{jailed, "time*", "*", true},                // Node reads times beyond the recorded ones now and then
	{jailed, "child: Python", "*", true},        // likewise
	{jailed, "child: date", "*", true},          // likewise
	{jailed, "address of an object", "*", true}, // where threads run beside each other

	{proxied, "time*", "*", true},
	{proxied, "temporary*", "*", true},
	{proxied, "order of finished tools", "*", true},
	{proxied, "UUID*", "*", true},
	{proxied, "duration", "*", true},
}

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

// enough is how many cases of a gap must all be right before it is none: the patterns are wide, and one case may lie beside it.
const enough = 3

// check is the error of what is wrong and not expected, and of a gap that was tried and is none.
func check(outcomes []*outcome, stderr io.Writer) (err error) {
	tried, wrong := map[*gap]int{}, map[*gap]int{}
	for _, o := range outcomes {
		g := gapOf(o)
		switch {
		case g == nil && o.wrong():
			err = errUnknown
		case g != nil && o.Verdict != unjudged:
			tried[g]++
			if o.wrong() {
				wrong[g]++
			}
		}
	}
	for g, n := range tried {
		if n >= enough && wrong[g] == 0 && !g.sometimes {
			fmt.Fprintf(stderr, "%s, %s, %s: right in all of %d cases: take it out of known_test.go\n", g.mode, g.kind, g.place, n)
			err = errUnknown
		}
	}
	return err
}

// errUnknown is the error of outcomes that known_test.go does not expect.
var errUnknown = errors.New("verdicts are otherwise than known_test.go expects")

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

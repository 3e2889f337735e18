package fidelity

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// at gives the record of a file another mode, and further keys.
func at(f *tape.FileWrite, mode string, extra ...tape.Field) *tape.FileWrite {
	f.Mode, f.Extra = mode, extra
	return f
}

// dirMade is the record of a directory.
func dirMade(path string) *tape.FileWrite { return at(wrote(path, ""), "040755") }

var whole = tape.Field{Name: wholeKey, Value: json.RawMessage("true")}

// TestFilesOfExactRuns: where both runs were given the same time and randomness every path gates but Git's own, and so does a state
// that a call ended; one that a question happened to see does not.
func TestFilesOfExactRuns(t *testing.T) {
	ended := []tape.Kind{at(wrote("f", "brief"), "100644", whole), removed("f", "brief")}
	seen := []tape.Kind{wrote("f", "brief"), removed("f", "brief")}
	endedLater := []tape.Kind{wrote("f", "brief"), &tape.FileDelete{File: tape.File{Path: "f", Before: inline("brief"), Extra: []tape.Field{whole}}}}
	for name, test := range map[string]struct {
		a, b []tape.Kind
		want [2]int // divergences, without and with
	}{
		"HOME":                 {[]tape.Kind{wrote("~/a", "1")}, []tape.Kind{wrote("~/a", "2")}, [2]int{0, 1}},
		"TMP":                  {[]tape.Kind{wrote("$TMP/a", "1")}, nil, [2]int{0, 1}},
		"ignored":              {[]tape.Kind{at(wrote("a", "1"), "100644", tape.Field{Name: "ignored", Value: json.RawMessage("true")})}, nil, [2]int{0, 1}},
		"JSON, spaced":         {[]tape.Kind{wrote("a.json", "[ 1 ]")}, []tape.Kind{wrote("a.json", "[  1 ]")}, [2]int{1, 1}},
		"JSON, its keys":       {[]tape.Kind{wrote("a", `{"a":1,"b":2}`)}, []tape.Kind{wrote("a", `{"b":2,"a":1}`)}, [2]int{1, 1}},
		"JSON, a number":       {[]tape.Kind{wrote("a", "1.0\n")}, []tape.Kind{wrote("a", "1.00\n")}, [2]int{1, 1}},
		"Git's own":            {[]tape.Kind{wrote(".git/index", "1")}, []tape.Kind{wrote(".git/index", "2")}, [2]int{0, 0}},
		"ended":                {ended, nil, [2]int{0, 2}},
		"ended on both":        {ended, ended, [2]int{0, 0}},
		"seen on one":          {seen, ended, [2]int{0, 0}},
		"seen by chance":       {seen, nil, [2]int{0, 0}},
		"seen, and ended then": {endedLater, nil, [2]int{0, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			for i, exact := range []bool{false, true} {
				r := compareLanes(t, Semantic, test.a, test.b, &LaneOptions{Exact: exact})
				if len(r.Divergences) != test.want[i] {
					t.Errorf("exact %v: %v, want %d", exact, r.Divergences, test.want[i])
				}
			}
		})
	}
}

// TestFilesWhereTimesAreOwn: of a replay that read times of its own a file outside the work tree gates where no time made it differ.
func TestFilesWhereTimesAreOwn(t *testing.T) {
	for name, test := range map[string]struct {
		a, b []tape.Kind
		want int
	}{
		"text":                 {[]tape.Kind{wrote("~/a", "a word")}, []tape.Kind{wrote("~/a", "another")}, 1},
		"mode":                 {[]tape.Kind{at(wrote("$TMP/a", "1"), "100644")}, []tape.Kind{at(wrote("$TMP/a", "1"), "100755")}, 1},
		"one more":             {nil, []tape.Kind{wrote("~/extra.txt", "x")}, 1},
		"a directory less":     {[]tape.Kind{dirMade("$TMP/thing2/")}, nil, 1},
		"a name of base 36":    {[]tape.Kind{wrote("~/run-mb1x2y3z", "x")}, []tape.Kind{wrote("~/run-mb1x2y40", "x")}, 0},
		"a name drawn":         {[]tape.Kind{wrote("~/git-qNVhRc", "x")}, []tape.Kind{wrote("~/git-yDp08a", "x")}, 0},
		"another name drawn":   {nil, []tape.Kind{wrote("~/clone-FUCSRk", "x")}, 0},
		"mode of a drawn name": {[]tape.Kind{at(wrote("$TMP/gg-109881235", "1"), "100644")}, []tape.Kind{at(wrote("$TMP/gg-109881235", "1"), "100755")}, 1},
		"come and gone":        {[]tape.Kind{wrote("~/lock", "x"), removed("~/lock", "x")}, nil, 0},
		"gone in one of them":  {[]tape.Kind{wrote("~/a", "x"), removed("~/a", "x")}, []tape.Kind{wrote("~/a", "x")}, 1},
		"gone that was there":  {[]tape.Kind{removed("~/notes", "x")}, nil, 1},
		"a name of a person's": {[]tape.Kind{wrote("~/myProject/a", "x")}, nil, 1},
		"a count by a name":    {[]tape.Kind{wrote("~/a.json", `{"numTurns": 3}`)}, []tape.Kind{wrote("~/a.json", `{"numTurns": 4}`)}, 1},
		"drawn names changed": {
			[]tape.Kind{wrote("~/biyx7vgew.out", "1"), wrote("~/c9nq0fkte.out", "3")},
			[]tape.Kind{wrote("~/biyx7vgew.out", "3"), wrote("~/c9nq0fkte.out", "1")}, 0,
		},
		"below a drawn name":      {[]tape.Kind{wrote("~/biyx7vgew.out", "1")}, []tape.Kind{wrote("~/biyx7vgew.out", "3")}, 1},
		"come and gone otherwise": {[]tape.Kind{wrote("~/lock", "x"), removed("~/lock", "x")}, []tape.Kind{wrote("~/lock", "y"), removed("~/lock", "y")}, 1},
		"a digest in it":          {[]tape.Kind{wrote("~/a", "00292abebcf7")}, []tape.Kind{wrote("~/a", "00292abebcf8")}, 0},
		"no text":                 {[]tape.Kind{wrote("~/a", "a\x00b")}, []tape.Kind{wrote("~/a", "a\x00c")}, 0},
		"in one of its sides":     {[]tape.Kind{wrote("~/a", "a word")}, []tape.Kind{wrote("~/a", "mb1x2y3z")}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := compareLanes(t, Semantic, test.a, test.b, &LaneOptions{Exact: true, OwnTimes: time.Now(), Payload: payloadBytes})
			if len(r.Divergences) != test.want {
				t.Errorf("%v, want %d; %v", r.Divergences, test.want, r.Notes)
			}
		})
	}
}

// payloadBytes are those of a payload that stands in its record.
func payloadBytes(p *tape.Payload, _ Side) ([]byte, error) { return p.Bytes(nil) }

// TestFilesOfFormat1: a recording that tells less of files than its replay is compared by what it tells.
func TestFilesOfFormat1(t *testing.T) {
	attrs := tape.Field{Name: attrsKey, Value: json.RawMessage(`{"user.k":"dg=="}`)}
	a := []tape.Kind{wrote("f", "1"), at(wrote("x", "1"), "100755")}
	b := []tape.Kind{dirMade("d"), at(wrote("f", "1"), "100600", attrs), at(wrote("x", "1"), "100700")}
	if r := compareLanes(t, Semantic, a, b, &LaneOptions{Format1: true}); len(r.Divergences) > 0 {
		t.Errorf("%v", r.Divergences)
	}
	if r := compareLanes(t, Semantic, a, b, nil); len(r.Divergences) != 4 {
		t.Errorf("%v, want d, the modes of f and x, and the attributes of f", r.Divergences)
	}
	b[2] = at(wrote("x", "1"), "100600")
	if r := compareLanes(t, Semantic, a, b, &LaneOptions{Format1: true}); len(r.Divergences) != 1 {
		t.Errorf("%v, want one: nobody may execute x", r.Divergences)
	}
}

// TestTheIndexComesBehindTheLog: of a database of SQLite the log is told of before the index that follows from it.
func TestTheIndexComesBehindTheLog(t *testing.T) {
	side := func(v string) []tape.Kind {
		return []tape.Kind{wrote("a.db", v), wrote("a.db-shm", v), wrote("a.db-wal", v), wrote("b", v)}
	}
	r := compareLanes(t, Semantic, side("1"), side("2"), &LaneOptions{Exact: true})
	var order []string
	for i := range r.Divergences {
		order = append(order, r.Divergences[i].Message)
	}
	for i, name := range []string{"a.db)", "a.db-wal", "a.db-shm", "b)"} {
		if len(order) != 4 || !strings.Contains(order[i], name) {
			t.Fatalf("order %q", order)
		}
	}
}

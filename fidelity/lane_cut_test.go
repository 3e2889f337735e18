package fidelity

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// endedRun is the tape of a run that was over at 9000 ms, as were the exchanges that it had ended itself; all others had ended long before.
func endedRun(kinds []tape.Kind) Records {
	end := program("", 0)
	end.Extra = tape.EndedField(9000)
	all := recordsOf(append(kinds[:len(kinds):len(kinds)], end)...)
	for _, rec := range all {
		if withdrawn(tape.ExchangeOf(rec.Kind)) {
			rec.MonotonicMS = 8990
		}
	}
	return yieldAll(all, nil)
}

// TestCutByTheEnd: how far the run's end let work come that nobody waited for does not gate, what came of other work does.
func TestCutByTheEnd(t *testing.T) {
	whole := func(name string, arrival uint64) tape.Kind { return get("http://h/"+name, arrival, 200) }
	cutOff := func(name string, arrival uint64) tape.Kind {
		k := get("http://h/"+name, arrival, 200)
		k.Error, k.Response = tape.Cancelled, inline("some")
		return k
	}
	fresh := func(name string, arrival uint64) tape.Kind {
		k := get("http://h/"+name, arrival, 400)
		k.Lane, k.Error = laneUnmatched, "not on the tape"
		return k
	}
	type kinds = []tape.Kind
	missed, added := code{"http:h", MissingInReplay}, code{laneUnmatched, MissingInRecorded}
	for _, tt := range []struct {
		name             string
		recorded, replay kinds
		want             []code
		note             string // how many are cut, as it is said; "" for none
	}{
		{"cut in both", kinds{cutOff("a", 1)}, kinds{cutOff("a", 1)}, nil, "1 exchange cut"},
		{"cut on the replay", kinds{whole("a", 1)}, kinds{cutOff("a", 1)}, nil, "1 exchange cut"},
		{"cut while recording", kinds{cutOff("a", 1)}, kinds{whole("a", 1)}, nil, "1 exchange cut"},
		{"cut and not begun again", kinds{cutOff("a", 1)}, nil, nil, "1 exchange cut"},
		{"the replay came less far", kinds{whole("a", 1), whole("b", 2), cutOff("c", 3)}, kinds{cutOff("a", 1)}, nil, "3 exchanges cut"},
		{"the replay came further", kinds{whole("a", 1), cutOff("b", 2)}, kinds{whole("a", 1), cutOff("b", 2), fresh("c", 3)}, nil, "2 exchanges cut"},
		{"the second of equal ones", kinds{whole("a", 1), whole("b", 2), whole("a", 3), whole("c", 4)},
			kinds{whole("a", 1), whole("b", 2), cutOff("a", 3)}, nil, "2 exchanges cut"},
		{"whole and not asked for", kinds{whole("a", 1)}, nil, []code{missed}, ""},
		{"before what was cut", kinds{whole("a", 1), cutOff("b", 2)}, kinds{cutOff("b", 1)}, []code{missed}, "1 exchange cut"},
		{"another one, whole", kinds{whole("a", 1)}, kinds{fresh("b", 1)}, []code{added, missed}, ""},
		{"another one in place of one that was cut", kinds{cutOff("a", 1)}, kinds{fresh("b", 1)}, []code{added}, "1 exchange cut"},
		{"another one before", kinds{cutOff("a", 1)}, kinds{fresh("b", 1), cutOff("a", 2)}, []code{added}, "1 exchange cut"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := CompareLanes(Semantic, endedRun(tt.recorded), endedRun(tt.replay), nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, codes(r)); diff != "" {
				t.Error(diff)
			}
			if notes := strings.Join(r.Notes, "\n"); (tt.note != "") != strings.Contains(notes, "by the end of the run") || !strings.Contains(notes, tt.note) {
				t.Errorf("notes %q", notes)
			}
		})
	}
}

// TestEndedLongBefore: what a program ended itself before it went on was not cut by its end.
func TestEndedLongBefore(t *testing.T) {
	k := get("http://h/a", 1, 200)
	k.Error, k.Response = tape.Cancelled, inline("some")
	end := program("", 0)
	end.Extra = tape.EndedField(9000)
	r, err := CompareLanes(Semantic, tapeOf(k, end), tapeOf(end), nil) // its record stands at 0 ms
	if diff := cmp.Diff([]code{{"http:h", MissingInReplay}}, codes(r)); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

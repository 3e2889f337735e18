package fidelity

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// endedRun is the tape of a run that was over at some ms. Its exchanges ended one after another from 8900 ms on, 10 ms apart; those that
// it had ended itself did at its end.
func endedRun(ms int64, kinds []tape.Kind) Records {
	end := program("", 0)
	end.Extra = tape.EndedField(ms)
	all := recordsOf(append(kinds[:len(kinds):len(kinds)], end)...)
	for i, rec := range all {
		rec.G *= 10
		rec.MonotonicMS = int64(8900 + 10*min(i, 9))
		ex := tape.ExchangeOf(rec.Kind)
		if cancelled(ex) {
			rec.MonotonicMS = ms - 10
		} else if ex != nil && len(ex.Stream) > 0 {
			ex.Stream[0].G = rec.G - 1
		}
	}
	return yieldAll(all, nil)
}

// TestCutByTheEnd: how far the run's end let work come that nobody waited for does not gate, what came of other work does.
func TestCutByTheEnd(t *testing.T) {
	took := func(ms int64, name string, arrival uint64) tape.Kind {
		k := get("http://h/"+name, arrival, 200)
		k.Stream = []tape.Chunk{{Length: k.Response.Len, TMS: ms}}
		return k
	}
	whole := func(name string, arrival uint64) tape.Kind { return took(1, name, arrival) }
	empty := func(name string, arrival uint64) tape.Kind {
		k := get("http://h/"+name, arrival, 204)
		k.Response = inline("")
		return k
	}
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
		endedMS          int64  // when the recorded run was over
	}{
		{"cut in both", kinds{cutOff("a", 1)}, kinds{cutOff("a", 1)}, nil, "1 exchange cut", 9000},
		{"cut on the replay", kinds{whole("a", 1)}, kinds{cutOff("a", 1)}, nil, "1 exchange cut", 9000},
		{"cut while recording", kinds{cutOff("a", 1)}, kinds{whole("a", 1)}, nil, "1 exchange cut", 9000},
		{"cut and not begun again", kinds{cutOff("a", 1)}, nil, nil, "1 exchange cut", 9000},
		{"the replay came less far", kinds{whole("a", 1), whole("b", 2), cutOff("c", 3)}, kinds{cutOff("a", 1)}, nil, "3 exchanges cut", 9000},
		{"the replay came further", kinds{whole("a", 1), cutOff("b", 2)}, kinds{whole("a", 1), whole("b", 2), fresh("c", 3)}, nil, "2 exchanges cut", 9000},
		{"the second of equal ones", kinds{whole("a", 1), whole("b", 2), whole("a", 3), whole("c", 4)},
			kinds{whole("a", 1), whole("b", 2), cutOff("a", 3)}, nil, "2 exchanges cut", 9000},
		{"whole and not asked for", kinds{whole("a", 1)}, nil, []code{missed}, "", 9000},
		{"before what was cut", kinds{whole("a", 1), cutOff("b", 2)}, kinds{cutOff("b", 1)}, []code{missed}, "1 exchange cut", 9000},
		{"another one, whole", kinds{whole("a", 1)}, kinds{fresh("b", 1)}, []code{added, missed}, "", 9000},
		{"another one in place of one that was cut", kinds{cutOff("a", 1)}, kinds{fresh("b", 1)}, []code{added}, "1 exchange cut", 9000},
		{"another one before", kinds{cutOff("a", 1)}, kinds{fresh("b", 1), cutOff("a", 2)}, []code{added}, "1 exchange cut", 9000},
		{"beside one that both runs cut", kinds{cutOff("events", 1), whole("a", 2), whole("b", 3), whole("c", 4)},
			kinds{cutOff("events", 1), fresh("x", 2), fresh("y", 3)}, []code{added, missed, missed, missed, added}, "1 exchange cut", 9000},
		{"beside one that the recorded run cut", kinds{cutOff("events", 1), whole("a", 2)}, nil, []code{missed}, "1 exchange cut", 9000},
		{"beside one that the replay cut", kinds{whole("events", 1), took(15, "a", 2)}, kinds{cutOff("events", 1)},
			[]code{missed}, "1 exchange cut", 9000},
		{"nobody knows whether behind what the replay cut", kinds{whole("a", 1), empty("b", 2)}, kinds{cutOff("a", 1)},
			[]code{missed}, "1 exchange cut", 9000},
		{"arrived before what the replay cut", kinds{whole("a", 2), whole("b", 1)}, kinds{cutOff("a", 2)}, []code{missed}, "1 exchange cut", 9000},
		{"long before the end", kinds{whole("a", 1), whole("b", 2)}, kinds{cutOff("a", 1)}, []code{missed}, "1 exchange cut", 99000},
		{"at the end, behind what was whole long before", kinds{whole("a", 1), whole("b", 2)}, kinds{cutOff("a", 1)},
			[]code{missed}, "1 exchange cut", 9905},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := CompareLanes(Semantic, endedRun(tt.endedMS, tt.recorded), endedRun(9000, tt.replay), nil)
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

// TestEndedAndWentOn: what a process ended itself little before its end, and asked for something else then, was not cut by its end.
func TestEndedAndWentOn(t *testing.T) {
	asked := func(by, arrival uint64, why string) *tape.HTTPExchange {
		k := get(fmt.Sprintf("http://h/%d", arrival), arrival, 200)
		k.Error = why
		k.Extra = append(tape.NumberField(tape.PlaceKey, 10*arrival-5), tape.NumberField(tape.OpenerKey, by)...)
		return k
	}
	for name, tt := range map[string]struct {
		next uint64 // who asks for something else then
		want []code
	}{
		"itself":       {1, []code{{"http:h", MissingInReplay}}},
		"another one":  {2, nil},
		"nobody knows": {0, nil},
	} {
		recorded := []tape.Kind{asked(1, 1, tape.Cancelled), asked(tt.next, 2, "")}
		r, err := CompareLanes(Semantic, endedRun(9000, recorded), endedRun(9000, recorded[1:]), nil)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, codes(r)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestManyCut: what it takes to find what the end cut grows with the exchanges, not with them times those that were cut.
func TestManyCut(t *testing.T) {
	allocs := func(n int) float64 {
		var recorded, replay []tape.Kind
		for i := range n {
			k := get(fmt.Sprintf("http://h/%d", i), uint64(i+1), 200)
			k.Stream = []tape.Chunk{{Length: k.Response.Len, TMS: 500}}
			recorded = append(recorded, k)
			if i >= n/2 {
				cut := *k
				cut.Error, cut.Response, cut.Stream = tape.Cancelled, inline("some"), nil
				replay = append(replay, &cut)
			}
		}
		was, now := endedRun(9000, recorded), endedRun(9000, replay)
		return testing.AllocsPerRun(1, func() {
			if _, err := CompareLanes(Semantic, was, now, nil); err != nil {
				t.Fatal(err)
			}
		})
	}
	if few, many := allocs(100), allocs(400); many > 6*few {
		t.Errorf("%v allocations for 100 exchanges, %v for 400", few, many)
	}
}

// TestProcessesCutByTheEnd: whether what was killed when its program had ended came to execute something is decided by that end; what ended
// by itself, or began long before, was started or not.
func TestProcessesCutByTheEnd(t *testing.T) {
	process := func(id, parent uint64, durationMS int64, flag string) *tape.ProcessSpawn {
		p := &tape.ProcessSpawn{SpawnID: id, ParentSpawnID: parent, Program: "/bin/sleep", Args: []string{"sleep", "9"}, DurationMS: durationMS}
		if flag != "" {
			p.Extra = tape.FlagFields(map[string]bool{flag: true})
		}
		return p
	}
	for _, tt := range []struct {
		name string
		more []tape.Kind
		red  bool
	}{
		{"killed, begun just before", []tape.Kind{process(2, 1, 40, tape.LeftKey)}, false},
		{"of one that was killed", []tape.Kind{process(2, 1, 40, tape.LeftKey), process(3, 2, 10, "")}, false},
		{"killed, begun long before", []tape.Kind{process(2, 1, 5000, tape.LeftKey)}, true},
		{"ended by itself", []tape.Kind{process(2, 1, 40, "")}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, sides := range [][2][]tape.Kind{{tt.more, nil}, {nil, tt.more}} {
				r, err := CompareLanes(Semantic, endedRun(9000, sides[0]), endedRun(9000, sides[1]), nil)
				if err != nil {
					t.Fatal(err)
				}
				if red := len(r.Divergences) > 0; red != tt.red {
					t.Errorf("red %v: %v, %v", red, r.Divergences, r.Notes)
				}
				if noted := strings.Contains(strings.Join(r.Notes, "\n"), "cut by the end of the run"); noted == tt.red {
					t.Errorf("notes %q", r.Notes)
				}
			}
		})
	}
}

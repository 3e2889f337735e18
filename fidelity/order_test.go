package fidelity

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// TestPlainOrder: plain requests to two hosts that both runs made one after the other may not change places; where two were under way
// at once they may.
func TestPlainOrder(t *testing.T) {
	type request struct {
		host     string
		from, to uint64 // ordinals
		by       uint64
	}
	of := func(all ...request) Records {
		return func(yield func(*tape.Record, error) bool) {
			for i, r := range all {
				k := get("https://"+r.host+"/x", uint64(i+1), 200)
				k.Extra = append(tape.NumberField(tape.PlaceKey, r.from), tape.NumberField(tape.OpenerKey, r.by)...)
				if !yield(&tape.Record{Seq: uint64(i), G: r.to, Kind: k}, nil) {
					return
				}
			}
		}
	}
	aba := func(first, last string) Records {
		return of(request{"a.test/" + first, 1, 3, 0}, request{"b.test", 4, 6, 0}, request{"a.test/" + last, 7, 9, 0})
	}
	ab := of(request{"a.test", 1, 3, 0}, request{"b.test", 4, 6, 0})
	for name, tt := range map[string]struct {
		recorded, replay Records
		want             int
	}{
		"the same":                     {ab, ab, 0},
		"another order":                {ab, of(request{"b.test", 1, 3, 0}, request{"a.test", 4, 6, 0}), 1},
		"at once while recording":      {of(request{"a.test", 1, 3, 0}, request{"b.test", 2, 4, 0}), of(request{"b.test", 1, 3, 0}, request{"a.test", 4, 6, 0}), 0},
		"at once on replay":            {ab, of(request{"b.test", 1, 3, 0}, request{"a.test", 2, 4, 0}), 0},
		"one host":                     {of(request{"a.test/1", 1, 3, 5}, request{"a.test/2", 4, 6, 5}), of(request{"a.test/2", 1, 3, 5}, request{"a.test/1", 4, 6, 5}), 1},
		"one host, nobody known":       {of(request{"a.test/1", 1, 3, 0}, request{"a.test/2", 4, 6, 0}), of(request{"a.test/2", 1, 3, 0}, request{"a.test/1", 4, 6, 0}), 0},
		"one host, around another":     {aba("1", "2"), aba("2", "1"), 1},
		"two threads":                  {of(request{"a.test", 1, 3, 5}, request{"b.test", 4, 6, 6}), of(request{"b.test", 1, 3, 6}, request{"a.test", 4, 6, 5}), 0},
		"of a tape that does not tell": {of(request{"a.test", 0, 0, 0}, request{"b.test", 0, 0, 0}), of(request{"b.test", 1, 3, 0}, request{"a.test", 4, 6, 0}), 0},
	} {
		r, err := CompareLanes(Semantic, tt.recorded, tt.replay, nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Divergences) != tt.want || tt.want > 0 && (r.Divergences[0].Category != HTTPOrder || len(r.Divergences[0].Changes) == 0) {
			t.Errorf("%s: %v, want %d, which tells what came then and now", name, r.Divergences, tt.want)
		}
	}
}

// TestProcessOrderOfForks: the second program of a subshell (`( cat || hostname ) | head`) began with the subshell, beside what it is piped to.
func TestProcessOrderOfForks(t *testing.T) {
	type process struct {
		name     string
		pid      int
		from, to uint64
	}
	of := func(all ...process) Records {
		return func(yield func(*tape.Record, error) bool) {
			for i, x := range all {
				k := &tape.ProcessSpawn{Program: x.name, SpawnID: uint64(i + 2), ParentSpawnID: 1, PID: x.pid, Extra: tape.NumberField(tape.PlaceKey, x.from)}
				if x.name == "" {
					k.Extra = append(k.Extra, tape.FlagFields(map[string]bool{tape.ForkedKey: true, tape.AgainKey: true})...)
				}
				yield(&tape.Record{Seq: uint64(i), G: x.to, Kind: k}, nil)
			}
			parent := program("", 0)
			parent.SpawnID = 1
			yield(&tape.Record{Seq: 100, G: 100, Kind: parent}, nil)
		}
	}
	recorded := of(process{"", 11, 1, 6}, process{"/bin/head", 12, 2, 4}, process{"/bin/hostname", 11, 5, 7})
	replay := of(process{"", 11, 1, 5}, process{"/bin/hostname", 11, 4, 6}, process{"/bin/head", 12, 7, 8})
	r, err := CompareLanes(Semantic, recorded, replay, nil)
	if err != nil || len(r.Divergences) > 0 {
		t.Errorf("%v, %v: %+v", r, err, r.Divergences)
	}
}

// TestProcessOrder: processes of one parent that followed from each other may not change places, but for those of a runtime whose timers
// are its own.
func TestProcessOrder(t *testing.T) {
	of := func(ownTicks bool, names ...string) Records {
		return func(yield func(*tape.Record, error) bool) {
			for i, name := range names {
				for k, name := range strings.Fields(name) { // of a pipeline
					from := uint64(10*i + k)
					p := &tape.ProcessSpawn{Program: "/bin/" + name, SpawnID: uint64(name[0]), ParentSpawnID: 1, Extra: tape.NumberField(tape.PlaceKey, from+1)}
					yield(&tape.Record{Seq: uint64(2*i + k), G: from + 3, Kind: p}, nil)
				}
			}
			parent := program("", 0)
			parent.SpawnID, parent.Extra = 1, tape.FlagFields(map[string]bool{tape.OwnTicksKey: ownTicks})
			yield(&tape.Record{Seq: 100, G: 100, Kind: parent}, nil)
		}
	}
	const note = "process order: cat comes before awk, which it followed; the runtime that started them has timers of its own, so that does not gate"
	for name, tt := range map[string]struct {
		recorded, replay Records
		red, noted       bool
	}{
		"the same":                      {of(false, "awk", "cat"), of(false, "awk", "cat"), false, false},
		"of a shell":                    {of(false, "awk", "cat"), of(false, "cat", "awk"), true, false},
		"of pipelines":                  {of(false, "awk wc", "cat wc"), of(false, "cat wc", "awk wc"), true, false},
		"within a pipeline":             {of(false, "awk cat"), of(false, "cat awk"), false, false},
		"of a pipeline in one run":      {of(false, "awk", "cat"), of(false, "cat awk"), false, false},
		"of a runtime":                  {of(true, "awk", "cat"), of(true, "cat", "awk"), false, true},
		"of a runtime, older recording": {of(false, "awk", "cat"), of(true, "cat", "awk"), false, true},
		"one of a runtime is gone":      {of(true, "awk", "cat"), of(true, "awk"), true, false},
	} {
		r, err := CompareLanes(Semantic, tt.recorded, tt.replay, nil)
		if err != nil {
			t.Fatal(err)
		}
		if red := len(r.Divergences) > 0; red != tt.red || slices.Contains(r.Notes, note) != tt.noted {
			t.Errorf("%s: %+v, notes %q", name, r.Divergences, r.Notes)
		}
	}
}

// TestApart: commands that are alike for longer than they are shown are told from each other.
func TestApart(t *testing.T) {
	of := func(customer string) tape.Kind {
		return &tape.ProcessSpawn{Program: "/bin/curl", Args: []string{"-s", "--retry", "2", "https://api.example.test/" + strings.Repeat("path/", 30) + customer}}
	}
	got := fmt.Sprintln(apart(of("ann"), of("bob"))...)
	if want := "/bin/curl -s --retry 2 https:/…path/path/path/path/ann /bin/curl -s --retry 2 https:/…path/path/path/path/bob\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := fmt.Sprintln(apart(&tape.ProcessSpawn{Program: "/bin/cat"}, &tape.ProcessSpawn{Program: "/bin/awk"})...); got != "cat awk\n" {
		t.Errorf("%q", got)
	}
}

package tapeview

import (
	"fmt"
	"slices"
	"testing"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// TestHelpers: of processes behind each other the outermost have rows, and what one of them started on its way does not.
func TestHelpers(t *testing.T) {
	t.Parallel()
	again, forked := map[string]bool{tape.AgainKey: true}, map[string]bool{tape.ForkedKey: true}
	for name, tt := range map[string]struct {
		each bool
		in   []tape.Kind
		want []string
	}{
		"a version manager": {in: []tape.Kind{ // the program starts 2, which becomes 3, which starts a subshell 4 with 5, and becomes 6
			spawn(2, 1, again), spawn(5, 4, nil), spawn(4, 3, forked), spawn(3, 2, again), spawn(6, 3, nil), spawn(1, 0, nil),
		}, want: []string{"4 from 0 to 3", "4", "5"}},
		"a command with its children": {in: []tape.Kind{spawn(3, 2, nil), spawn(4, 2, nil), spawn(5, 4, nil), spawn(2, 1, nil), spawn(6, 1, nil)},
			want: []string{"3 from 0 to 2", "3", "4"}},
		"a few":               {in: []tape.Kind{spawn(3, 2, nil), spawn(4, 2, nil), spawn(2, 1, nil)}, want: []string{"0", "1", "2"}},
		"of one that goes on": {in: []tape.Kind{spawn(3, 2, nil), spawn(4, 2, nil), spawn(5, 2, nil)}, want: []string{"0", "1", "2"}},
		"something between":   {in: []tape.Kind{spawn(3, 2, nil), spawn(4, 2, nil), &tape.ClockRead{}, spawn(5, 2, nil), spawn(2, 1, nil)}, want: []string{"0", "1", "2", "3", "4"}},
		"its own parent":      {in: []tape.Kind{spawn(3, 3, again), spawn(4, 3, nil), spawn(5, 4, again), spawn(6, 5, forked)}, want: []string{"4 from 0 to 3"}},
		"each":                {each: true, in: []tape.Kind{spawn(2, 1, again), spawn(3, 2, again), spawn(4, 3, again)}, want: []string{"0", "1", "2"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			h := Helpers{Each: tt.each, Row: func(r *tape.Record) { got = append(got, fmt.Sprint(r.Seq)) }, Folded: func(n int, first, last *tape.Record) {
				got = append(got, fmt.Sprintf("%d from %d to %d", n, first.Seq, last.Seq))
			}}
			for i, k := range tt.in {
				h.Add(&tape.Record{Seq: uint64(i), Kind: k})
			}
			h.End()
			if !slices.Equal(got, tt.want) {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

func spawn(id, parent uint64, flags map[string]bool) *tape.ProcessSpawn {
	return &tape.ProcessSpawn{SpawnID: id, ParentSpawnID: parent, Extra: tape.FlagFields(flags)}
}

package deck

import (
	"math"
	"testing"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// TestTakeProcess: of equal programs one is again that which ran the same, else the one whose arguments share most words with its own.
func TestTakeProcess(t *testing.T) {
	shell := func(id uint64, args ...string) *tape.ProcessSpawn {
		return &tape.ProcessSpawn{SpawnID: id, ParentSpawnID: 1, Program: "/bin/bash", Args: args}
	}
	r := newRecordedProcesses(nil)
	for _, p := range []*tape.ProcessSpawn{
		shell(2, "-c", "source s-17-a; sleep 1"), shell(3, "-c", "source s-17-a; wc -w"), shell(4, "-c", "source s-17-a; wc -l"), shell(5, "-c", "env"),
	} {
		r.add(p)
	}
	r.sort()
	for _, tt := range []struct {
		args string
		want uint64
	}{{"env", 5}, {"source s-18-b; wc -l", 4}, {"source s-18-b; wc -w", 3}, {"source s-18-b; sleep 1", 2}, {"env", 0}} {
		got := uint64(0)
		if p := r.take(1, shell(0, "-c", tt.args), math.MaxUint64); p != nil {
			got = p.SpawnID
		}
		if got != tt.want {
			t.Errorf("%q is process %d, want %d", tt.args, got, tt.want)
		}
	}
}

// TestTakeProcessOfItsTurn: what a thread ran in a later turn is not what it runs now, where another thread ran the same in this one.
func TestTakeProcessOfItsTurn(t *testing.T) {
	list := func(id, thread, at uint64) *tape.ProcessSpawn {
		return &tape.ProcessSpawn{
			SpawnID: id, ParentSpawnID: 1, Program: "/bin/ls", Extra: append(tape.NumberField(tape.PlaceKey, at), tape.NumberField(tape.ThreadKey, thread)...),
		}
	}
	r := newRecordedProcesses(nil)
	for _, p := range []*tape.ProcessSpawn{list(2, 1, 3), list(3, 2, 4), list(4, 2, 8), list(5, 3, 9)} {
		r.add(p)
	}
	r.sort()
	for _, tt := range []struct{ thread, reached, want uint64 }{{3, 6, 2}, {2, 6, 3}, {3, 6, 5}, {2, math.MaxUint64, 4}} {
		if p := r.take(1, list(0, tt.thread, 0), tt.reached); p == nil || p.SpawnID != tt.want {
			t.Errorf("thread %d, having reached %d, runs %+v, want %d", tt.thread, tt.reached, p, tt.want)
		}
	}
}

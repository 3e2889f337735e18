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
		if p := r.take(1, shell(0, "-c", tt.args), math.MaxUint64, 0); p != nil {
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
		if p := r.take(1, list(0, tt.thread, 0), tt.reached, 0); p == nil || p.SpawnID != tt.want {
			t.Errorf("thread %d, having reached %d, runs %+v, want %d", tt.thread, tt.reached, p, tt.want)
		}
	}
}

// TestTakeFork: of the stages of a pipeline that only forked each is the one that was forked so far behind their shell, whichever asks first and
// whatever has taken numbers before them. Of forks that followed each other each is the next.
func TestTakeFork(t *testing.T) {
	fork := func(id uint64, pid int) *tape.ProcessSpawn {
		return &tape.ProcessSpawn{SpawnID: id, ParentSpawnID: 2, PID: pid, Extra: tape.FlagFields(map[string]bool{tape.ForkedKey: true})}
	}
	shell := func(id uint64, pid int) *tape.ProcessSpawn {
		return &tape.ProcessSpawn{SpawnID: id, ParentSpawnID: 1, Program: "/bin/bash", PID: pid}
	}
	r := newRecordedProcesses(nil)
	for _, p := range []*tape.ProcessSpawn{shell(2, 1107), fork(3, 1110), fork(4, 1109), fork(5, 1111), fork(6, 1120), fork(7, 1130)} {
		r.add(p)
	}
	r.sort()
	r.take(1, shell(0, 1010), math.MaxUint64, 0)
	for _, tt := range []struct {
		pid, before int // one that never asks lives too
		want        uint64
	}{{1013, 2, 3}, {1012, 1, 4}, {1014, 1, 5}, {1033, 0, 6}, {1034, 1, 7}} {
		if p := r.take(2, fork(0, tt.pid), math.MaxUint64, tt.before); p == nil || p.SpawnID != tt.want {
			t.Errorf("the fork of PID %d is %+v, want %d", tt.pid, p, tt.want)
		}
	}
}

package deck

import (
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
		if p := r.take(1, shell(0, "-c", tt.args)); p != nil {
			got = p.SpawnID
		}
		if got != tt.want {
			t.Errorf("%q is process %d, want %d", tt.args, got, tt.want)
		}
	}
}

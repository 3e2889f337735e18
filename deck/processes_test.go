package deck

import (
	"context"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/ambient"
	"github.com/tapedeck-dev/tapedeck/internal/jail"
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

// TestAnswersWaitForAllThreads: whoever opens a connection, what is asked there waits for all threads that share the answers.
func TestAnswersWaitForAllThreads(t *testing.T) {
	for _, c := range []struct {
		pid, want int // of the thread: 0 for several that share
	}{{0, 2}, {7, 1}} {
		p := &processes{given: make(map[uint64][]*ambient.Given)}
		clock := ambient.NewTicks()
		for _, in := range []*processInputs{
			{id: 1, program: &jail.Program{PID: 5}}, {id: 2, parent: 1, program: &jail.Program{Thread: true, PID: c.pid}},
		} {
			g, _, err := clock.Given(nil)
			if err != nil {
				t.Fatal(err)
			}
			p.gives(in, g)
		}
		for _, id := range []uint64{1, 2} {
			n := 0
			p.await(t.Context(), id, func(context.Context, *ambient.Given) { n++ })
			if n != c.want {
				t.Errorf("a thread with PID %d: an answer to %d waits for %d, want %d", c.pid, id, n, c.want)
			}
		}
	}
}

package deck

import (
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/ambient"
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

// TestTakeByPID: of those that ran the same one is again that which had its PID, whichever comes first.
func TestTakeByPID(t *testing.T) {
	r := newRecordedProcesses(nil)
	for id, pid := range map[uint64]int{2: 1000, 3: 1001, 4: 1002} {
		r.add(&tape.ProcessSpawn{SpawnID: id, ParentSpawnID: 1, PID: pid, Program: "/bin/sh"})
	}
	r.sort()
	for _, tt := range []struct {
		pid  int
		want uint64
	}{{1001, 3}, {1007, 2}, {1002, 4}} {
		if p := r.take(1, &tape.ProcessSpawn{PID: tt.pid, Program: "/bin/sh"}); p == nil || p.SpawnID != tt.want {
			t.Errorf("PID %d is %+v, want process %d", tt.pid, p, tt.want)
		}
	}
}

// TestForkAgain: what forks gets the recorded PIDs, and what no recorded process has beyond these. Of a recording without any the kernel says.
func TestForkAgain(t *testing.T) {
	was, _ := ambient.NewAnswers(true, nil)
	record, replay, old := new(processes), new(processes), new(processes)
	record.forks.of(was)
	for _, f := range []struct {
		by  string
		pid int
	}{{"100", 1000}, {"1000", 1001}, {"100", 1002}, {"100 thread", 1003}} {
		if got := record.Fork(f.by); got != 0 {
			t.Errorf("while recording %s makes %d", f.by, got)
		}
		record.Forked(f.by, f.pid)
	}
	again, err := ambient.NewAnswers(false, was.Encode(strings.Clone))
	if err != nil {
		t.Fatal(err)
	}
	replay.forks.of(again)
	for _, f := range []struct {
		by  string
		pid int
	}{{"1000", 1001}, {"100 thread", 1003}, {"1000", 1004}, {"100", 1000}, {"7", 1005}, {"100", 1002}} {
		if got := replay.Fork(f.by); got != f.pid {
			t.Errorf("%s makes %d, want %d", f.by, got, f.pid)
		}
	}
	none, _ := ambient.NewAnswers(false, nil)
	old.forks.of(none)
	if got := old.Fork("100"); got != 0 {
		t.Errorf("of a recording without PIDs %d", got)
	}
}

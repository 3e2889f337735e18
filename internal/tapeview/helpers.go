package tapeview

import (
	"fmt"
	"io"

	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// Helpers folds what a command starts on its way: version managers and shell scripts make dozens of processes before a program begins, and
// its turns stood below a page of them. Of processes whose records stand behind each other the outermost have a row each, the others one
// together.
type Helpers struct {
	Each   bool                  // each has a row
	Keep   func(seq uint64) bool // who notes something on one has it shown; nil for none
	Row    func(*tape.Record)
	Folded func(n int, first, last *tape.Record)

	run []*tape.Record // of processes, nothing between them
}

// fewHelpers have a row each, and longestRun bounds what is held to find who started whom.
const (
	fewHelpers = 2
	longestRun = 10_000
)

// Add takes the next record; rows come as soon as it is known which.
func (h *Helpers) Add(rec *tape.Record) {
	if _, ok := rec.Kind.(*tape.ProcessSpawn); ok && !h.Each {
		if h.run = append(h.run, rec); len(h.run) == longestRun {
			h.End()
		}
		return
	}
	h.End()
	h.Row(rec)
}

// End writes what was held.
func (h *Helpers) End() {
	run := h.run
	h.run = nil
	by := make(map[uint64]*tape.ProcessSpawn, len(run))
	for _, rec := range run {
		k := rec.Kind.(*tape.ProcessSpawn)
		by[k.SpawnID] = k
	}
	var inner []*tape.Record
	folded := make(map[uint64]bool)
	for _, rec := range run {
		if isHelper(by, rec.Kind.(*tape.ProcessSpawn)) && (h.Keep == nil || !h.Keep(rec.Seq)) {
			inner, folded[rec.Seq] = append(inner, rec), true
		}
	}
	for _, rec := range run {
		switch {
		case len(inner) <= fewHelpers || !folded[rec.Seq]:
			h.Row(rec)
		case rec == inner[0]:
			h.Folded(len(inner), rec, inner[len(inner)-1])
		}
	}
}

// isHelper reports whether a process was started by another one of a run than the program, or was what another became or forked off.
func isHelper(run map[uint64]*tape.ProcessSpawn, k *tape.ProcessSpawn) bool {
	if tape.HasFlag(k, tape.AgainKey) || tape.HasFlag(k, tape.ForkedKey) {
		return true
	}
	parent := run[k.ParentSpawnID]
	for parent != nil && tape.HasFlag(parent, tape.AgainKey) && parent.ParentSpawnID < parent.SpawnID { // k is what that became
		parent = run[parent.ParentSpawnID]
	}
	return parent != nil && parent.SpawnID > programID
}

// programID is the spawn of the program that was recorded.
const programID = 1

// WriteFolded writes one row for n processes, of which these were the first and the last to end.
func (r *Rows) WriteFolded(w io.Writer, n int, first, last *tape.Record) error {
	_, err := visible.Fprintf(w, "%d\t%s\t%s\t\t%s\n", first.Seq, Seconds(first.MonotonicMS), first.Kind.Name(),
		fmt.Sprintf("%d that others started on their way, among --seq %d-%d", n, first.Seq, last.Seq))
	return err
}

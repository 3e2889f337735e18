package fidelity

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// maxPaths is how many paths a message names.
const maxPaths = 50

// outcome is what can be seen of a run from outside.
type outcome struct {
	files map[string]fileState // by path
	fresh map[string]bool      // paths at which nothing was found
	exit  *int                 // of the last process; nil without one
	calls int
}

// fileState is what became of a file.
type fileState struct {
	deleted bool
	hash    cas.Digest // of a written one
}

func compareOutcome(recorded, replay Records, names sideNames) (*Report, error) {
	r := newReport(Outcome)
	r.names = names
	seen := [2]*outcome{newOutcome(), newOutcome()}
	err := readBoth(names, recorded, replay, func(s Side, rec *tape.Record) {
		r.count(s)
		seen[s].add(rec.Kind)
	})
	if err != nil {
		return nil, err
	}
	r.add(seen[Recorded].diff(seen[Replay], names)...)
	r.rateOutcome()
	return r, nil
}

func newOutcome() *outcome {
	return &outcome{files: make(map[string]fileState), fresh: make(map[string]bool)}
}

func (o *outcome) add(k tape.Kind) {
	switch k := k.(type) {
	case *tape.FileWrite:
		o.files[k.Path] = fileState{hash: k.ContentHash}
	case *tape.FileDelete:
		o.files[k.Path] = fileState{deleted: true}
	case *tape.ProcessSpawn:
		o.exit = &k.ExitCode
	case *tape.LLMCall:
		o.calls++
	}
}

// diff returns a divergence for each facet that differs.
func (o *outcome) diff(replay *outcome, names sideNames) []Divergence {
	var out []Divergence
	if paths := o.differingPaths(replay, names); len(paths) > 0 {
		out = append(out, Divergence{Category: OutcomeFSDiff, Message: "files differ: " + list(paths, maxPaths)})
	}
	if was, now := showExit(o.exit), showExit(replay.exit); was != now {
		out = append(out, Divergence{Category: OutcomeExitCode, Message: "exit code" + names.versus(was, now)})
	}
	if o.calls != replay.calls {
		message := "model calls" + names.versus(show(o.calls), show(replay.calls))
		out = append(out, Divergence{Category: OutcomeLLMCallCount, Message: message})
	}
	return out
}

func showExit(code *int) string {
	if code == nil {
		return "no process"
	}
	return show(*code)
}

// differingPaths returns the paths whose final states differ, sorted, each with what became of it.
func (o *outcome) differingPaths(replay *outcome, names sideNames) []string {
	var out []string
	for _, path := range sortedKeys(o.files, replay.files) {
		was, inA := o.files[path]
		now, inB := replay.files[path]
		if inA != inB || was != now {
			out = append(out, fmt.Sprintf("%s (%s %s, %s %s)", path, names.of(Recorded), was.show(inA), names.of(Replay), now.show(inB)))
		}
	}
	return out
}

// sortedKeys are the keys of either map.
func sortedKeys[V any](a, b map[string]V) []string {
	keys := slices.Concat(slices.Collect(maps.Keys(a)), slices.Collect(maps.Keys(b)))
	slices.Sort(keys)
	return slices.Compact(keys)
}

func (s fileState) show(there bool) string {
	switch {
	case !there:
		return "untouched"
	case s.deleted:
		return "deleted"
	}
	return show(s.hash)
}

// list joins up to limit items and counts the rest.
func list(items []string, limit int) string {
	if len(items) <= limit {
		return strings.Join(items, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(items[:limit], ", "), len(items)-limit)
}

// addMasked is add with the digest after masking, where a file has one. What a run made and deleted again is untouched.
func (o *outcome) addMasked(k tape.Kind) {
	switch k := k.(type) {
	case *tape.FileWrite:
		if _, known := o.files[k.Path]; !known && k.Before == nil {
			o.fresh[k.Path] = true
		}
		o.files[k.Path] = fileState{hash: stateOf(&k.File)}
	case *tape.FileDelete:
		if o.add(k); o.fresh[k.Path] {
			delete(o.files, k.Path)
		}
	default:
		o.add(k)
	}
}

// stateOf is what stands for the bytes of a file in lane mode.
func stateOf(f *tape.File) cas.Digest {
	if f.ContentDigest.IsZero() {
		return f.ContentHash
	}
	return f.ContentDigest
}

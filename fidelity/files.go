package fidelity

import (
	"cmp"
	"maps"
	"slices"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// notedPaths is how many paths a note names.
const notedPaths = 5

// A fileLane is the files of the work tree, and those watched.
type fileLane struct{ *laneCompare }

// compare compares both sides, path by path.
func (c *fileLane) compare(p lanePair) {
	for _, es := range [][]entry{p.a, p.b} {
		for i := range es {
			es[i].id = withState(es[i].id, stateOf(tape.FileOf(es[i].rec.Kind)))
		}
	}
	all := p
	same := func(a, b *entry) { c.filePair(pair{a: a, b: b}) }
	for len(p.a) > 0 && len(p.b) > 0 && p.a[0].id == p.b[0].id { // what changed alike need not be sorted
		same(&p.a[0], &p.b[0])
		p.a, p.b = p.a[1:], p.b[1:]
	}
	for na, nb := len(p.a)-1, len(p.b)-1; na >= 0 && nb >= 0 && p.a[na].id == p.b[nb].id; na, nb = na-1, nb-1 {
		same(&p.a[na], &p.b[nb])
		p.a, p.b = p.a[:na], p.b[:nb]
	}
	sortByPath(p.a)
	sortByPath(p.b)
	pairs, _ := pairUp(p.a, p.b, &pairRules{likely: []func(tape.Kind) string{likelyFile}})
	for _, pr := range c.withoutPassing(pairs, &all) {
		c.filePair(pr)
	}
}

func (c *fileLane) filePair(p pair) {
	at := c.end()
	if p.b != nil {
		at = p.b.at
	}
	c.pair(laneFiles, p, at)
	if p.a != nil && p.b != nil {
		c.barrier(p)
	}
}

// sortByPath sorts records about files by path, those of one path as they came.
func sortByPath(es []entry) {
	type keyed struct {
		path string
		entry
	}
	all := make([]keyed, len(es))
	for i := range es {
		all[i] = keyed{tape.FileOf(es[i].rec.Kind).Path, es[i]}
	}
	slices.SortFunc(all, func(a, b keyed) int { return cmp.Or(cmp.Compare(a.path, b.path), a.at-b.at) })
	for i := range all {
		es[i] = all[i].entry
	}
}

// withState is an identity that holds for one content only.
func withState(id uint64, state cas.Digest) uint64 {
	var h hasher
	h.SetSeed(seed)
	h.number(id)
	h.digest(state)
	return h.Sum64()
}

// barrier notes a file that changed at another place between the model calls. Where a call is missing or new that says
// nothing.
func (c *fileLane) barrier(p pair) {
	if p.a.calls != p.b.calls && c.sides[Recorded].calls == c.sides[Replay].calls {
		c.note("%s: recorded after %d model calls, replay after %d", describe(p.a.rec.Kind), p.a.calls, p.b.calls)
	}
}

// Files are looked at when a model is asked and at the end. A program that writes on its own while a model answers may have
// come to another of its steps by then: what one run shows between two looks the other may not. So a state of a file that
// only one side shows, and that in the end made no difference, is a note. Two sides that show different states are not alike, nor
// are two that were given the same time and randomness, where one shows a state that a call ended: no chance decided that it did.

// A filePath is what both sides say of one path.
type filePath struct {
	sides [2]fileTrace
	alone [2]int // records without a counterpart
	whole bool   // chance did not decide that one of those is there
}

// A fileTrace is what the records of one side make of a path.
type fileTrace struct {
	found, left fileEnd
	seen        bool
}

// A fileEnd is what stands at a path, before or after records.
type fileEnd struct {
	state cas.Digest // zero for nothing
	mode  string     // of what was written
}

func (t *fileTrace) add(k tape.Kind) {
	f := tape.FileOf(k)
	if !t.seen {
		t.seen = true
		if f.Before != nil {
			t.found.state = f.Before.Hash
		}
	}
	t.left = fileEnd{}
	if _, gone := k.(*tape.FileDelete); !gone {
		t.left = fileEnd{stateOf(f), f.Mode}
	}
}

// nothing reports whether a path that was not there is not there in the end either.
func (t *fileTrace) nothing() bool { return t.found == fileEnd{} && t.left == fileEnd{} }

// passing reports whether the records that stand alone are steps on the way that one side alone shows.
func (p *filePath) passing() bool {
	return (p.alone[Recorded] == 0) != (p.alone[Replay] == 0) && p.sides[Recorded].left == p.sides[Replay].left &&
		(p.bothSeen() || p.sides[Recorded].nothing() && p.sides[Replay].nothing())
}

func (p *filePath) bothSeen() bool { return p.sides[Recorded].seen && p.sides[Replay].seen }

// withoutPassing takes out of pairs the steps that one side alone shows, and notes their paths. all are the records of the
// lane.
func (c *fileLane) withoutPassing(pairs []pair, all *lanePair) []pair {
	paths := make(map[string]*filePath)
	for _, p := range pairs {
		for s, e := range []*entry{p.a, p.b} {
			if other := []*entry{p.b, p.a}[s]; e != nil && other == nil {
				path := tape.FileOf(e.rec.Kind).Path
				paths[path] = cmp.Or(paths[path], new(filePath))
				paths[path].alone[s]++
				paths[path].whole = paths[path].whole || tape.FieldValue(tape.FileOf(e.rec.Kind).Extra, wholeKey) != nil
			}
		}
	}
	if len(paths) == 0 {
		return pairs
	}
	for s, es := range [][]entry{all.a, all.b} {
		for i := range es {
			if p := paths[tape.FileOf(es[i].rec.Kind).Path]; p != nil {
				p.sides[s].add(es[i].rec.Kind)
			}
		}
	}
	maps.DeleteFunc(paths, func(_ string, p *filePath) bool { return !p.passing() || c.o.Exact && p.whole })
	for _, s := range []Side{Recorded, Replay} {
		var on []string
		for path, p := range paths {
			if p.alone[s] > 0 {
				on = append(on, path)
			}
		}
		if slices.Sort(on); len(on) > 0 {
			c.note("on the way, between two model calls, files stood otherwise in the %s alone, with the same end in both: %s",
				c.differ.names.of(s), list(on, notedPaths))
		}
	}
	return slices.DeleteFunc(pairs, func(p pair) bool {
		return (p.a == nil || p.b == nil) && paths[tape.FileOf(cmp.Or(p.a, p.b).rec.Kind).Path] != nil
	})
}

// compareLong compares what the runs left in files that are too large for a tape.
func (c *fileLane) compareLong() {
	was, now := c.o.LongFiles[Recorded], c.o.LongFiles[Replay]
	paths := slices.Collect(maps.Keys(was))
	for path := range now {
		if _, both := was[path]; !both {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	for _, path := range paths {
		if was[path] == now[path] {
			continue
		}
		if placeOf(path, c.o.Watch) != workTree && !c.o.Exact {
			c.note("files outside the work tree that are too large to keep differ, which does not gate: %s", path)
			continue
		}
		d := Divergence{
			Category: FileWriteHash, Lane: laneFiles, Recorded: cmp.Or(was[path], "nothing"), Replay: cmp.Or(now[path], "nothing"),
			Message: titleOf(FileWriteHash) + " (" + path + ", which is too large to keep)",
		}
		c.place(placed{at: c.end(), Divergence: d})
	}
}

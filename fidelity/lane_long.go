package fidelity

import (
	"cmp"
	"maps"
	"slices"
)

// longFiles compares what the runs left in files that are too large for a tape.
func (c *laneCompare) longFiles() {
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
		c.place(placed{at: len(c.sides[Replay].entries), Divergence: d})
	}
}

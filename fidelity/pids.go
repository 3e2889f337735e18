package fidelity

import (
	"slices"
	"strconv"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// processIDs are whose PIDs are on both sides, as arguments spell them. Threads have numbers of the same row, so which one a process gets
// depends on what the threads of its program do just then: an argument that is a PID compares by whose it is.
type processIDs struct {
	of    [2]map[string]spawnLane
	moved [][2]string // those that differ, recorded and replay
}

// pidsOf finds whose each PID of a side is: of a process that became other programs the last one's, and nobody's where it was given twice.
func pidsOf(side *laneSide, lanes map[int]spawnLane) map[string]spawnLane {
	of := make(map[string]spawnLane)
	for e := range side.records() {
		p, ok := e.spawn()
		lane, compared := lanes[e.at]
		if !ok || !compared || p.PID == 0 || tape.HasFlag(p, tape.AgainKey) {
			continue
		}
		pid := strconv.Itoa(p.PID)
		if _, twice := of[pid]; twice {
			lane = spawnLane{}
		}
		of[pid] = lane
	}
	return of
}

// asRecorded are arguments of the replay, in which a PID is the recorded one of the same process.
func (ids *processIDs) asRecorded(was, now []string) []string {
	out := slices.Clone(now)
	for i := range min(len(was), len(now)) {
		if was[i] != now[i] && ids.same(was[i], now[i]) {
			out[i] = was[i]
		}
	}
	return out
}

// same reports whether two PIDs are of one process.
func (ids *processIDs) same(was, now string) bool {
	a, b := ids.of[Recorded][was], ids.of[Replay][now]
	same := a.key == b.key && a.key != (cas.Digest{})
	if pair := [2]string{was, now}; same && !slices.Contains(ids.moved, pair) {
		ids.moved = append(ids.moved, pair)
	}
	return same
}

// tell notes which processes had another PID where an argument names them by it.
func (ids *processIDs) tell(c *comparison) {
	for _, pair := range ids.moved {
		c.note("an argument names a process by its PID, which is another one: recorded %s, replay %s, of %s", pair[0], pair[1], ids.of[Recorded][pair[0]].name)
	}
}

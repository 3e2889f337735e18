package fidelity

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// processIDs are whose PIDs are on both sides, as arguments spell them. Threads have numbers of the same row, so which one a process gets
// depends on what the threads of its program do just then: an argument that is a PID compares by whose it is.
type processIDs struct {
	of    [2]map[string]spawnLane
	moved [][2]string // those that differ, recorded and replay; at most maxMoved
}

// maxMoved bounds of how many PIDs it is said that another one stood for them.
const maxMoved = 20

// find finds whose each PID of a side is: of the processes that compare, by their lanes, and of MCP servers, which do not run on a replay, by
// their conversations.
func (ids *processIDs) find(s Side, side *laneSide, lanes map[int]spawnLane) {
	ids.of[s] = make(map[string]spawnLane)
	for e := range side.records() {
		switch k := e.rec.Kind.(type) {
		case *tape.ProcessSpawn: // of one that became other programs the last one is
			if lane, compares := lanes[e.at]; compares && !tape.HasFlag(k, tape.AgainKey) {
				ids.add(s, strconv.Itoa(k.PID), lane)
			}
		case *tape.MCPOpen:
			name := fmt.Sprintf("server %d: %s", k.Conversation, k.Server)
			ids.add(s, string(tape.FieldValue(k.Extra, tape.PIDKey)), spawnLane{name, cas.Sum([]byte(name))})
		}
	}
}

// add notes whose a PID is: nobody's where it was given twice.
func (ids *processIDs) add(s Side, pid string, of spawnLane) {
	if _, twice := ids.of[s][pid]; twice || pid == "" || pid == "0" {
		of = spawnLane{}
	}
	ids.of[s][pid] = of
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
	if pair := [2]string{was, now}; same && len(ids.moved) < maxMoved && !slices.Contains(ids.moved, pair) {
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

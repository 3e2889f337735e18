package fidelity

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// An entry is a record of one side and where it stands.
type entry struct {
	rec   *tape.Record
	at    int    // place on its tape, from 0
	calls int    // model calls before it
	id    uint64 // what it is about
}

func (e *entry) runtime() bool { return e.rec.Phase == tape.PhaseRuntimeFinalize }

// laneSide is one tape.
type laneSide struct {
	entries []entry
	calls   int
	program int // place of the last process_spawn, which is the recorded program; -1 for none
}

func (s *laneSide) add(rec *tape.Record) {
	if len(s.entries) == 0 {
		s.program = -1
	}
	e := entry{rec: rec, at: len(s.entries), calls: s.calls}
	switch rec.Kind.(type) {
	case *tape.LLMCall:
		s.calls++
	case *tape.ProcessSpawn:
		s.program = e.at
	}
	s.entries = append(s.entries, e)
}

// A lane is what is compared side by side.
type lane struct {
	name    string
	key     string // the name, and what tells apart those that are compared by themselves in one lane
	entries []entry
}

// keyOf is the key of the lane called name that a record stands in: the exchanges that carry a conversation with a tool server
// have an order of their own.
func keyOf(name string, k tape.Kind) string {
	if strings.HasPrefix(name, laneMCP) && tape.ExchangeOf(k) != nil {
		return name + " http"
	}
	return name
}

// lanes sorts what gates on one side into lanes, in order of their first records.
func (c *laneCompare) lanes(s Side) []*lane {
	side := &c.sides[s]
	names := laneNames{
		side: side, mask: c.o.masked,
		spawns: spawnLanes(side, c.o.masked),
	}
	byKey := make(map[string]*lane)
	var out []*lane
	for i := range side.entries {
		if rec := side.entries[i].rec; rec == nil || tape.HasFlag(rec.Kind, tape.ForkedKey) {
			continue // set aside, or told for its times alone: whether a fork reads a clock is no doing of its own
		}
		e := side.entries[i]
		e.id = c.identityOf(&e)
		name := names.of(&e)
		c.noteURL(name, e.rec.Kind)
		key := keyOf(name, e.rec.Kind)
		if spawn, ok := names.spawns[e.at]; ok {
			key = string(spawn.key[:])
		}
		l := byKey[key]
		if l == nil {
			l = &lane{name: name, key: key}
			byKey[key] = l
			out = append(out, l)
		}
		l.entries = append(l.entries, e)
	}
	for _, l := range out {
		byArrival(l.entries)
		byPlace(l.entries)
	}
	c.keyServers(out)
	return out
}

// identityOf is the identity of a record. In PhaseAware records of two phases are never the same.
func (c *laneCompare) identityOf(e *entry) uint64 {
	id := c.differ.identity(e.rec.Kind)
	if c.mode == PhaseAware && e.runtime() {
		id = ^id
	}
	return id
}

// byArrival orders exchanges as their requests arrived; their records stand in the order in which the answers ended. A lane
// that holds anything else stays as it is.
func byArrival(es []entry) {
	arrival := func(e entry) uint64 {
		if ex := tape.ExchangeOf(e.rec.Kind); ex != nil {
			return ex.Arrival
		}
		return 0
	}
	if !slices.ContainsFunc(es, func(e entry) bool { return arrival(e) == 0 }) {
		slices.SortFunc(es, func(a, b entry) int { return cmp.Or(cmp.Compare(arrival(a), arrival(b)), cmp.Compare(a.at, b.at)) })
	}
}

// laneNames names the lane of every record of one side.
type laneNames struct {
	side    *laneSide
	mask    func(string) string
	spawns  map[int]spawnLane // by place
	sockets SocketLanes
}

func (n *laneNames) of(e *entry) string {
	if _, spawn := e.rec.Kind.(*tape.ProcessSpawn); spawn {
		if e.at == n.side.program {
			return laneProgram
		}
		return n.spawns[e.at].name
	}
	return n.sockets.Of(e.rec.Kind)
}

// A spawnLane is what the lane of a process is called, and what tells it from others.
type spawnLane struct {
	name string
	key  cas.Digest
}

// spawnLanes names the lanes of all processes but the program: by parent's lane, program and arguments and, from the
// second equal one, #n, in the order in which they began. Their records stand in the order in which they ended. The keys are of all of it,
// for names are cut.
func spawnLanes(side *laneSide, mask func(string) string) map[int]spawnLane {
	type started struct {
		at int
		p  *tape.ProcessSpawn
	}
	var all []started
	for _, e := range side.entries {
		if e.rec == nil || tape.HasFlag(e.rec.Kind, tape.ForkedKey) {
			continue
		}
		if p, ok := e.rec.Kind.(*tape.ProcessSpawn); ok && e.at != side.program {
			all = append(all, started{e.at, p})
		}
	}
	slices.SortStableFunc(all, func(a, b started) int { return cmp.Compare(a.p.SpawnID, b.p.SpawnID) })
	lanes, used := make(map[int]spawnLane), make(map[cas.Digest]int)
	bySpawn := make(map[uint64]spawnLane)
	for _, s := range all {
		own := mask(commandOf(s.p))
		l := spawnLane{name: own, key: cas.Sum([]byte(own))}
		if parent, ok := bySpawn[s.p.ParentSpawnID]; ok && s.p.ParentSpawnID != 0 {
			l = spawnLane{name: parent.name + " > " + own, key: cas.Sum(append(parent.key[:], own...))}
		}
		l.name = shortened(l.name)
		used[l.key]++
		if n := used[l.key]; n > 1 {
			l = spawnLane{name: fmt.Sprintf("%s#%d", l.name, n), key: cas.Sum(fmt.Append(l.key[:], n))}
		}
		bySpawn[s.p.SpawnID] = l
		l.name = "process:" + l.name
		lanes[s.at] = l
	}
	return lanes
}

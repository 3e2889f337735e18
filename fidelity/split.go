package fidelity

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// Names of lanes that are not named by their records. laneUnmatched is that of package exchange.
const (
	laneUnmatched = "unmatched"
	laneProgram   = "program"
	laneFiles     = "files"
	laneNetwork   = "network"
	laneClock     = "clock"
)

// laneMCP is what the name of an MCP server's lane begins with.
const laneMCP = "mcp:"

// LaneOf names the lane of a record as CompareLanes does, as far as the record alone tells:
//
//	exchange, ws_open            its own lane; where it names none "llm:", "http:" or "ws:" and its host; a call without a
//	                             host is "llm"
//	ws_message, ws_close         "ws:" and the number of its connection
//	process_spawn                "program" where it has no parent, else "process:", the name of its program and its arguments
//	file_read, file_write, file_delete  "files"
//	tls_refused, net_refused, name_lookup  "network"
//	clock_*                      "clock"
//	mcp_*                        "mcp:" and its server
//	any other                    the name of its kind
//
// CompareLanes, which sees all records, takes the last process alone for the program, names a child process by its
// parents too, arguments masked and equal ones numbered, and gives WebSocket messages the lane of their opening, as SocketLanes
// does.
func LaneOf(k tape.Kind) string {
	switch k := k.(type) {
	case *tape.HTTPExchange:
		return laneOr(k.Lane, "http:", k.URL)
	case *tape.LLMCall:
		return cmp.Or(k.Lane, strings.TrimSuffix(laneOr(k.Lane, "llm:", k.URL), ":"))
	case *tape.ProcessSpawn:
		if k.ParentSpawnID == 0 {
			return laneProgram
		}
		return "process:" + shortened(commandOf(k))
	case *tape.FileRead, *tape.FileWrite, *tape.FileDelete:
		return laneFiles
	case *tape.TLSRefused, *tape.NetRefused, *tape.NameLookup:
		return laneNetwork
	case *tape.ClockRead, *tape.ClockSleep:
		return laneClock
	case *tape.MCPOpen, *tape.MCPJSONRPC, *tape.MCPText, *tape.MCPClose:
		return laneMCP + *tape.ServerOf(k)
	case *tape.WSOpen:
		return laneOr(k.Lane, "ws:", k.URL)
	case *tape.WSMessage:
		return socketLane(k.Connection)
	case *tape.WSClose:
		return socketLane(k.Connection)
	}
	return k.Name()
}

// laneOr is the lane that a record names, or else that of its host: few name none, and to parse a URL costs.
func laneOr(named, prefix, address string) string {
	if named != "" {
		return named
	}
	return prefix + tape.HostOf(address)
}

// SocketLanes names lanes as LaneOf does, and those of WebSocket messages by their openings, which it has seen before: that of
// the opening, and #2 for the second opening in one lane. The zero value has seen none.
type SocketLanes struct {
	byConnection map[uint64]string
	opened       map[string]int
}

// Of names the lane of a record. It is called for the records of a tape in their order, for some more than once.
func (l *SocketLanes) Of(k tape.Kind) string {
	switch k := k.(type) {
	case *tape.WSOpen:
		return l.open(k)
	case *tape.WSMessage:
		return l.of(k.Connection)
	case *tape.WSClose:
		return l.of(k.Connection)
	}
	return LaneOf(k)
}

func (l *SocketLanes) open(k *tape.WSOpen) string {
	if l.byConnection == nil {
		l.byConnection, l.opened = make(map[uint64]string), make(map[string]int)
	}
	connection := cmp.Or(k.Connection, k.Arrival)
	if name := l.byConnection[connection]; name != "" && connection != 0 {
		return name
	}
	name := LaneOf(k)
	if l.opened[name]++; l.opened[name] > 1 && name != laneUnmatched {
		name = fmt.Sprintf("%s#%d", name, l.opened[name])
	}
	l.byConnection[connection] = name
	return name
}

func (l *SocketLanes) of(connection uint64) string {
	return cmp.Or(l.byConnection[connection], socketLane(connection))
}

// socketLane is the lane of a WebSocket whose opening is not known.
func socketLane(connection uint64) string { return "ws:" + strconv.FormatUint(connection, 10) }

// A lane is what is compared side by side.
type lane struct {
	name    string
	key     string // the name, and what tells apart those that are compared by themselves in one lane
	entries []*entry
}

// keyOf is the key of the lane called name that a record stands in: the exchanges that carry a conversation with a tool server
// have an order of their own.
func keyOf(name string, k tape.Kind) string {
	if strings.HasPrefix(name, laneMCP) && tape.ExchangeOf(k) != nil {
		return name + " http"
	}
	return name
}

// lanesOf sorts what gates on one side into lanes, in order of their first records; urls are those of its WebSockets, by
// lane. Both sides may be sorted at once.
func lanesOf(c *comparison, s Side) (out []*lane, urls map[string]string) {
	side := &c.sides[s]
	spawns := spawnLanes(side, c.o.masked)
	if program := side.programEntry(); program != nil {
		spawns[program.at] = &spawnLane{laneProgram, cas.Sum([]byte(laneProgram))}
	}
	c.pids.find(s, side, spawns)
	var sockets SocketLanes
	byKey := make(map[string]*lane)
	urls = make(map[string]string)
	for e := range side.records(anything) {
		if side.sorts[e.at]&ofProcess != 0 && tape.HasFlag(e.rec.Kind, tape.ForkedKey) {
			continue // told for its times alone: whether a fork reads a clock is no doing of its own
		}
		e.id = c.identityOf(e)
		name := sockets.Of(e.rec.Kind)
		if open, ok := e.rec.Kind.(*tape.WSOpen); ok {
			urls[name] = open.URL
		}
		key := keyOf(name, e.rec.Kind)
		if spawn := spawns[e.at]; spawn != nil {
			name, key = spawn.name, string(spawn.key[:])
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
	keyServers(out, c.o.masked)
	return out, urls
}

// byArrival orders exchanges as their requests arrived; their records stand in the order in which the answers ended. A lane
// that holds anything else stays as it is.
func byArrival(es []*entry) {
	arrival := func(e *entry) uint64 {
		if ex := tape.ExchangeOf(e.rec.Kind); ex != nil {
			return ex.Arrival
		}
		return 0
	}
	if !slices.ContainsFunc(es, func(e *entry) bool { return arrival(e) == 0 }) {
		slices.SortFunc(es, func(a, b *entry) int { return cmp.Or(cmp.Compare(arrival(a), arrival(b)), cmp.Compare(a.at, b.at)) })
	}
}

// A spawnLane is what the lane of a process is called, and what tells it from others.
type spawnLane struct {
	name string
	key  cas.Digest
}

// spawnLanes names the lanes of all processes but the program, each at the place of its record, nil at any other: by parent's lane, program
// and arguments and, from the second equal one, #n, in the order in which they began. Their records stand in the order in which they ended.
// The keys are of all of it, for names are cut.
func spawnLanes(side *laneSide, mask func(string) string) []*spawnLane {
	type started struct {
		at int
		p  *tape.ProcessSpawn
	}
	var all []started
	for e := range side.records(ofProcess) {
		if p, ok := e.spawn(); ok && e.at != side.program {
			all = append(all, started{e.at, p})
		}
	}
	slices.SortStableFunc(all, func(a, b started) int { return cmp.Compare(a.p.SpawnID, b.p.SpawnID) })
	lanes, used := make([]*spawnLane, len(side.entries)), make(map[cas.Digest]int)
	bySpawn := make(map[uint64]spawnLane, len(all))
	for _, s := range all {
		parent, ok := bySpawn[s.p.ParentSpawnID]
		if tape.HasFlag(s.p, tape.ForkedKey) { // what it starts is its parent's
			if ok {
				bySpawn[s.p.SpawnID] = parent
			}
			continue
		}
		own := mask(commandOf(s.p))
		l := spawnLane{name: own, key: cas.Sum([]byte(own))}
		if ok && s.p.ParentSpawnID != 0 {
			l = spawnLane{name: parent.name + " > " + own, key: cas.Sum(append(parent.key[:], own...))}
		}
		l.name = shortened(l.name)
		used[l.key]++
		if n := used[l.key]; n > 1 {
			l = spawnLane{name: fmt.Sprintf("%s#%d", l.name, n), key: cas.Sum(fmt.Append(l.key[:], n))}
		}
		bySpawn[s.p.SpawnID] = l
		lanes[s.at] = &spawnLane{"process:" + l.name, l.key}
	}
	return lanes
}

// byPlace orders the records of a conversation with a tool server by the place of their lines in it: a call's record stands
// where its answer came. Where a place is not known they stay as they are.
func byPlace(es []*entry) {
	for i := range es {
		if _, ok := placeIn(es[i].rec.Kind); !ok {
			return
		}
	}
	slices.SortStableFunc(es, func(a, b *entry) int {
		pa, _ := placeIn(a.rec.Kind)
		pb, _ := placeIn(b.rec.Kind)
		return cmp.Or(cmp.Compare(pa.conversation, pb.conversation), cmp.Compare(pa.line, pb.line), cmp.Compare(a.at, b.at))
	})
}

// keyServers gives the lanes of tool servers keys that say what was started: of two with one name, which is told of first, and so
// is called #2, is a matter of moments. Of equal ones the numbers count, which on a replay are those of the recorded conversations.
func keyServers(lanes []*lane, mask func(string) string) {
	number := func(l *lane) uint64 {
		place, _ := placeIn(l.entries[0].rec.Kind)
		return place.conversation
	}
	lanes = slices.SortedStableFunc(slices.Values(lanes), func(a, b *lane) int { return cmp.Compare(number(a), number(b)) })
	used := make(map[string]int)
	for _, l := range lanes {
		open, ok := l.entries[0].rec.Kind.(*tape.MCPOpen)
		if !ok {
			continue
		}
		parts := []string{tape.MCPServer(l.name), open.Transport, mask(open.Program), mask(open.URL)}
		for _, a := range open.Args {
			parts = append(parts, mask(a))
		}
		l.key = strings.Join(parts, "\x00")
		used[l.key]++
		l.key += fmt.Sprintf("\x00#%d", used[l.key])
	}
}

// A linePlace is where in a conversation something stands.
type linePlace struct{ conversation, line uint64 }

func placeIn(k tape.Kind) (linePlace, bool) {
	switch k := k.(type) {
	case *tape.MCPOpen:
		return linePlace{k.Conversation, 0}, true
	case *tape.MCPJSONRPC:
		return linePlace{k.Conversation, k.Arrival}, k.Arrival > 0
	case *tape.MCPText:
		return linePlace{k.Conversation, k.Arrival}, true
	case *tape.MCPClose:
		return linePlace{k.Conversation, k.Arrival + 1}, true
	}
	return linePlace{}, false
}

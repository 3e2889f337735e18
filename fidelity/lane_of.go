package fidelity

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

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
		return cmp.Or(k.Lane, "http:"+tape.HostOf(k.URL))
	case *tape.LLMCall:
		return cmp.Or(k.Lane, strings.TrimSuffix("llm:"+tape.HostOf(k.URL), ":"))
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
		return cmp.Or(k.Lane, "ws:"+tape.HostOf(k.URL))
	case *tape.WSMessage:
		return socketLane(k.Connection)
	case *tape.WSClose:
		return socketLane(k.Connection)
	}
	return k.Name()
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

package deck

import (
	"slices"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/lane"
)

// A pidMap has the PIDs of recorded processes, by those that the same ones have on a replay; 0 of one that is on no tape. While recording it is
// nil.
type pidMap struct {
	recorded *recordedProcesses
	begun    *lane.Gate[int]    // by recorded PID
	over     *lane.Gate[uint64] // by number
	looked   *lane.Gate[look]

	mu      sync.Mutex
	by      map[int]int
	program int              // of the first one
	looking map[uint64][]int // processes that look through all now, by number: the recorded PIDs of those that they saw
}

// A look is what one process is told of another one, which had a recorded PID.
type look struct {
	by  uint64
	pid int
}

// A process that looks through all is over soon. What begins while it looks it sees or not, and it is not held up for longer.
const (
	looksFor = time.Second
	lookLate = 2 * time.Second
)

func newPIDMap(again *recordedProcesses) *pidMap {
	return &pidMap{
		recorded: again, begun: lane.NewGate[int](lookLate, nil), over: lane.NewGate[uint64](0, nil), looked: lane.NewGate[look](0, nil),
		by: make(map[int]int), looking: make(map[uint64][]int),
	}
}

func (m *pidMap) add(pid, was int) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.by) == 0 {
		m.program = was
	}
	m.by[pid] = was
	m.begun.Happened(was)
}

func (m *pidMap) ended(number uint64) {
	if m == nil {
		return
	}
	m.over.Happened(number)
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, pid := range m.looking[number] {
		m.looked.Happened(look{number, pid})
	}
	delete(m.looking, number)
}

// begins is told of a process that has begun. What it sees, where it looks through all, waits for it.
func (m *pidMap) begins(i *processInputs) {
	if m == nil || i.id == programID || i.took() > looksFor {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if seen := i.answers.Listed(m.program); len(seen) > 0 {
		m.looking[i.id] = seen
	}
}

// told is told of what a process was just told of one that had a recorded PID.
func (m *pidMap) told(by *processInputs, was int) {
	if !by.answers.Left(was) {
		m.looked.Happened(look{by.id, was})
	}
}

// seenBy are the looks of others that a process, which is about to end, waits for: they found it then.
func (m *pidMap) seenBy(i *processInputs) (looks []lane.Condition[look]) {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	was, known := m.by[i.program.PID]
	if !known {
		return nil
	}
	for number, seen := range m.looking {
		if number != i.id && slices.Contains(seen, was) { // it sees itself too
			looks = append(looks, lane.Condition[look]{What: look{number, was}, Since: time.Now(), For: looksFor, Chances: 1})
		}
	}
	return looks
}

// addServer adds the process that stands for the server of a recorded conversation.
func (p *processes) addServer(pid int, conversation uint64) {
	if p == nil || p.pids == nil {
		return
	}
	if was := p.again.servers[conversation]; was != 0 {
		p.pids.add(pid, was)
	}
}

// was is the recorded PID of the process that has pid, and that of the program. A fork that has executed nothing has the recorded one, or -1
// where another one had that.
func (m *pidMap) was(pid int) (was, program int) {
	if m == nil {
		return 0, 0
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	was, known := m.by[pid]
	switch {
	case known:
	case m.recorded.pids[pid]:
		was = -1
	default:
		was = pid
	}
	return was, m.program
}

// missed says who looked before all that it saw then had begun.
func (m *pidMap) missed() []string {
	if m == nil {
		return nil
	}
	return m.begun.Missed()
}

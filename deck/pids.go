package deck

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/lane"
)

// A pidMap has the PIDs of recorded processes, by those that the same ones have on a replay; 0 of one that is on no tape. While recording it is
// nil.
type pidMap struct {
	recorded *recordedProcesses
	begun    *lane.Gate[int] // by recorded PID

	mu      sync.Mutex
	by      map[int]int
	program int // of the first one
}

// A process that looks through all is over soon. What begins while it looks it sees or not, and it is not held up for longer.
const (
	looksFor = time.Second
	lookLate = 2 * time.Second
)

func newPIDMap(again *recordedProcesses) *pidMap {
	return &pidMap{recorded: again, begun: lane.NewGate[int](lookLate, nil), by: make(map[int]int)}
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

// addServer adds the process that stands for the server of a recorded conversation.
func (m *pidMap) addServer(pid int, conversation uint64) {
	if m == nil {
		return
	}
	if was := m.recorded.servers[conversation]; was != 0 {
		m.add(pid, was)
	}
}

// was is the recorded PID of the process that has pid, and that of the program. A fork that has executed nothing yet has the recorded one.
func (m *pidMap) was(pid int) (was, program int) {
	if m == nil {
		return 0, 0
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	was, known := m.by[pid]
	if !known {
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

// unlisted reports whether a process was not there when the recorded one looked through all: pgrep finds on a replay what it found then.
func (i *processInputs) unlisted(pid int) bool {
	was, program := i.of.pids.was(pid)
	return was != 0 && i.answers.Unlisted(was, program)
}

// Beginning implements jail.Source: a process that looked through all begins once those have begun that it saw. It may have looked while
// another thread of its parent started them.
func (i *processInputs) Beginning() func(ctx context.Context) {
	took := time.Duration(i.tookMS) * time.Millisecond
	if i.of.pids == nil || i.id == programID || took > looksFor {
		return nil
	}
	_, program := i.of.pids.was(i.program.PID)
	seen := i.answers.Listed(program)
	var begun []lane.Condition[int]
	for _, pid := range seen {
		if i.of.pids.recorded.pids[pid] {
			begun = append(begun, lane.Condition[int]{
				What: pid, Since: time.Now(), For: took + lookLate,
				Why: fmt.Sprintf("process %d looks through all processes, of which the recorded one saw %d, that has not begun", i.id, pid),
			})
		}
	}
	if !i.of.pids.begun.Holds(begun) {
		return nil
	}
	return func(ctx context.Context) { _ = i.of.pids.begun.Await(ctx, begun) }
}

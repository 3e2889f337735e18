package deck

import (
	"strconv"
	"strings"
	"sync"

	"github.com/tapedeck-dev/tapedeck/axis/ambient"
)

// forks are the PIDs that a run's processes and threads get, in the order in which each of them made others: answers to the program, so that
// those have a place on the tape that execute nothing and ask for nothing.
type forks struct {
	mu      sync.Mutex
	answers *ambient.Answers // nil: the program has not begun
	unused  int              // a PID above all recorded ones, which are in use there; 0 where none is recorded
}

// forked is what the answers are kept by.
const forked = "fork "

// of takes the answers to the program.
func (f *forks) of(program *ambient.Answers) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answers = program
	for asked, answer := range program.Recorded() {
		if pid, err := strconv.Atoi(string(answer)); err == nil && strings.HasPrefix(asked, forked) {
			f.unused = max(f.unused, pid+1)
		}
	}
}

// Fork implements jail.Inputs. What is on no tape gets a PID that no recorded process has.
func (p *processes) Fork(by string) (pid int) {
	f := &p.forks
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.unused == 0 {
		return 0
	}
	if pid, err := strconv.Atoi(string(f.answers.Next(forked + by))); err == nil {
		return pid
	}
	f.unused++
	return f.unused - 1
}

// Forked implements jail.Inputs.
func (p *processes) Forked(by string, pid int) {
	f := &p.forks
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answers.Gave(forked+by, strconv.AppendInt(nil, int64(pid), 10))
}

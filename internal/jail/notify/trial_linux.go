package notify

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
)

// TrialPath is that of calls for trial: it can be made, or executed, by nobody.
const TrialPath = "/proc/tapedeck trial"

// A Trial is a call of TrialPath that the exec stage makes before it becomes the program, so that what cannot be done with calls of what has
// the program's credentials is found before the run.
type Trial struct {
	mu    sync.Mutex // until armed is set
	tried bool
	off   error

	armed atomic.Bool
}

// Armed reports whether calls are the program's, and no trials.
func (t *Trial) Armed() bool { return t.armed.Load() }

// Off says why calls of the program are left alone; nil where they are not.
func (t *Trial) Off() error { return t.off }

// Came is told what came of the trial.
func (t *Trial) Came(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tried, t.off = true, err
}

// Arm makes everything from now on the program's. The error is Off's: without a trial of this kind of call they are left alone.
func (t *Trial) Arm(kind string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.tried {
		t.off = errors.New("the trial notification of " + kind + " did not come")
	}
	t.armed.Store(true)
	return t.off
}

// Unreadable says why a program's memory cannot be read, and what would change that.
func Unreadable(err error) error {
	if err == nil {
		err = errors.New("other bytes came than stand there")
	}
	return fmt.Errorf("a program's memory cannot be read: %w (%s)", err, ToRead())
}

// ToRead says what must change where a program's memory cannot be read.
func ToRead() string {
	if scope, _ := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope"); strings.TrimSpace(string(scope)) == "3" {
		return "kernel.yama.ptrace_scope is 3: boot with a lower one"
	}
	return "a security module or a container's seccomp profile forbids process_vm_readv or pidfd_getfd: allow it"
}

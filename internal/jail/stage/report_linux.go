package stage

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/tapedeck-dev/tapedeck/internal/jail/connect"
	"github.com/tapedeck-dev/tapedeck/internal/jail/inspect"
	"github.com/tapedeck-dev/tapedeck/internal/jail/spawns"
	"github.com/tapedeck-dev/tapedeck/internal/jail/step"
	"golang.org/x/sys/unix"
)

// A Step is what the exec stage says that it has done or, with an error's number, that it could not do: two bytes, a packet.
type Step = byte

// The steps in their order.
const (
	stepNone Step = iota
	stepFork      // the init's
	stepSession
	stepStreams
	stepDir
	stepDrop
	stepLock
	stepAmbient
	stepPrivileges
	stepFilter
	StepListener // the notification listener is here
	stepTrace
	stepConnect
	stepRefused
	StepReady // all stands, and it waits for Go
	stepClose
	stepExec
)

// OpFilter is the step that installs the filter.
const OpFilter = "install the system call filter"

// steps are those that fail as a *step.Error.
var steps = map[Step]string{
	stepFork: "start the exec stage", stepSession: "begin the program's session", stepStreams: "hand over the program's streams",
	stepDrop: "drop capabilities", stepLock: "lock capabilities", stepAmbient: "drop ambient capabilities", stepPrivileges: "set no_new_privs",
	stepFilter: OpFilter, stepTrace: spawns.Step, stepConnect: connect.Step, stepRefused: OpFilter, stepClose: "close descriptors",
}

// failure is a step that failed with errno, 0 where a call succeeded that must not, as the error that it is.
func (s *ExecSpec) failure(failed Step, errno syscall.Errno) error {
	var detail string
	switch failed {
	case stepDir:
		return &step.ExecError{Op: "chdir", Path: s.Dir, Err: errno}
	case stepExec:
		return &step.ExecError{Op: "execve", Path: s.Path, Err: errno}
	case stepConnect:
		if detail = "the trial was not refused as it must be"; errno == unix.EPERM {
			detail = toRead()
		}
	case stepRefused:
		if detail = "the trial notification was not answered"; errno == 0 {
			detail = "a refused call was let through"
		}
	}
	op, ok := steps[failed]
	if !ok {
		return fmt.Errorf("the exec stage says %d: %w", failed, errno)
	}
	if errno == 0 {
		errno = unix.ENOTSUP
	}
	return &step.Error{Op: op, Detail: detail, Err: errno}
}

// toRead says what must change where a program's memory cannot be read.
func toRead() string {
	if scope, _ := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope"); strings.TrimSpace(string(scope)) == "3" {
		return "kernel.yama.ptrace_scope is 3: boot with a lower one"
	}
	return "a security module or a container's seccomp profile forbids process_vm_readv or pidfd_getfd: allow it"
}

// An Exec is the recorder's end of the exec stage's control socket.
type Exec struct {
	*net.UnixConn
	spec *ExecSpec
}

// NewExec makes a connected pair: our end, and the file that the exec stage of spec inherits.
func NewExec(spec *ExecSpec) (*Exec, *os.File, error) {
	ours, theirs, err := pair()
	if err != nil {
		return nil, nil, err
	}
	return &Exec{ours, spec}, theirs, nil
}

// Expect waits until a step is done, and returns the descriptors that came with it. The error is that of the step that failed, io.EOF where
// the other end is gone.
func (e *Exec) Expect(done Step) ([]int, error) {
	var packet [2]byte
	oob := make([]byte, unix.CmsgSpace(4))
	n, oobn, _, _, err := e.ReadMsgUnix(packet[:], oob)
	if err != nil {
		return nil, orGone(err)
	}
	if n == 0 {
		return nil, io.EOF
	}
	fds, err := rightsOf(oob[:oobn])
	if err == nil && packet[0] != done {
		inspect.CloseAll(fds)
		fds, err = nil, e.spec.failure(packet[0], syscall.Errno(packet[1]))
	}
	return fds, err
}

// Go lets the exec stage become the program, and returns once it has.
func (e *Exec) Go() error {
	if _, err := e.Write([]byte{0}); err != nil {
		return err
	}
	_, err := e.Expect(stepNone)
	if errors.Is(err, io.EOF) { // its end is closed by execve
		return nil
	}
	return err
}

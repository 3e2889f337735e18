package stage

import (
	"cmp"
	"errors"
	"math"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"unsafe"

	"github.com/tapedeck-dev/tapedeck/internal/jail/changes"
	"github.com/tapedeck-dev/tapedeck/internal/jail/connect"
	"github.com/tapedeck-dev/tapedeck/internal/jail/filter"
	"github.com/tapedeck-dev/tapedeck/internal/jail/inputs"
	"github.com/tapedeck-dev/tapedeck/internal/jail/notify"
	"github.com/tapedeck-dev/tapedeck/internal/jail/spawns"
	"github.com/tapedeck-dev/tapedeck/internal/jail/step"
	"golang.org/x/sys/unix"
)

// runExec is the process that becomes the program. Capabilities and filters belong to a thread, and execve keeps those
// of the thread that calls it: everything happens on one, and the runtime's other threads stay as they were.
func runExec() {
	runtime.LockOSThread()
	if misnumbered(os.Getpid()) {
		return
	}
	ctl, err := newControl(controlFD)
	if err != nil {
		return
	}
	ctl.Send(failed(becomeProgram(ctl)))
	os.Exit(127)
}

// becomeProgram returns only when it failed, and then always an error.
func becomeProgram(ctl *Control) error {
	var spec ExecSpec
	if err := readSpec(execSpecFD, &spec); err != nil {
		return &step.Error{Op: "read the program's spec", Err: err}
	}
	prepare, _, err := ctl.Expect(MsgPrepare)
	if err != nil {
		return err
	}
	if err := os.Chdir(spec.Dir); err != nil {
		return &step.ExecError{Op: "chdir", Path: spec.Dir, Err: step.Errno(err)}
	}
	setLastPID(lastPIDFD, filter.ChildPID-1)
	if err := confine(ctl, prepare.Notified); err != nil {
		return err
	}
	if err := ctl.Send(&Message{Kind: MsgReady}); err != nil {
		return err
	}
	if _, _, err := ctl.Expect(MsgGo); err != nil {
		return err
	}
	if prepare.Notified.Inputs {
		fixAddresses()
	}
	for _, sig := range spec.Ignored {
		signal.Ignore(sig)
	}
	// Descriptors that the recorder's caller left open to all its children are not the program's.
	if err := closeOnExec(); err != nil {
		return &step.Error{Op: "close descriptors", Err: err}
	}
	err = syscall.Exec(spec.Path, spec.Argv, spec.Env)
	return &step.ExecError{Op: "execve", Path: spec.Path, Err: step.Errno(err)}
}

// confine takes from this thread what the program must not have, hands out the filter's listener and tries it.
func confine(ctl *Control, o Notified) error {
	if err := dropCapabilities(); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return &step.Error{Op: "set no_new_privs", Err: err}
	}
	fd, err := filter.Install(o.rules())
	if err != nil {
		return &step.Error{Op: OpFilter, Err: err}
	}
	err = ctl.Send(&Message{Kind: MsgListener}, fd)
	unix.Close(fd)
	if err != nil {
		return err
	}
	if o.Files {
		_ = unix.Mkdirat(unix.AT_FDCWD, notify.TrialPath, 0) // what came of it the recorder knows
	}
	if o.Spawns {
		trySpawn()
	}
	if err := tryConnect(); err != nil {
		return err
	}
	return tryNotification()
}

// OpFilter is the step that installs the filter.
const OpFilter = "install the system call filter"

// rules are those of the filter: reads of clocks and opens first.
func (o Notified) rules() []filter.Rule {
	var rules []filter.Rule
	if o.Inputs {
		rules = append(rules, inputs.Rules(o.Ticks, o.Shifted)...)
	}
	if o.Files {
		rules = append(rules, changes.Rules()...)
	}
	if o.Spawns {
		rules = append(rules, spawns.Rules()...)
	}
	return append(rules, filter.Always()...)
}

// trySpawn makes an execve with nothing, which could never succeed. What came of it the recorder knows.
func trySpawn() {
	path, err := unix.BytePtrFromString(notify.TrialPath)
	if err == nil {
		_, _, _ = unix.RawSyscall(unix.SYS_EXECVE, uintptr(unsafe.Pointer(path)), 0, 0)
	}
}

// tryConnect makes a connect that the recorder must make, and which nobody can accept.
func tryConnect() error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return &step.Error{Op: connect.Step, Err: err}
	}
	defer unix.Close(fd)
	switch err := unix.Connect(fd, &unix.SockaddrUnix{Name: "@tapedeck trial"}); {
	case errors.Is(err, unix.ECONNREFUSED):
		return nil
	case errors.Is(err, unix.EPERM):
		return &step.Error{Op: connect.Step, Detail: notify.ToRead(), Err: err}
	default:
		return &step.Error{Op: connect.Step, Detail: "the trial was not refused as it must be", Err: cmp.Or(err, error(unix.ENOTSUP))}
	}
}

// tryNotification makes a call that must reach the recorder and come back refused, so that a kernel on which
// notifications do not work is found before the run.
func tryNotification() error {
	fd, _, errno := unix.RawSyscall(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_RAW)
	switch errno {
	case 0:
		unix.Close(int(fd))
		return &step.Error{Op: OpFilter, Detail: "a refused call was let through", Err: unix.ENOTSUP}
	case unix.EPERM:
		return nil
	}
	return &step.Error{Op: OpFilter, Detail: "the trial notification was not answered", Err: errno}
}

// dropCapabilities empties every set of this thread, and locks what would give a uid 0 its capabilities back.
func dropCapabilities() error {
	for c := uintptr(0); ; c++ {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		if errors.Is(err, unix.EINVAL) && c > 0 {
			break // past the last one that this kernel knows
		}
		if err != nil {
			return &step.Error{Op: "drop capabilities", Err: err}
		}
	}
	// NOROOT, NO_SETUID_FIXUP, KEEP_CAPS cleared, NO_CAP_AMBIENT_RAISE: each with its lock (linux/securebits.h).
	const locked = 1<<0 | 1<<1 | 1<<2 | 1<<3 | 1<<5 | 1<<6 | 1<<7
	if err := unix.Prctl(unix.PR_SET_SECUREBITS, locked, 0, 0, 0); err != nil {
		return &step.Error{Op: "lock capabilities", Err: err}
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return &step.Error{Op: "drop ambient capabilities", Err: err}
	}
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&hdr, &none[0]); err != nil {
		return &step.Error{Op: "drop capabilities", Err: err}
	}
	return nil
}

// fixAddresses makes the kernel give each program of this process and of its children the same addresses in every run. Where it does
// not, they are an input that is not given again.
func fixAddresses() {
	const addrNoRandomize, query = 0x0040000, 0xffffffff // ADDR_NO_RANDOMIZE of linux/personality.h
	if now, _, errno := unix.RawSyscall(unix.SYS_PERSONALITY, query, 0, 0); errno == 0 {
		_, _, _ = unix.RawSyscall(unix.SYS_PERSONALITY, now|addrNoRandomize, 0, 0)
	}
}

// closeOnExec marks every descriptor above 2.
func closeOnExec() error {
	return unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC)
}

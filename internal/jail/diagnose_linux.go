package jail

import (
	"errors"
	"os"
	"strings"
	"syscall"

	"github.com/tapedeck-dev/tapedeck/internal/jail/connect"
	"github.com/tapedeck-dev/tapedeck/internal/jail/mount"
	"github.com/tapedeck-dev/tapedeck/internal/jail/spawns"
	"github.com/tapedeck-dev/tapedeck/internal/jail/stage"
	"github.com/tapedeck-dev/tapedeck/internal/jail/step"
	"golang.org/x/sys/unix"
)

var errProcessor = &UnavailableError{Reason: "there is no system call filter for this processor, only for amd64 and arm64"}

// A sysctl that forbids unprivileged user namespaces where it has this value.
type sysctl struct {
	path, value string
	rootToo     bool
	remedy      string
}

var sysctls = []sysctl{
	{"/proc/sys/user/max_user_namespaces", "0", true, "sysctl -w user.max_user_namespaces=16384"},
	{"/proc/sys/kernel/unprivileged_userns_clone", "0", false, "sysctl -w kernel.unprivileged_userns_clone=1"},
	{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1", false,
		"sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or an AppArmor profile that allows userns"},
}

// forbiddenBySysctl names the setting that forbids user namespaces to this user; nil where none does.
func forbiddenBySysctl() *UnavailableError {
	for _, s := range sysctls {
		if os.Geteuid() == 0 && !s.rootToo {
			continue
		}
		data, err := os.ReadFile(s.path)
		if err == nil && strings.TrimSpace(string(data)) == s.value {
			name := strings.ReplaceAll(strings.TrimPrefix(s.path, "/proc/sys/"), "/", ".")
			return &UnavailableError{Reason: "user namespaces are switched off: " + name + " is " + s.value, Remedy: s.remedy}
		}
	}
	return nil
}

// diagnoseStart says why the init could not be started in namespaces of its own.
func diagnoseStart(err error) error {
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return err
	}
	switch errno {
	case unix.EPERM, unix.EACCES, unix.ENOSPC, unix.EINVAL, unix.ENOSYS, unix.EUSERS:
	default:
		return err
	}
	if u := forbiddenBySysctl(); u != nil {
		return u
	}
	u := &UnavailableError{Reason: "new namespaces cannot be made: " + errno.Error()}
	switch errno {
	case unix.EPERM, unix.EACCES:
		u.Remedy = "in a container, allow user namespaces: its seccomp profile or its missing CAP_SYS_ADMIN forbids them"
	case unix.ENOSPC, unix.EUSERS:
		u.Remedy = "raise the limits in /proc/sys/user, or nest fewer namespaces"
	case unix.EINVAL, unix.ENOSYS:
		u.Remedy = "a kernel with CONFIG_USER_NS, CONFIG_NET_NS and CONFIG_PID_NS"
	}
	return u
}

// diagnoseSetup turns the failure of a step that every jail needs into an *UnavailableError, and returns any other error
// as it is.
func diagnoseSetup(err error) error {
	var e *step.Error
	if !errors.As(err, &e) || errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) {
		return err
	}
	if errors.Is(err, unix.ENOSYS) {
		return &UnavailableError{Reason: "this kernel lacks a call: " + e.Error(), Remedy: "Linux 5.12 or newer"}
	}
	switch e.Op {
	case mount.OpPrivate:
		if u := forbiddenBySysctl(); u != nil {
			return u
		}
		return &UnavailableError{Reason: "the new user namespace has no capabilities: " + e.Error()}
	case mount.OpProc:
		return &UnavailableError{Reason: e.Error(),
			Remedy: "where parts of /proc are covered, as in Docker, show it whole: --security-opt systempaths=unconfined"}
	case connect.Step:
		return &UnavailableError{Reason: e.Error(), Remedy: "connections are made in the program's place: that takes CONFIG_UNIX_DIAG, process_vm_readv and" +
			" pidfd_getfd (Linux 5.10 and newer; not where kernel.yama.ptrace_scope is 3, or a container's seccomp profile forbids them)"}
	case spawns.Step:
		return &UnavailableError{Reason: e.Error(), Remedy: "programs are stopped at their start: let a container's seccomp profile allow ptrace"}
	case stage.OpFilter:
		return &UnavailableError{Reason: e.Error(), Remedy: "a kernel with seccomp notifications (Linux 5.9 and newer), not nested in another jail"}
	}
	return err
}

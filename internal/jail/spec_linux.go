package jail

import (
	"encoding/gob"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// An initSpec is what the init is told at its start. Paths are resolved: none goes through a symbolic link.
type initSpec struct {
	Trial    bool // only try what most often fails: namespaces and a fresh /proc
	Hostname string
	Umask    *int
	Ports    []uint16
	TTY      int

	Background bool // the program does not get the terminal yet
	Mounts     mountPlan
}

// An execSpec is what the exec stage is told at its start.
type execSpec struct {
	Path, Dir string
	Argv, Env []string
	Ignored   []syscall.Signal // signals that the program ignores from its start
}

// A mountPlan is what the init mounts, found out by the recorder on the host's tree.
type mountPlan struct {
	Targets []mountTarget // shallow ones first, no two alike
	Masks   []string      // existing files and directories
	Files   []File        // Over: existing files
	Resolv  string        // what /etc/resolv.conf is on the host; empty where there is none
	Console string        // the slave of the program's terminal; empty for none

	// Uncovered says that the init inherits what is mounted below overlays, from submountFD on: see mountPlan.submounts.
	Uncovered bool
	covering  []string // the recorder's alone: outermost mount points below lowers of overlays
}

// A mountTarget is a directory that the program may change. Its overlay is nil where it changes the host's.
type mountTarget struct {
	Path      string
	Within    bool // it lies in another writable directory: a mount of its own would split what can be renamed
	Overlay   *Overlay
	Covered   []string // of an overlay: mount points of the host below its lowers
	Submounts []string // of an overlay: mount points of the host below Path that stay read-only, outermost ones only

	Mount   bool   // it is a mount of the host's below another overlay
	Flags   uint64 // of such a mount: MOUNT_ATTR_NOEXEC, _NOSUID
	Beneath bool   // it is one of its overlay's lowers, and in what covers another's: it stands there first, read-only
}

// memfile puts a spec in a file in memory that a child inherits: it may be larger than a packet.
func memfile(name string, spec any) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	f := os.NewFile(uintptr(fd), name)
	err = gob.NewEncoder(f).Encode(spec)
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// readSpec reads what memfile wrote and closes fd.
func readSpec(fd int, spec any) error {
	f := os.NewFile(uintptr(fd), "spec")
	defer f.Close()
	return gob.NewDecoder(f).Decode(spec)
}

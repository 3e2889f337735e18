package stage

import (
	"encoding/gob"
	"io"
	"os"
	"syscall"

	"github.com/tapedeck-dev/tapedeck/internal/jail/mount"
	"golang.org/x/sys/unix"
)

// An InitSpec is what the init is told at its start. Paths are resolved: none goes through a symbolic link.
type InitSpec struct {
	Trial    bool // only try what most often fails: namespaces and a fresh /proc
	Hostname string
	Umask    *int
	Ports    []uint16
	TTY      int

	Background bool // the program does not get the terminal yet
	Mounts     mount.Plan
}

// An ExecSpec is what the exec stage is told at its start.
type ExecSpec struct {
	Path, Dir string
	Argv, Env []string
	Ignored   []syscall.Signal // signals that the program ignores from its start
}

// Memfile puts a spec in a file in memory that a child inherits: it may be larger than a packet.
func Memfile(name string, spec any) (*os.File, error) {
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

// readSpec reads what Memfile wrote and closes fd.
func readSpec(fd int, spec any) error {
	f := os.NewFile(uintptr(fd), "spec")
	defer f.Close()
	return gob.NewDecoder(f).Decode(spec)
}

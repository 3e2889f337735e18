package stage

import (
	"io"
	"os"
	"syscall"

	"github.com/tapedeck-dev/tapedeck/internal/jail/mount"
	"github.com/tapedeck-dev/tapedeck/internal/wire"
	"golang.org/x/sys/unix"
)

// An InitSpec is what the init is told when the program is known. Paths are resolved: none goes through a symbolic link.
type InitSpec struct {
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

// Memfile puts a spec, of some size bytes, in a file in memory that a child inherits: it may be larger than a packet.
func Memfile(name string, spec any, size int) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	f := os.NewFile(uintptr(fd), name)
	_, err = f.Write(wire.Append(make([]byte, 0, size), spec))
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// readSpec reads what Memfile wrote and closes fd. Bytes of the spec stay where they are: they are not to be written to.
func readSpec(fd int, spec any) error {
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	b, err := unix.Mmap(fd, 0, int(st.Size), unix.PROT_READ, unix.MAP_PRIVATE)
	if err != nil {
		return err
	}
	return wire.Decode(b, spec)
}

package inputs

import (
	"bytes"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/jail/inspect"
	"github.com/tapedeck-dev/tapedeck/internal/jail/process"
	"golang.org/x/sys/unix"
)

// sharingOf tells which threads of the program that a process has just become share, and whether its monotonic clock is answered. It is not
// where a runtime reads that all the time: in Go, and in what brings a large one with it, Node say.
func (in *Answerer) sharingOf(pid int, path string) (s process.Sharing, ticks bool) {
	name := filepath.Base(path)
	for _, of := range []string{"python", "pypy", "ruby"} {
		if strings.HasPrefix(name, of) {
			return process.NoThreads, true
		}
	}
	isGo, size := in.executable(pid)
	if isGo {
		return process.AllThreads, false
	}
	return process.OtherThreads, size < largeProgram && !slices.Contains(largeElsewhere, name)
}

// largeProgram is the length of an executable file from which on it is taken for a runtime, in bytes: those of Node, Deno and Bun have
// some 100 MB, those of the system's commands less than one. Of largeElsewhere it is small, and a library large.
const largeProgram = 12 << 20

var largeElsewhere = []string{"java", "dotnet", "julia", "beam.smp"}

// executable tells of the file that a process runs whether Go's linker made it, which leaves a note within its first pages, and its length.
func (in *Answerer) executable(pid int) (isGo bool, size int64) {
	fd, err := unix.Openat(in.table.View.Proc, strconv.Itoa(pid)+"/exe", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false, 0
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	n, err := unix.Pread(fd, in.status[:], 0)
	if err != nil || unix.Fstat(fd, &st) != nil {
		return false, 0
	}
	return bytes.Contains(in.status[:n], []byte("\x04\x00\x00\x00Go\x00\x00")), st.Size
}

// handed finds the arguments of a new program that are numbers of descriptors which it was left, but for the standard ones.
func (in *Answerer) handed(pid int, argv []string) (list []int) {
	for i, a := range argv {
		n, err := strconv.ParseUint(a, 10, 16)
		if i == 0 || err != nil || n <= 2 {
			continue
		}
		if to, err := inspect.ReadLink(in.table.View.Proc, strconv.Itoa(pid)+"/fd/"+a); err == nil && (strings.HasPrefix(to, "pipe:") || strings.HasPrefix(to, "socket:")) {
			list = append(list, i)
		}
	}
	return list
}

package jail

import (
	"bytes"
	"encoding/binary"
	"hash/fnv"
	"io"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/tapedeck-dev/tapedeck/internal/unwind"
)

// maxCallers is how many calls make a place: the ones that every draw of a name goes through, and some that tell who wants it. Further
// out stands who happens to run a task now.
const maxCallers = 8

// place tells where in its program a thread asks; 0 where threads do not share, and where that cannot be told.
func (in *inputs) place(req *seccompNotif, p *inputProcess) uint64 {
	if p.shares != otherThreads || runtime.GOARCH != "amd64" {
		return 0
	}
	sp, ok := in.stackOf(int(req.PID))
	if !ok {
		return 0
	}
	if p.code == nil {
		p.code = in.codeOf(p.pid)
	}
	h := fnv.New64a()
	var b [8]byte
	for _, c := range p.code.Chain(make([]unwind.Place, 0, maxCallers), req.IP, sp) {
		binary.NativeEndian.PutUint64(b[:], c.Offset)
		_, _ = h.Write(b[:])
		_, _ = io.WriteString(h, c.File)
	}
	return max(h.Sum64(), 1)
}

// stackOf is the stack pointer of a thread that stands in a system call.
func (in *inputs) stackOf(task int) (sp uint64, ok bool) {
	var text [256]byte
	k, err := in.readProc(task, "syscall", text[:])
	words := bytes.Fields(text[:k])
	if err != nil || len(words) < 2 {
		return 0, false
	}
	sp, err = strconv.ParseUint(string(bytes.TrimPrefix(words[len(words)-2], []byte("0x"))), 16, 64)
	return sp, err == nil
}

func (in *inputs) readProc(pid int, name string, b []byte) (int, error) {
	fd, err := unix.Openat(in.spawns.view.proc, strconv.Itoa(pid)+"/"+name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	n, err := unix.Read(fd, b)
	return max(n, 0), err
}

// codeOf looks at what a process has mapped.
func (in *inputs) codeOf(pid int) *unwind.Space {
	mem := func(at uint64, b []byte) error { return readMemory(pid, at, b) }
	return unwind.New(mem, func() ([]byte, error) {
		fd, err := unix.Openat(in.spawns.view.proc, strconv.Itoa(pid)+"/maps", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil, err
		}
		f := os.NewFile(uintptr(fd), "maps")
		defer f.Close()
		return io.ReadAll(f)
	})
}

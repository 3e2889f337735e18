package jail

import (
	"bytes"
	"encoding/binary"
	"hash/fnv"
	"io"
	"os"
	"runtime"
	"strconv"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/jail/inspect"
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
	words := in.callOf(task)
	if words == nil {
		return 0, false
	}
	sp, err := strconv.ParseUint(string(bytes.TrimPrefix(words[len(words)-2], []byte("0x"))), 16, 64)
	return sp, err == nil
}

// callWords is how many words the kernel has for a call: its number, six arguments, the stack pointer and the program counter.
const callWords = 9

// callOf is what the kernel says of the call that a thread stands in; nil where it says nothing. A thread that was just notified of may not
// have left its processor yet, and is "running" for a moment.
func (in *inputs) callOf(task int) [][]byte {
	const tries = 1000
	for i := range tries {
		text := make([]byte, 256)
		k, err := in.readCall(task, text)
		words := bytes.Fields(text[:max(k, 0)])
		switch {
		case err != nil || k <= 0:
			return nil
		case len(words) == callWords:
			return words
		case i > 10:
			time.Sleep(10 * time.Microsecond)
		default:
			runtime.Gosched()
		}
	}
	return nil
}

// maxCalls bounds the files that are kept open of threads.
const maxCalls = 256

// readCall reads /proc/TASK/syscall, which stays open: most threads ask again. Of one that is gone it says nothing any more.
func (in *inputs) readCall(task int, b []byte) (int, error) {
	if fd, ok := in.calls[task]; ok {
		if n, err := unix.Pread(fd, b, 0); err == nil {
			return n, nil
		}
		unix.Close(fd)
		delete(in.calls, task)
	}
	fd, err := unix.Openat(in.spawns.view.Proc, strconv.Itoa(task)+"/syscall", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	if len(in.calls) >= maxCalls {
		in.closeCalls()
	}
	in.calls[task] = fd
	n, err := unix.Pread(fd, b, 0)
	return max(n, 0), err
}

func (in *inputs) closeCalls() {
	for _, fd := range in.calls {
		unix.Close(fd)
	}
	clear(in.calls)
}

// maxMaps bounds what is read of what a process has mapped, in bytes: some 40,000 mappings.
const maxMaps = 4 << 20

// codeOf looks at what a process has mapped.
func (in *inputs) codeOf(pid int) *unwind.Space {
	mem := func(at uint64, b []byte) error { return inspect.ReadMemory(pid, at, b) }
	return unwind.New(mem, func() ([]byte, error) {
		fd, err := unix.Openat(in.spawns.view.Proc, strconv.Itoa(pid)+"/maps", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil, err
		}
		f := os.NewFile(uintptr(fd), "maps")
		defer f.Close()
		return io.ReadAll(io.LimitReader(f, maxMaps))
	})
}

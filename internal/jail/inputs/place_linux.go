package inputs

import (
	"encoding/binary"
	"hash/fnv"
	"io"
	"os"
	"runtime"
	"strconv"

	"github.com/tapedeck-dev/tapedeck/internal/jail/inspect"
	"github.com/tapedeck-dev/tapedeck/internal/jail/notify"
	"github.com/tapedeck-dev/tapedeck/internal/jail/process"
	"github.com/tapedeck-dev/tapedeck/internal/unwind"
	"golang.org/x/sys/unix"
)

// maxCallers is how many calls make a place: the ones that every draw of a name goes through, and some that tell who wants it. Further
// out stands who happens to run a task now.
const maxCallers = 8

// place tells where in its program a thread asks; 0 where the first thread shares with the others, whose stacks are Go's own, and where that
// cannot be told.
func (in *Answerer) place(c *notify.Call, p *process.Asker) uint64 {
	if p.Process.Sharing == process.AllThreads || runtime.GOARCH != "amd64" {
		return 0
	}
	sp, ok := in.table.StackOf(c.Task)
	if !ok {
		return 0
	}
	if p.Process.Code == nil {
		p.Process.Code = in.codeOf(p.Process.PID)
	}
	callers := p.Process.Code.Chain(make([]unwind.Place, 0, maxCallers), c.IP, sp)
	if len(callers) == 0 {
		return 0
	}
	h := fnv.New64a()
	var b [8]byte
	for _, at := range callers {
		binary.NativeEndian.PutUint64(b[:], at.Offset)
		_, _ = h.Write(b[:])
		_, _ = io.WriteString(h, at.File)
	}
	return max(h.Sum64(), 1)
}

// maxMaps bounds what is read of what a process has mapped, in bytes: some 40,000 mappings.
const maxMaps = 4 << 20

// codeOf looks at what a process has mapped.
func (in *Answerer) codeOf(pid int) *unwind.Space {
	mem := func(at uint64, b []byte) error { return inspect.ReadMemory(pid, at, b) }
	return unwind.New(mem, func() ([]byte, error) {
		fd, err := unix.Openat(in.table.View.Proc, strconv.Itoa(pid)+"/maps", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil, err
		}
		f := os.NewFile(uintptr(fd), "maps")
		defer f.Close()
		return io.ReadAll(io.LimitReader(f, maxMaps))
	})
}

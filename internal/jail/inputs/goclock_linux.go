package inputs

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"io"
	"os"

	"github.com/tapedeck-dev/tapedeck/internal/gorandom"
	"github.com/tapedeck-dev/tapedeck/internal/unwind"
)

// A goProgram is what is changed in a program of Go; either is nil where that is not understood.
type goProgram struct {
	draws *gorandom.Patch
	clock *goClock
}

func goProgramOf(f *os.File) *goProgram {
	draws, _ := gorandom.New(f)
	return &goProgram{draws, newGoClock(f)}
}

// A goClock is where a program of Go reads the monotonic clock for its package time, by the instructions at which it goes on, where they stand
// in the file. What sets timers, and the scheduler, read it elsewhere.
type goClock struct {
	entry   uint64    // of the program
	now     uint64    // in time.now, which has read the wall time into the next 16 bytes before
	nano    uint64    // in runtime.nanotime1, which has a frame, and so has who calls it
	elapsed [3]uint64 // in time.Since, time.Until and what notes when the program began, after the call of who calls nanotime1; 0 for one that is not there
}

// What stands in both functions around the call, and before that in time.now: x86-64's instructions that set arguments and take the address.
var (
	readsTicks = []byte{0xbf, 1, 0, 0, 0, 0x48, 0x8d, 0x34, 0x24, 0x48, 0x8b, 0x05}       // mov edi, 1; lea rsi, [rsp]; mov rax, [rip+…]
	readsWall  = []byte{0xbf, 0, 0, 0, 0, 0x48, 0x8d, 0x74, 0x24, 0x10, 0x48, 0x8b, 0x05} // mov edi, 0; lea rsi, [rsp+16]; mov rax, [rip+…]
	orCalls    = []byte{0x48, 0x83, 0xf8, 0, 0x74}                                        // cmp rax, 0; je …
	callsIt    = []byte{0xff, 0xd0}                                                       // call rax
)

// newGoClock looks at a program; nil for one that is not as expected.
func newGoClock(f io.ReaderAt) *goClock {
	const now, nano, wraps, wrapped = "time.now", "runtime.nanotime1", "time.runtimeNano", "runtime.nanotime"
	elapsed := [...]string{"time.Since", "time.Until", "time.init"}
	names := unwind.NewNames(f)
	if names == nil || byProfile(f) {
		return nil
	}
	all := names.Functions(f, append(elapsed[:], now, nano, wraps, wrapped)...)
	code := func(name string) []byte {
		b := make([]byte, min(all[name].To-all[name].From, 64<<10))
		n, _ := f.ReadAt(b, int64(all[name].From)) //nolint:gosec // where there is nothing, nothing is found
		return b[:n]
	}
	c := &goClock{entry: names.Entry}
	reads := code(now)
	if i := calls(reads, readsWall); i >= 0 {
		c.now = after(all[now], calls(reads[i:], readsTicks), i)
	}
	c.nano = after(all[nano], calls(code(nano), readsTicks), 0)
	for i, name := range elapsed {
		for to := range 2 {
			if at := callOf(code(name), all[name].From, all[[...]string{wraps, wrapped}[to]].From); at != 0 {
				c.elapsed[i] = at
			}
		}
		if _, there := all[name]; there && c.elapsed[i] == 0 {
			return nil // durations would be made of two clocks
		}
	}
	if c.now == 0 || c.nano == 0 || c.elapsed == [3]uint64{} {
		return nil
	}
	return c
}

// byProfile reports whether a program was built by a profile: then time.Since may stand in each function that calls it, and a duration would be made
// of two clocks.
func byProfile(program io.ReaderAt) bool {
	f, err := elf.NewFile(program)
	if err != nil {
		return true
	}
	info := f.Section(".go.buildinfo")
	if info == nil || info.Size > maxBuildInfo {
		return true
	}
	settings, err := info.Data()
	return err != nil || bytes.Contains(settings, []byte("\nbuild\t-pgo="))
}

const maxBuildInfo = 16 << 20

// after is where an instruction is in the file; 0 for none.
func after(f unwind.Function, in, from int) uint64 {
	if in < 0 {
		return 0
	}
	return f.From + uint64(from+in)
}

// calls is where a function goes on after a call for the time that begins so, in code; -1 for none.
func calls(code, begins []byte) int {
	i := bytes.Index(code, begins)
	if i < 0 {
		return -1
	}
	i += len(begins) + 4
	rest := code[min(i, len(code)):]
	if bytes.HasPrefix(rest, orCalls) {
		i += len(orCalls) + 1
		rest = code[min(i, len(code)):]
	}
	if !bytes.HasPrefix(rest, callsIt) {
		return -1
	}
	return i + len(callsIt)
}

// callOf is where a function, which stands at from, goes on after its first call of one that stands at to; 0 for none.
func callOf(code []byte, from, to uint64) uint64 {
	const call, length = 0xe8, 5
	for i := 0; to != 0 && i+length <= len(code); i++ {
		next := from + uint64(i) + length
		if code[i] == call && next+uint64(int64(int32(binary.LittleEndian.Uint32(code[i+1:])))) == to {
			return next
		}
	}
	return 0
}

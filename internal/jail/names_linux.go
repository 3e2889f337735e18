package jail

import (
	"encoding/binary"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/jail/inspect"
	"golang.org/x/net/bpf"
)

// The GNU C library draws the names of mkdtemp from the monotonic time, which no run gives again. It is its own mkdir that asks for
// such a name, so it is told by where the call comes from: the library's code, called by the library's code. The name is the
// caller's to write to, and it gets letters of its process's randomness in the place of those.

// madeUpLetters is how many letters of a template are drawn: "XXXXXX".
const madeUpLetters = 6

// tempMode is what mkdtemp makes directories with.
const tempMode = 0o700

// nameRules notify the calls that make such directories.
func nameRules() (p []bpf.Instruction) {
	for _, nr := range slices.Sorted(maps.Keys(watchedCalls)) {
		if c := watchedCalls[nr]; c.op == OpMkdir {
			p = append(p,
				bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: nr, SkipTrue: 4},
				bpf.LoadAbsolute{Off: dataArg(c.paths[0].path + 1), Size: 4},
				bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: tempMode, SkipTrue: 1},
				bpf.RetConstant{Val: retNotify},
				bpf.LoadAbsolute{Off: dataNr, Size: 4})
		}
	}
	return p
}

// nameAnew puts other letters into a name that mkdtemp draws. What it cannot find out is left as it is.
func (n *notifier) nameAnew(req *seccompNotif) {
	call := watchedCalls[uint32(req.Nr)]
	if call == nil || call.op != OpMkdir {
		return
	}
	addr, mode := req.Args[call.paths[0].path], req.Args[call.paths[0].path+1]
	if uint32(mode) != tempMode {
		return
	}
	pid := int(req.PID)
	text, err := n.spawns.text.Path(pid, addr)
	at := len(text) - madeUpLetters
	if err != nil || at < 0 || strings.IndexFunc(text[at:], notDrawn) >= 0 || !n.inputs.byLibrary(pid) {
		return
	}
	p := n.inputs.of(pid)
	if p == nil || !n.waits(req.ID) {
		return
	}
	_ = inspect.WriteMemory(pid, addr+uint64(at), n.letters(req, p)) // a caller that is gone does not mind
}

const drawn = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

func notDrawn(r rune) bool { return !strings.ContainsRune(drawn, r) }

func (n *notifier) letters(req *seccompNotif, p *inputProcess) []byte {
	b := make([]byte, madeUpLetters)
	p.source.Fill(n.inputs.place(req, p), b)
	for i := range b {
		b[i] = drawn[int(b[i])%len(drawn)]
	}
	return b
}

// byLibrary reports whether the call that a thread waits in was made by the C library for itself.
func (in *inputs) byLibrary(task int) bool {
	fields := in.callOf(task)
	if fields == nil {
		return false
	}
	stack, err := strconv.ParseUint(string(fields[callWords-2]), 0, 64)
	counter, err2 := strconv.ParseUint(string(fields[callWords-1]), 0, 64)
	var caller [8]byte
	if err != nil || err2 != nil || inspect.ReadMemory(task, stack, caller[:]) != nil {
		return false
	}
	maps, err := namesMapped("/proc/" + strconv.Itoa(task) + "/maps")
	return err == nil && inLibrary(string(maps), counter) && inLibrary(string(maps), binary.NativeEndian.Uint64(caller[:]))
}

// maxNamesMapped bounds what is read of what a process has mapped, in bytes. The names of one that has more are left as they are.
const maxNamesMapped = 1 << 20

func namesMapped(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxNamesMapped))
}

// inLibrary reports whether an address lies in the code of the C library.
func inLibrary(maps string, addr uint64) bool {
	for line := range strings.Lines(maps) {
		span, rest, _ := strings.Cut(line, " ")
		from, to, _ := strings.Cut(span, "-")
		low, err := strconv.ParseUint(from, 16, 64)
		high, err2 := strconv.ParseUint(to, 16, 64)
		if err == nil && err2 == nil && low <= addr && addr < high {
			file := path.Base(strings.TrimSpace(rest))
			return strings.HasPrefix(rest, "r-xp") && (strings.HasPrefix(file, "libc.so") || strings.HasPrefix(file, "libc-2.")) // before 2.34
		}
	}
	return false
}

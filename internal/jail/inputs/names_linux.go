package inputs

import (
	"encoding/binary"
	"io"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/jail/changes"
	"github.com/tapedeck-dev/tapedeck/internal/jail/filter"
	"github.com/tapedeck-dev/tapedeck/internal/jail/inspect"
	"github.com/tapedeck-dev/tapedeck/internal/jail/notify"
	"github.com/tapedeck-dev/tapedeck/internal/jail/process"
)

// The GNU C library draws the names of mkdtemp from the monotonic time, which no run gives again. It is its own mkdir that asks for
// such a name, so it is told by where the call comes from: the library's code, called by the library's code. The name is the
// caller's to write to, and it gets letters of its process's randomness in the place of those.

// madeUpLetters is how many letters of a template are drawn: "XXXXXX".
const madeUpLetters = 6

// tempMode is what mkdtemp makes directories with.
const tempMode = 0o700

// mkdirs are the calls that make directories, by the argument that has the path; the next one has the mode.
var mkdirs = changes.Mkdirs()

// names notify the calls that make such directories.
func names() (rules []filter.Rule) {
	for nr, path := range mkdirs {
		rules = append(rules, filter.Rule{Nr: nr, When: is(path+1, tempMode), Then: filter.Notify})
	}
	return rules
}

// nameAnew puts other letters into a name that mkdtemp draws. What it cannot find out is left as it is.
func (in *Answerer) nameAnew(c *notify.Call) {
	path, ok := mkdirs[uint32(c.Nr)]
	if !ok || uint32(c.Args[path+1]) != tempMode {
		return
	}
	addr := c.Args[path]
	pid := c.Task
	text, err := in.text.Path(pid, addr)
	at := len(text) - madeUpLetters
	if err != nil || at < 0 || strings.IndexFunc(text[at:], notDrawn) >= 0 || !in.byLibrary(c) {
		return
	}
	p := in.of(pid)
	if p == nil || !c.Waits() {
		return
	}
	_ = inspect.WriteMemory(pid, addr+uint64(at), in.letters(c, p)) // a caller that is gone does not mind
}

const drawn = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

func notDrawn(r rune) bool { return !strings.ContainsRune(drawn, r) }

func (in *Answerer) letters(c *notify.Call, p *process.Asker) []byte {
	b := make([]byte, madeUpLetters)
	p.Source.Fill(in.place(c, p), b)
	for i := range b {
		b[i] = drawn[int(b[i])%len(drawn)]
	}
	return b
}

// byLibrary reports whether a call was made by the C library for itself.
func (in *Answerer) byLibrary(c *notify.Call) bool {
	stack, ok := in.table.StackOf(c.Task)
	var caller [8]byte
	if !ok || inspect.ReadMemory(c.Task, stack, caller[:]) != nil {
		return false
	}
	maps, err := namesMapped("/proc/" + strconv.Itoa(c.Task) + "/maps")
	return err == nil && inLibrary(string(maps), c.IP) && inLibrary(string(maps), binary.NativeEndian.Uint64(caller[:]))
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

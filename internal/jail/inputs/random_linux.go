package inputs

import (
	"encoding/binary"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/jail/changes"
	"github.com/tapedeck-dev/tapedeck/internal/jail/filter"
	"github.com/tapedeck-dev/tapedeck/internal/jail/inspect"
	"github.com/tapedeck-dev/tapedeck/internal/jail/notify"
	"github.com/tapedeck-dev/tapedeck/internal/jail/process"
	"golang.org/x/sys/unix"
)

// maxFill is how many bytes one getrandom is given at most. Whoever wants more asks again, as it does after a signal.
const maxFill = 64 << 10

func (in *Answerer) random(c *notify.Call, p *process.Asker) {
	const known = unix.GRND_NONBLOCK | unix.GRND_RANDOM | unix.GRND_INSECURE
	if flags := c.Args[2]; flags&^known != 0 || flags&unix.GRND_RANDOM != 0 && flags&unix.GRND_INSECURE != 0 {
		c.Fail(unix.EINVAL)
		return
	}
	b := in.buf[:min(c.Args[1], maxFill)]
	if len(b) > 0 {
		p.Source.Fill(in.place(c, p), b)
		if inspect.WriteMemory(c.Task, c.Args[0], b) != nil {
			c.Fail(unix.EFAULT)
			return
		}
	}
	c.Return(int64(len(b)))
}

// open gives whoever opens a random device a pipe of its own that the recorder fills.
func (in *Answerer) open(c *notify.Call, path uint64, flags uint32) {
	text, err := in.text.Path(c.Task, path)
	if err == nil {
		in.to.Reads(text)
	}
	if err == nil && in.procOpened(c, text, flags) {
		return
	}
	if err != nil || text != "/dev/urandom" && text != "/dev/random" {
		c.GoOn()
		return
	}
	p := in.of(c.Task)
	var ends [2]int
	if p == nil || unix.Pipe2(ends[:], unix.O_CLOEXEC) != nil {
		c.GoOn()
		return
	}
	defer unix.Close(ends[0])
	if flags&unix.O_NONBLOCK != 0 {
		unix.SetNonblock(ends[0], true)
	}
	unix.SetNonblock(ends[1], true)
	to := os.NewFile(uintptr(ends[1]), "random")
	from := filler{p.Source.Opened()}
	_, _ = to.Write(from.piece()) // who does not block has something
	if err := c.ReturnFD(ends[0], int(flags&unix.O_CLOEXEC)); err != nil {
		to.Close()
		c.GoOn() // before Linux 5.14; a caller that is gone does not mind
		return
	}
	go func() { // ends with its last reader, at the latest with the jail
		defer to.Close()
		_, _ = io.Copy(to, from)
	}()
}

// filler reads random bytes.
type filler struct{ process.Filler }

func (f filler) piece() []byte {
	b := make([]byte, inspect.PageSize)
	f.Fill(b)
	return b
}

// Read implements io.Reader.
func (f filler) Read(b []byte) (int, error) {
	f.Fill(b)
	return len(b), nil
}

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
	for _, nr := range slices.Sorted(maps.Keys(mkdirs)) {
		rules = append(rules, filter.Rule{Nr: nr, When: is(mkdirs[nr]+1, tempMode), Then: filter.Notify})
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

package inputs

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/gorandom"
	"github.com/tapedeck-dev/tapedeck/internal/jail/filter"
	"github.com/tapedeck-dev/tapedeck/internal/jail/inspect"
	"github.com/tapedeck-dev/tapedeck/internal/jail/mount"
	"github.com/tapedeck-dev/tapedeck/internal/jail/notify"
	"github.com/tapedeck-dev/tapedeck/internal/jail/process"
	"github.com/tapedeck-dev/tapedeck/internal/unwind"
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

// executable tells of the file that a process runs whether Go's linker made it, which leaves a note within its first pages or, where that is left
// out as of esbuild, a table of its functions in a section; and its length.
func (in *Answerer) executable(pid int) (isGo bool, size int64) {
	f, err := in.table.OpenFile(pid, "exe")
	if err != nil {
		return false, 0
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return false, 0
	}
	head := make([]byte, 4096)
	n, _ := f.ReadAt(head, 0) // of a shorter one too
	isGo = bytes.Contains(head[:n], []byte("\x04\x00\x00\x00Go\x00\x00"))
	return isGo || slices.ContainsFunc(sectionsOf(f), func(name string) bool { return strings.HasSuffix(name, ".gopclntab") }), st.Size()
}

// sectionsOf are the names of a program's sections; none where they take more than any linker writes.
func sectionsOf(f io.ReaderAt) []string {
	const most = 64 << 10
	var h elf.Header64
	var names elf.Section64
	if read(f, 0, &h) != nil || h.Shstrndx >= h.Shnum || read(f, int64(h.Shoff)+int64(h.Shstrndx)*int64(h.Shentsize), &names) != nil || names.Size > most { //nolint:gosec // no such offset is read
		return nil
	}
	b := make([]byte, names.Size)
	n, _ := f.ReadAt(b, int64(names.Off)) //nolint:gosec // likewise
	return strings.Split(string(b[:n]), "\x00")
}

func read(f io.ReaderAt, at int64, to any) error {
	return binary.Read(io.NewSectionReader(f, at, int64(binary.Size(to))), binary.LittleEndian, to)
}

// goPlace is the place of which the beginnings of a Go program's draws are drawn: nothing else is.
const goPlace = 1

// drawAlike has a Go program, which stands before its first instruction, draw what it drew in the run that was recorded; patch is nil where
// it is not understood.
func (st *startStack) drawAlike(pid int, is *process.Asker, patch *gorandom.Patch) {
	if patch == nil {
		return
	}
	at, ok := st.room(pid, gorandom.Length)
	if !ok {
		return
	}
	seeds := make([]byte, gorandom.Length)
	is.Source.Fill(goPlace, seeds)
	if inspect.WriteMemory(pid, at, seeds) == nil {
		moved := st.program - patch.Entry
		_, _ = tracedMemory(pid).WriteAt(patch.Code(at), int64(patch.At+moved)) // an error means that it was killed
	}
}

// goProgramOf is the Go program that a process runs. Each file is looked at once.
func (in *Answerer) goProgramOf(pid int) *goProgram {
	f, is, err := in.programOf(pid)
	if err != nil {
		return new(goProgram)
	}
	defer f.Close()
	in.patching.Lock()
	defer in.patching.Unlock()
	program, ok := in.patches[is]
	switch {
	case !ok && len(in.patches) < maxPatches:
		program = goProgramOf(f)
		in.patches[is] = program
	case !ok:
		program = new(goProgram)
	}
	return program
}

// A programFile is a file as long as nobody changes it.
type programFile struct {
	dev, ino        uint64
	changed, status unix.Timespec
}

// programOf opens the program that a process runs.
func (in *Answerer) programOf(pid int) (f *os.File, is programFile, err error) {
	f, err = in.table.OpenFile(pid, "exe")
	if err != nil {
		return nil, is, err
	}
	var st unix.Stat_t
	_ = unix.Fstat(int(f.Fd()), &st) // never fails
	return f, programFile{st.Dev, st.Ino, st.Mtim, st.Ctim}, nil
}

// maxPatches bounds the files that are known. Programs of further ones draw by themselves, and all places of one are one.
const maxPatches = 4096

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

// maxCallers is how many calls make a place: the ones that every draw of a name goes through, and some that tell who wants it. Further
// out stands who happens to run a task now.
const maxCallers = 8

// place tells where in its program a thread asks; 0 where that cannot be told, as of Go's but for the time: their stacks are its own.
func (in *Answerer) place(c *notify.Call, p *process.Asker) uint64 {
	isGo := p.Process.Sharing == process.AllThreads
	if runtime.GOARCH != "amd64" || isGo && c.Nr != unix.SYS_CLOCK_GETTIME {
		return 0
	}
	if p.Process.Code == nil {
		p.Process.Code = in.codeOf(p.Process.PID)
		if isGo {
			p.Process.Names = in.namesOf(p.Process.PID)
		}
	}
	callers := make([]unwind.Place, 0, maxCallers)
	if isGo {
		callers = in.named(p.Process, p.Process.Code.Frames(callers, c.IP, c.Args[2])) // see askingGo
	} else if sp, ok := in.table.StackOf(c.Task); ok {
		callers = p.Process.Code.Chain(callers, c.IP, sp)
	}
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

// named has functions of the program of Go that a process runs in the place of instructions; none where they have no names.
func (in *Answerer) named(p *process.Process, list []unwind.Place) []unwind.Place {
	if p.Names == nil {
		return nil
	}
	open := func() (*os.File, error) { return in.table.OpenFile(p.PID, "exe") }
	for i, at := range list {
		list[i] = unwind.Place{Offset: p.Names.Digest(at.Offset, open)}
		if slices.Contains(timers, list[i].Offset) {
			return list[:i]
		}
	}
	return list
}

// timers are what runs those of Go's runtime, in whichever goroutine comes by.
var timers = []uint64{unwind.NameDigest("runtime.(*timer).unlockAndRun"), unwind.NameDigest("runtime.runOneTimer")}

// namesOf looks at the program of Go that a process runs. Each file is looked at once.
func (in *Answerer) namesOf(pid int) *unwind.Names {
	f, is, err := in.programOf(pid)
	if err != nil {
		return nil
	}
	defer f.Close()
	names, ok := in.names[is]
	if !ok && len(in.names) < maxPatches {
		names = unwind.NewNames(f)
		in.names[is] = names
	}
	return names
}

// maxMaps bounds what is read of what a process has mapped, in bytes: some 40,000 mappings.
const maxMaps = 4 << 20

// codeOf looks at what a process has mapped.
func (in *Answerer) codeOf(pid int) *unwind.Space {
	mem := func(at uint64, b []byte) error { return inspect.ReadMemory(pid, at, b) }
	return unwind.New(mem, func() ([]byte, error) {
		f, err := in.table.OpenFile(pid, "maps")
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return io.ReadAll(io.LimitReader(f, maxMaps))
	})
}

// libraries notify a file of 2 MiB or more that the dynamic linker maps: MAP_DENYWRITE does nothing, and nobody else says it. Most file systems
// align so large a mapping for huge pages, an overlay does not, and then all that is mapped later lies elsewhere: addresses that a program
// prints, and the order of what it sorts by them.
func libraries() filter.Rule {
	const huge = 2 << 20
	return filter.Rule{Nr: unix.SYS_MMAP, When: [][]filter.Condition{{
		filter.Bits(3, unix.MAP_DENYWRITE), filter.NoBits(3, unix.MAP_FIXED|unix.MAP_ANONYMOUS), filter.From(1, huge),
	}}, Then: filter.Notify, Else: filter.Allow}
}

// library has a library that lies in an overlay mapped as the file which the overlay shows, as it was where the run was recorded: that file is
// put in the place of the descriptor. It is opened where it can only be read, whatever the program does with it.
func (in *Answerer) library(c *notify.Call) {
	defer c.GoOn() // with the overlay's where that file cannot be had
	at := int(int32(c.Args[4]))
	link := fmt.Sprintf("/proc/%d/fd/%d", c.Task, at)
	path, err := os.Readlink(link)
	if err != nil {
		return
	}
	dirs, rest := in.plan.Layers(path)
	if len(dirs) == 0 {
		return
	}
	info, err := os.ReadFile(fmt.Sprintf("/proc/%d/fdinfo/%d", c.Task, at))
	if err != nil {
		return
	}
	var offset int64
	var flags int
	if _, err := fmt.Sscanf(string(info), "pos: %d\nflags: %o\n", &offset, &flags); err != nil || flags&unix.O_ACCMODE != unix.O_RDONLY {
		return
	}
	var seen unix.Stat_t
	if unix.Stat(link, &seen) != nil {
		return
	}
	for _, dir := range dirs {
		fd, err := openSame(in.layer(dir), rest, &seen)
		if err != nil {
			continue
		}
		defer unix.Close(fd)
		if _, err := unix.Seek(fd, offset, unix.SEEK_SET); err == nil {
			_, _ = c.AddFD(fd, at, flags&unix.O_CLOEXEC)
		}
		return
	}
}

// layer returns a layer of an overlay, open; nil where that cannot be.
func (in *Answerer) layer(dir string) *os.File {
	f, ok := in.layers[dir]
	if !ok {
		f, _ = in.openDir(mount.LayerOf(dir))
		in.layers[dir] = f
	}
	return f
}

// openSame opens a file of a layer for reading where it is the one that an overlay shows: nobody can set the time of its last change.
func openSame(layer *os.File, path string, seen *unix.Stat_t) (fd int, err error) {
	if layer == nil {
		return -1, unix.ENOENT
	}
	const within = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_XDEV
	is, err := unix.Openat2(int(layer.Fd()), path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: within})
	if err != nil {
		return -1, err
	}
	defer unix.Close(is)
	var st unix.Stat_t
	if err := unix.Fstat(is, &st); err != nil {
		return -1, err
	}
	var fs unix.Statfs_t
	if err := unix.Fstatfs(is, &fs); err != nil {
		return -1, err
	}
	if fs.Flags&unix.ST_RDONLY == 0 || st.Mode&unix.S_IFMT != unix.S_IFREG || st.Mode != seen.Mode || st.Size != seen.Size || st.Mtim != seen.Mtim || st.Ctim != seen.Ctim {
		return -1, unix.ESTALE
	}
	return unix.Open("/proc/self/fd/"+strconv.Itoa(is), unix.O_RDONLY|unix.O_CLOEXEC, 0)
}

package gorandom

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

const childEnv = "GORANDOM_TEST_DRAWS"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) == "" {
		os.Exit(m.Run())
	}
	var all [4][]any // of each place that draws
	var mu sync.Mutex
	for range 20 {
		all[0], all[1] = append(all[0], rand.Uint64()), append(all[1], rand.Perm(5))
		both := map[bool]int{false: 1, true: 2}
		for which := range both {
			all[2] = append(all[2], which)
		}
		leave := func(which bool) {
			mu.Lock()
			defer mu.Unlock()
			delete(both, which) // the last one of a map seeds it anew
		}
		left := make(chan bool)
		go func() {
			leave(false)
			close(left)
		}()
		leave(true)
		<-left
		to := make(chan uint64)
		go func() {
			runtime.LockOSThread() // it ends with its thread: others have to go on
			to <- rand.Uint64()
		}()
		all[3] = append(all[3], <-to)
		held := make(chan bool)
		go func() {
			runtime.LockOSThread()
			held <- true
			select {}
		}()
		<-held
		for range 20 {
			time.AfterFunc(time.Microsecond, func() {}) // with no thread at rest, whoever sets a timer starts one that waits for it
			for began := time.Now(); time.Since(began) < 100*time.Microsecond; {
			}
		}
		runtime.Gosched()
	}
	for _, list := range all {
		fmt.Println(list...)
	}
}

// TestDraws runs this program, which moves between threads, with the code for its draws in its file.
func TestDraws(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	changed, _ := patched(t, self)
	first, others := draws(t, changed), make(map[int]bool)
	for range 3 {
		for i, list := range draws(t, changed) {
			if list != first[i] {
				others[i] = true
			}
		}
	}
	if len(others) > 1 { // the map's place may share the sequence of one of them, by their addresses
		t.Errorf("other draws at places %v", others)
	}
	if plain, again := draws(t, self), draws(t, self); plain[0] == again[0] || plain[3] == again[3] {
		t.Error("alike without it")
	}
}

// patched is a program with the code for its draws in its file, and where it draws from.
func patched(t *testing.T, path string) (changed string, seeds uint64) {
	t.Helper()
	program, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	p, err := New(bytes.NewReader(program))
	if err != nil {
		t.Fatal(err)
	}
	f, err := elf.NewFile(bytes.NewReader(program))
	if err != nil {
		t.Fatal(err)
	}
	seeds = withRoom(t, program, f)
	code := p.Code(seeds)
	if room := len(strings.ReplaceAll(function, " ", "")) / 2; len(code) > room {
		t.Fatalf("%d bytes of code for a function of %d", len(code), room)
	}
	for _, s := range f.Progs {
		if s.Vaddr <= p.At && p.At < s.Vaddr+s.Filesz {
			copy(program[p.At-s.Vaddr+s.Off:], code)
		}
	}
	changed = filepath.Join(t.TempDir(), "changed")
	if err := os.WriteFile(changed, program, 0o700); err != nil {
		t.Fatal(err)
	}
	return changed, seeds
}

// TestDrawsOfAnotherBuild: a program that was built with some lines more, so that all its code lies elsewhere, draws the same names and orders of maps.
func TestDrawsOfAnotherBuild(t *testing.T) {
	t.Parallel()
	const source = `package main

import (
	"fmt"
	"os"
	"strconv"
	"unsafe"
)

func main() {
	at, _ := strconv.ParseUint(os.Args[1], 0, 64)
	for i, words := 0, unsafe.Slice((*uint64)(unsafe.Pointer(uintptr(at))), 512); i < len(words); i++ {
		words[i] = uint64(i) << 32
	}
	if len(os.Args) > 3 {
		fmt.Println(%s)
	}
	for range 3 {
		f, err := os.CreateTemp(os.Args[2], "")
		fmt.Println(f.Name(), err)
		for which := range map[string]int{"a": 1, "b": 2, "c": 3, "d": 4} {
			fmt.Print(which)
		}
	}
}
`
	build := func(more string) string {
		dir, files := t.TempDir(), filepath.Join(t.TempDir(), "files")
		if err := os.WriteFile(filepath.Join(dir, "main.go"), fmt.Appendf(nil, source, more), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), "go", "build", "-o", "program", "main.go")
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GO111MODULE=off")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		program, seeds := patched(t, filepath.Join(dir, "program"))
		if err := os.Mkdir(files, 0o700); err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(t.Context(), program, fmt.Sprint(seeds), files).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return strings.ReplaceAll(string(out), files, "")
	}
	plain := build(`""`)
	for _, more := range []string{"os.Stderr.Sync()", `os.RemoveAll("x"), os.Stdin.Chdir()`} {
		if got := build(more); got != plain {
			t.Errorf("with %s:\n%s, want\n%s", more, got, plain)
		}
	}
}

// withRoom has a program have Length bytes more of variables, and returns where they are.
func withRoom(t *testing.T, program []byte, f *elf.File) (at uint64) {
	t.Helper()
	for i, s := range f.Progs {
		if s.Type == elf.PT_LOAD && s.Flags&elf.PF_W != 0 {
			at = (s.Vaddr + s.Memsz + 7) &^ 7
			binary.LittleEndian.PutUint64(program[64+56*i+40:], at+Length-s.Vaddr) // p_memsz
		}
	}
	if at == 0 {
		t.Fatal("no variables")
	}
	return at
}

// draws is what a program draws at each of its places.
func draws(t *testing.T, program string) []string {
	t.Helper()
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), childEnv+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	lists := strings.Split(string(out), "\n")
	if len(lists) != 5 {
		t.Fatalf("%q", out)
	}
	return lists
}

// TestUnknown leaves alone what it does not understand.
func TestUnknown(t *testing.T) {
	t.Parallel()
	for name, program := range map[string][]byte{"nothing": nil, "text": []byte("#!/bin/sh\n"), "another": shell(t)} {
		if p, err := New(bytes.NewReader(program)); err == nil {
			t.Errorf("%s gets %+v", name, p)
		}
	}
}

func shell(t testing.TB) []byte {
	b, err := os.ReadFile("/bin/sh")
	if err != nil {
		t.Skip(err)
	}
	return b
}

// small is a program of which New finds all that it looks for.
func small() []byte {
	b := make([]byte, 0x4000)
	head := elf.Header64{Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), 1}, Machine: uint16(elf.EM_X86_64), Phoff: 64, Phentsize: 56, Phnum: 2}
	segments := []elf.Prog64{
		{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_X), Off: 0x1000, Vaddr: 0x401000, Filesz: 0x1000, Memsz: 0x1000},
		{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_W), Off: 0x2000, Vaddr: 0x402000, Filesz: 0x100, Memsz: 0x800},
	}
	for i, v := range []any{head, segments} {
		_, _ = binary.Encode(b[64*i:], binary.LittleEndian, v)
	}
	code, _ := hex.DecodeString(strings.NewReplacer(" ", "", "?", "0").Replace(function))
	copy(b[0x1234:], code)
	copy(b[0x2010:], "\xff Go buildinf:\x08\x02"+strings.Repeat("\x00", 16)+"\x08go1.26.8")
	return b
}

func TestSmall(t *testing.T) {
	t.Parallel()
	p, err := New(bytes.NewReader(small()))
	if err != nil || p.At != 0x401234 {
		t.Errorf("%+v, %v", p, err)
	}
	other := bytes.Replace(small(), []byte("go1.26.8"), []byte("go1.21.8"), 1)
	for name, b := range map[string][]byte{"another version": other, "cut": small()[:0x1240]} {
		if p, err := New(bytes.NewReader(b)); err == nil {
			t.Errorf("%s gets %+v", name, p)
		}
	}
}

// TestReadsNoMoreThanItNeeds: of a program of 16 MB, whatever is behind what it looks for is left unread; what stands across two parts is found.
func TestReadsNoMoreThanItNeeds(t *testing.T) {
	t.Parallel()
	for _, at := range []int{0x234, partly - 1, partly - 60, partly + 200} {
		b := append(small(), make([]byte, searchedCode)...)
		_, _ = binary.Encode(b[64:], binary.LittleEndian, elf.Prog64{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_X), Off: 0x4000, Vaddr: 0x401000, Filesz: searchedCode})
		copy(b[0x4000+at:], small()[0x1234:0x1234+overlap])
		r := &counted{Reader: bytes.NewReader(b)}
		if p, err := New(r); err != nil || p.At != uint64(0x401000+at) {
			t.Errorf("at %#x: %+v, %v", at, p, err)
		}
		if r.read > 3*(partly+overlap) {
			t.Errorf("at %#x: %d bytes read", at, r.read)
		}
	}
}

// counted knows how many bytes were read of it.
type counted struct {
	*bytes.Reader
	read int
}

func (c *counted) ReadAt(b []byte, at int64) (int, error) {
	n, err := c.Reader.ReadAt(b, at)
	c.read += n
	return n, err
}

func FuzzNew(f *testing.F) {
	f.Add(small())
	f.Add([]byte("\x7fELF\x02\x01\x01"))
	f.Fuzz(func(_ *testing.T, program []byte) { _, _ = New(bytes.NewReader(program)) })
}

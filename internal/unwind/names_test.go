package unwind

import (
	"bytes"
	"encoding/binary"
	"os"
	"reflect"
	"runtime"
	"strings"
	"testing"
)

// TestNames finds this test's own name by its address.
func TestNames(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("programs are others here")
	}
	program, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	self := bytes.NewReader(program)
	n := NewNames(self)
	if n == nil {
		t.Fatal("no names")
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	s := New(func(uint64, []byte) error { return os.ErrInvalid }, func() ([]byte, error) { return maps, nil })
	pc := uint64(reflect.ValueOf(TestNames).Pointer())
	m := s.of(pc)
	if m == nil {
		t.Fatal("no code")
	}
	offset := pc + 1 - m.from + m.offset
	if name := n.find(self, offset-n.text); !strings.HasSuffix(name, "unwind.TestNames") {
		t.Errorf("%q", name)
	}
	open := func() (*os.File, error) { return os.Open("/proc/self/exe") }
	first, second := n.Digest(offset, open), n.Digest(offset, func() (*os.File, error) { return nil, os.ErrNotExist })
	if first == 0 || first != second || n.Digest(m.offset, open) == first {
		t.Errorf("%x, then %x", first, second)
	}
	const entry = 24                                                 // where a program's file has the address of its first instruction
	copy(program[entry:], binary.LittleEndian.AppendUint64(nil, pc)) // as of one that begins in code of another linker's
	for _, other := range []string{"", "\x7fELF", strings.Repeat("\x7f", 4096), string(program)} {
		if NewNames(bytes.NewReader([]byte(other))) != nil {
			t.Errorf("%.8q has names", other)
		}
	}
}

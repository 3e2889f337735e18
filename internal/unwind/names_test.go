package unwind

import (
	"bytes"
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
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer self.Close()
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
	for range 2 {
		if name := n.At(pc + 1 - m.from + m.offset); !strings.HasSuffix(name, "unwind.TestNames") {
			t.Errorf("%q", name)
		}
	}
	for _, other := range []string{"", "\x7fELF", strings.Repeat("\x7f", 4096)} {
		if NewNames(bytes.NewReader([]byte(other))) != nil {
			t.Errorf("%.8q has names", other)
		}
	}
}

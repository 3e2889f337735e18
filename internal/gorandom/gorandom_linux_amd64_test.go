package gorandom

import (
	"bytes"
	"debug/elf"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

const childEnv = "GORANDOM_TEST_DRAWS"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) == "" {
		os.Exit(m.Run())
	}
	var more []uint64
	for range 20 {
		fmt.Println(rand.Uint64(), rand.Perm(5))
		to := make(chan uint64)
		go func() {
			runtime.LockOSThread() // it ends with its thread: others have to go on
			to <- rand.Uint64()
		}()
		more = append(more, <-to)
		runtime.Gosched()
	}
	fmt.Println(more)
}

// TestDraws runs this program, which moves between threads, with the code for its draws in its file.
func TestDraws(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(self)
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
	text := f.Section(".text")
	copy(program[p.At-text.Addr+text.Offset:], p.Code)
	changed := filepath.Join(t.TempDir(), "changed")
	if err := os.WriteFile(changed, program, 0o700); err != nil {
		t.Fatal(err)
	}
	first := draws(t, changed)
	for range 3 {
		if again := draws(t, changed); again != first {
			t.Fatalf("other draws:\n%s\n%s", first, again)
		}
	}
	if plain := draws(t, self); plain == draws(t, self) {
		t.Error("alike without it")
	}
}

func draws(t *testing.T, program string) string {
	t.Helper()
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), childEnv+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
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

func FuzzNew(f *testing.F) {
	f.Add(shell(f)[:4096])
	f.Add([]byte("\x7fELF\x02\x01\x01"))
	f.Fuzz(func(_ *testing.T, program []byte) { _, _ = New(bytes.NewReader(program)) })
}

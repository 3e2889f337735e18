package wasi_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/tapedeck-dev/tapedeck/testbench"
	"github.com/tapedeck-dev/tapedeck/testbench/wasi"
)

// saying is a program that prints text.
func saying(words string) part {
	write := function("wasi_snapshot_preview1", "fd_write", 3)
	data := section(11, vec(join(part{0, opI32Const, 0, opEnd}, u32(8), part{8, 0, 0, 0, byte(len(words)), 0, 0, 0}),
		join(part{0, opI32Const, 8, opEnd}, text(words))))
	return join(importing([]part{write}, opI32Const, 1, opI32Const, 0, opI32Const, 1, opI32Const, 0xc0, 0, opCall, 0, opDrop), data)
}

// TestManyModulesInOneCache: more of them than it keeps, several times, by many at once.
func TestManyModulesInOneCache(t *testing.T) {
	cache, err := wasi.NewCache("")
	if err != nil {
		t.Fatal(err)
	}
	defer cache.Close()
	var wait sync.WaitGroup
	for worker := range 8 {
		wait.Go(func() {
			for i := range 60 {
				words := fmt.Sprintf("module %d", (worker*7+i)%40)
				if r := runBytes(t, nil, &wasi.Options{Cache: cache}, saying(words)); r.err != nil || r.stdout != words {
					t.Errorf("got %q, %v, want %q", r.stdout, r.err, words)
				}
			}
		})
	}
	wait.Wait()
}

func TestACacheOnTheDisk(t *testing.T) {
	dir := t.TempDir()
	for range 2 {
		cache, err := wasi.NewCache(dir)
		if err != nil {
			t.Fatal(err)
		}
		if r := runBytes(t, nil, &wasi.Options{Cache: cache}, saying("kept")).ended(t); r.stdout != "kept" {
			t.Errorf("got %q", r.stdout)
		}
		if err := cache.Close(); err != nil {
			t.Fatal(err)
		}
		if r := runBytes(t, nil, &wasi.Options{Cache: cache}, saying("kept")); r.err == nil || !strings.Contains(r.err.Error(), "closed") {
			t.Errorf("after its end: got %v", r.err)
		}
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) == 0 {
		t.Errorf("nothing lies there: %v, %v", list, err)
	}
	if _, err := wasi.NewCache(os.DevNull); err == nil {
		t.Error("a file was taken for a directory")
	}
}

// TestLimitsAreApart: one cache serves runs of other limits.
func TestLimitsAreApart(t *testing.T) {
	needs := module(types, oneFunction, section(5, vec(part{0, 17})), startIsZero, section(10, vec(body())))
	for range 2 {
		var limit *wasi.LimitError
		if r := runBytes(t, nil, &wasi.Options{Memory: 1 << 20}, needs); !errors.As(r.err, &limit) {
			t.Errorf("got %v", r.err)
		}
		runBytes(t, nil, &wasi.Options{Memory: 2 << 20}, needs).ended(t)
	}
}

// TestModulesSideBySide: in branches that sleep and print, by turns.
func TestModulesSideBySide(t *testing.T) {
	path := goModule(t)
	var first []byte
	for i := range 5 {
		var tape bytes.Buffer
		b, err := testbench.Open(&testbench.Config{Name: "x", EmitTo: &tape})
		if err != nil {
			t.Fatal(err)
		}
		var branches []func(context.Context) error
		for n := range 8 {
			branches = append(branches, func(ctx context.Context) error {
				_, err := wasi.Run(ctx, b, path, &wasi.Options{Args: []string{"sleep", fmt.Sprintf("%dms", n*37%11)}})
				return err
			})
		}
		if err := b.Parallel(t.Context(), branches...); err != nil {
			t.Fatal(err)
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = tape.Bytes()
		}
		if !bytes.Equal(first, tape.Bytes()) {
			t.Fatalf("run %d differs:\n%s\nfirst:\n%s", i, tape.Bytes(), first)
		}
	}
}

func TestACallerThatIsGone(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("the caller is gone")
	cancel(gone)
	b := testbench.New(t, nil)
	_, err := wasi.RunModule(ctx, b, "loop.wasm", program(opLoop, noResult, opBr, 0, opEnd), nil)
	if !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
	if _, err := wasi.Run(t.Context(), b, "none.wasm", nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no such file: got %v", err)
	}
	if _, err := wasi.Run(t.Context(), b, t.TempDir(), nil); err == nil {
		t.Error("a directory ran")
	}
}

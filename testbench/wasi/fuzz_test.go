package wasi_test

import (
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/testbench"
	"github.com/tapedeck-dev/tapedeck/testbench/wasi"
)

// FuzzModule: whatever bytes are given for a module, nothing panics or hangs, and the host keeps its memory.
func FuzzModule(f *testing.F) {
	for _, code := range [][]byte{
		nil, module(), program(), program(opUnreachable), program(opLoop, noResult, opBr, 0, opEnd), program(opCall, 0),
		importing([]part{function("tapedeck", "llm.complete", 1), function("tapedeck", "take", 2)}, opI32Const, 0, opI32Const, 2, opCall, 0, opDrop, opI32Const, 0, opCall, 1),
		importing([]part{function("env", "foo", 0)}), pollProgram(clockSub('a', 1, 5e6, 0), fileSub('b', 1, 0)),
		module(types, oneFunction, section(4, vec(part{0x70, 0, 1})), startIsZero, section(10, vec(body(opI32Const, 0, 0x11, 0, 0)))),
		join(program(), section(0, text("name"), part{0, 2, 1, 'x'})),
		module(types, oneFunction, onePage, section(6, vec(part{0x7f, 1, opI32Const, 0, opEnd})), startIsZero, section(10, vec(bodyWith(vec(part{3, 0x7e}))))),
	} {
		f.Add(code)
	}
	f.Fuzz(func(t *testing.T, code []byte) {
		if len(code) > 64<<10 {
			return
		}
		cache, err := wasi.NewCache("")
		if err != nil {
			t.Fatal(err)
		}
		defer cache.Close()
		b, err := testbench.Open(nil)
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		began := time.Now()
		o := &wasi.Options{Memory: 1 << 20, Output: 1 << 16, Timeout: 50 * time.Millisecond, Reads: 1000, Cache: cache}
		_, _ = wasi.RunModule(t.Context(), b, "fuzz.wasm", code, o)
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

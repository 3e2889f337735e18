package wasi_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/tapedeck-dev/tapedeck/internal/cputime"
	"github.com/tapedeck-dev/tapedeck/testbench"
	"github.com/tapedeck-dev/tapedeck/testbench/wasi"
)

// BenchmarkStart is a Go program of one line, from its file to its end, on a bench whose tape is written: beside wazero alone, which
// writes none and gives it wazero's own clock and random numbers. The module is compiled before: directory takes it from a cache on the
// disk, as a new process does, memory from one that runs before it left behind, where wazero alone has it at hand without reading its file.
func BenchmarkStart(b *testing.B) {
	path := compiled(b, hello)
	b.Run("directory", func(b *testing.B) {
		dir, emit := b.TempDir(), b.TempDir()+"/run.tape"
		beside(b, func() {
			cache, err := wasi.NewCache(dir)
			if err != nil {
				b.Fatal(err)
			}
			startOurs(b, path, emit, cache)
			if err := cache.Close(); err != nil {
				b.Fatal(err)
			}
		}, func() {
			cache, err := wazero.NewCompilationCacheWithDir(dir)
			if err != nil {
				b.Fatal(err)
			}
			runtime := bareRuntime(b, cache)
			startBare(b, runtime, compileBare(b, path, runtime))
			if err := runtime.Close(b.Context()); err != nil {
				b.Fatal(err)
			}
			if err := cache.Close(b.Context()); err != nil {
				b.Fatal(err)
			}
		})
	})
	b.Run("memory", func(b *testing.B) {
		emit := b.TempDir() + "/run.tape"
		cache, err := wasi.NewCache("")
		if err != nil {
			b.Fatal(err)
		}
		defer cache.Close()
		runtime := bareRuntime(b, wazero.NewCompilationCache())
		defer runtime.Close(context.Background())
		compiled := compileBare(b, path, runtime)
		beside(b, func() { startOurs(b, path, emit, cache) }, func() { startBare(b, runtime, compiled) })
	})
}

// beside takes turns, and reports the first as how often the second. Each goes once before.
func beside(b *testing.B, ours, bare func()) {
	b.Helper()
	ours()
	bare()
	var took [2]time.Duration
	for b.Loop() {
		for i, f := range []func(){ours, bare} {
			began := cputime.Spent()
			f()
			took[i] += cputime.Spent() - began
		}
	}
	b.ReportMetric(float64(took[0])/float64(took[1]), "of-bare-wazero") // of processor time: other work on the machine counts for nothing
	b.ReportMetric(float64(took[0].Microseconds())/float64(b.N)/1000, "ours-ms")
	b.ReportMetric(float64(took[1].Microseconds())/float64(b.N)/1000, "bare-ms")
}

func startOurs(b *testing.B, path, emit string, cache *wasi.Cache) {
	b.Helper()
	bench, err := testbench.Open(&testbench.Config{Name: "hello.wasm", Emit: emit})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := wasi.Run(b.Context(), bench, path, &wasi.Options{Cache: cache}); err != nil {
		b.Fatal(err)
	}
	if err := bench.Close(); err != nil {
		b.Fatal(err)
	}
}

func bareRuntime(b *testing.B, cache wazero.CompilationCache) wazero.Runtime {
	b.Helper()
	runtime := wazero.NewRuntimeWithConfig(b.Context(), wazero.NewRuntimeConfig().WithCompilationCache(cache).WithCloseOnContextDone(true))
	wasi_snapshot_preview1.MustInstantiate(b.Context(), runtime)
	return runtime
}

func compileBare(b *testing.B, path string, runtime wazero.Runtime) wazero.CompiledModule {
	b.Helper()
	code, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	compiled, err := runtime.CompileModule(b.Context(), code)
	if err != nil {
		b.Fatal(err)
	}
	return compiled
}

func startBare(b *testing.B, runtime wazero.Runtime, compiled wazero.CompiledModule) {
	b.Helper()
	config := wazero.NewModuleConfig().WithName("").WithArgs("hello.wasm").WithSysWalltime().WithSysNanotime()
	instance, err := runtime.InstantiateModule(b.Context(), compiled, config)
	if err != nil {
		b.Fatal(err)
	}
	if err := instance.Close(b.Context()); err != nil {
		b.Fatal(err)
	}
}

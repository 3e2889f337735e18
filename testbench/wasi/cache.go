package wasi

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tetratelabs/wazero"
)

// A Cache holds compiled modules, for compiling takes far longer than a test: a second for a Go program. It may be used by any
// number of runs at once, and serves those that come after Close no more.
type Cache struct {
	compiled wazero.CompilationCache

	mu      sync.Mutex
	engines map[uint32]*engine // by the pages of memory that a module may have at most
	closed  bool
}

// maxModules is how many compiled modules of one limit stay in memory that no run uses.
const maxModules = 16

// NewCache returns a cache that keeps its modules in a directory, which is made where it is missing, so that the next process finds
// them; "" keeps them in memory alone. What lies there is trusted as the program itself is: it is machine code.
func NewCache(dir string) (*Cache, error) {
	c := &Cache{compiled: wazero.NewCompilationCache(), engines: map[uint32]*engine{}}
	if dir == "" {
		return c, nil
	}
	var err error
	if c.compiled, err = wazero.NewCompilationCacheWithDir(dir); err != nil {
		return nil, fmt.Errorf("cache of compiled modules: %w", err)
	}
	return c, nil
}

// Close lets go of all compiled modules; runs that are under way end with an error. A directory keeps what it has.
func (c *Cache) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, e := range c.engines {
		if err := e.runtime.Close(context.Background()); err != nil {
			return err
		}
	}
	clear(c.engines)
	return c.compiled.Close(context.Background())
}

// shared is the cache of runs that name none.
var shared = sync.OnceValue(func() *Cache {
	c, err := NewCache("")
	if err != nil {
		panic(err) // a cache in memory has nothing that fails
	}
	return c
})

// engine returns what runs modules of at most so many pages.
func (c *Cache) engine(pages uint32) (*engine, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, fmt.Errorf("the cache of compiled modules is closed")
	}
	if e := c.engines[pages]; e != nil {
		return e, nil
	}
	e, err := newEngine(c.compiled, pages)
	if err != nil {
		return nil, err
	}
	c.engines[pages] = e
	return e, nil
}

// An engine is one runtime with the host's functions in it, and the modules that it has compiled. What belongs to one run
// travels in the context.
type engine struct {
	runtime wazero.Runtime
	pages   uint32
	offers  map[string]map[string]bool // names of functions by module

	mu      sync.Mutex
	modules map[cas.Digest]*module
	clock   uint64 // counts uses
}

// A module is a compiled one.
type module struct {
	once     sync.Once
	compiled wazero.CompiledModule
	memory   bool // it has one
	err      error

	users int    // under the engine's mu
	used  uint64 // when last
}

func newEngine(compiled wazero.CompilationCache, pages uint32) (*engine, error) {
	ctx := context.Background()
	config := wazero.NewRuntimeConfig().WithCompilationCache(compiled).WithMemoryLimitPages(pages).WithCloseOnContextDone(true)
	e := &engine{runtime: wazero.NewRuntimeWithConfig(ctx, config), pages: pages, modules: map[cas.Digest]*module{}, offers: map[string]map[string]bool{}}
	for _, add := range []func(context.Context) error{e.addWASI, e.addHost} {
		if err := add(ctx); err != nil {
			return nil, fmt.Errorf("wasi: %w", err)
		}
	}
	return e, nil
}

// compile returns the module of that code, compiled; the caller releases it.
func (e *engine) compile(code []byte) (*module, error) {
	m := e.take(cas.Sum(code))
	m.once.Do(func() { m.err = e.compileNow(m, code) })
	if m.err != nil {
		e.release(m)
		return nil, m.err
	}
	return m, nil
}

func (e *engine) compileNow(m *module, code []byte) error {
	checked, err := e.check(code)
	if err != nil {
		return err
	}
	if m.compiled, err = e.runtime.CompileModule(context.Background(), checked.out.Bytes()); err != nil {
		return &ModuleError{Reason: "no WebAssembly 2.0 module, or one beyond its limits: " + err.Error()}
	}
	m.memory = checked.memories > 0
	return nil
}

func (e *engine) take(digest cas.Digest) *module {
	e.mu.Lock()
	defer e.mu.Unlock()
	m := e.modules[digest]
	if m == nil {
		m = &module{}
		e.modules[digest] = m
	}
	m.users++
	e.clock++
	m.used = e.clock
	e.trim()
	return m
}

// trim forgets modules that nobody runs, those of the longest ago first. It is called under mu.
func (e *engine) trim() {
	for len(e.modules) > maxModules {
		var oldest cas.Digest
		var found *module
		for d, m := range e.modules {
			if m.users == 0 && (found == nil || m.used < found.used) {
				oldest, found = d, m
			}
		}
		if found == nil {
			return
		}
		delete(e.modules, oldest)
		if found.compiled != nil {
			_ = found.compiled.Close(context.Background()) // it frees memory, which does not fail
		}
	}
}

func (e *engine) release(m *module) {
	e.mu.Lock()
	defer e.mu.Unlock()
	m.users--
}

// Options of one run. Nil and zero work.
type Options struct {
	// Args are the program's arguments, without its name; those of the bench where nil.
	Args []string
	// Stdin is standard input, read whole when the program reads it first; nil is empty. A replay takes it from the tape.
	Stdin io.Reader
	// Stdout and Stderr get what the program prints, at most Output bytes together. Nil discards.
	Stdout, Stderr io.Writer
	// Memory is the most bytes of the module's memory, in pages of 64 KiB: up to 4 GiB, default 256 MiB.
	Memory int64
	// Output is the most bytes that it prints; default 64 MiB.
	Output int64
	// Timeout ends it after so long by the real clock, whatever its own says; default one minute.
	Timeout time.Duration
	// Reads is how often it may read a clock that stands still with nothing happening in between: a program that waits for the
	// time in a loop would wait for ever. Default a million.
	Reads int
	// Cache holds compiled modules; nil is one in memory that all runs of this process share.
	Cache *Cache
}

const pageSize = 64 << 10

func (o *Options) withDefaults() Options {
	var all Options
	if o != nil {
		all = *o
	}
	all.Memory = cmp.Or(max(all.Memory, 0), 256<<20)
	all.Output = cmp.Or(max(all.Output, 0), 64<<20)
	all.Timeout = cmp.Or(max(all.Timeout, 0), time.Minute)
	all.Reads = cmp.Or(max(all.Reads, 0), 1_000_000)
	if all.Cache == nil {
		all.Cache = shared()
	}
	return all
}

// pages is Memory in pages, at least one and at most what WebAssembly can address.
func (o *Options) pages() uint32 { return uint32(max(1, min(o.Memory/pageSize, 1<<16))) }

// An ExitError says that the program ended with a status other than 0.
type ExitError struct {
	Code   uint32
	Memory string // for people: that its memory was used up, "" where it was not
}

func (e *ExitError) Error() string {
	text := fmt.Sprintf("the module ended with status %d", e.Code)
	if e.Memory != "" {
		text += "; " + e.Memory
	}
	return text
}

// A TrapError says that the program did what WebAssembly forbids: it ran into unreachable code, divided by zero, looked outside of its
// memory, called itself too deep.
type TrapError struct {
	Reason string   // "unreachable", "out of bounds memory access", "stack overflow", …
	Stack  []string // its calls, the innermost first, with their names where the module has them
}

func (e *TrapError) Error() string {
	text := "trap: " + e.Reason
	if len(e.Stack) > 0 {
		text += ", in " + e.Stack[0]
	}
	return text
}

// A ModuleError says that something is no program for WASI preview 1.
type ModuleError struct {
	Reason string // what was expected and what came
}

func (e *ModuleError) Error() string { return e.Reason }

// An ImportError names what a module imports and nothing here gives.
type ImportError struct{ Missing []Import }

// An Import is one thing that a module wants of its host.
type Import struct {
	Module, Name string
	Kind         string // "function", "table", "memory", "global"
}

func (i Import) String() string { return fmt.Sprintf("%s %q of %q", i.Kind, i.Name, i.Module) }

func (e *ImportError) Error() string {
	var all []string
	for _, i := range e.Missing {
		all = append(all, i.String())
	}
	return fmt.Sprintf("the module imports what is not here: %s; there are the functions of %q and of %q (docs/reference/wasi.md)",
		strings.Join(all, ", "), wasiModule, hostModule)
}

// A LimitError says which of its limits a program ran into.
type LimitError struct {
	Limit string // "timeout", "memory", "output", "reads"
	What  string // what it did, with the limit, and the next step
}

func (e *LimitError) Error() string { return e.What }

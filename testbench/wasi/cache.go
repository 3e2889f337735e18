package wasi

import (
	"context"
	"fmt"
	"sync"

	"github.com/tetratelabs/wazero"

	"github.com/tapedeck-dev/tapedeck/cas"
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

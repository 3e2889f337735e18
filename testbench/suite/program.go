package suite

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/tapedeck-dev/tapedeck/testbench"
	"github.com/tapedeck-dev/tapedeck/testbench/script"
	"github.com/tapedeck-dev/tapedeck/testbench/wasi"
)

// A Program is a script, or a WASI module: a file whose name ends in .wasm.
type Program struct {
	Path   string
	Limits script.Options // Args, Entry and Print are not used; Steps holds for scripts alone
	In     io.Reader      // a module's standard input; nil is empty
	Out    io.Writer      // gets what a script returns, or a module prints; nil drops it
	Err    io.Writer      // gets what a script logs, or a module prints on standard error; nil drops it
}

// An Outcome is how a program ended that came to its end.
type Outcome struct {
	Result     json.RawMessage // what a script returned; null of a module
	Steps      uint64          // of a script
	Assertions int             // of a script: those that held
}

// IsModule reports whether a program is a WASI module.
func (p *Program) IsModule() bool { return strings.HasSuffix(p.Path, ".wasm") }

// Run runs the program on b and ends b. What it returns has been written when it ends, whatever b's end meets. The error is what Detail
// tells and StatusOf sorts; LeftBehind says of a program that it still runs.
func (p *Program) Run(ctx context.Context, b *testbench.Bench) (*Outcome, error) {
	run := p.script
	if p.IsModule() {
		run = p.module
	}
	out, err := run(ctx, b)
	if err = end(b, err); err != nil {
		return nil, err
	}
	return out, nil
}

func (p *Program) script(ctx context.Context, b *testbench.Bench) (*Outcome, error) {
	limits := p.Limits
	limits.Entry, limits.Args, limits.Print = "", nil, p.Err
	r, err := script.Run(ctx, b, p.Path, &limits)
	if err != nil {
		return nil, err
	}
	if p.Out != nil {
		err = r.Fprint(p.Out)
	}
	return &Outcome{Result: r.JSON, Steps: r.Steps, Assertions: r.Assertions}, err
}

func (p *Program) module(ctx context.Context, b *testbench.Bench) (*Outcome, error) {
	cache, err := moduleCache()
	if err != nil {
		return nil, err
	}
	defer cache.Close()
	_, err = wasi.Run(ctx, b, p.Path, &wasi.Options{
		Stdin: p.In, Stdout: p.Out, Stderr: p.Err, Memory: p.Limits.Memory, Timeout: p.Limits.Timeout, Cache: cache,
	})
	return &Outcome{Result: json.RawMessage("null")}, err
}

// moduleCache keeps compiled modules in the user's directory of caches, which nobody else may write to; in memory where there is none.
func moduleCache() (*wasi.Cache, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return wasi.NewCache("")
	}
	dir = filepath.Join(dir, "tapedeck", "modules")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return wasi.NewCache("") // a home that is read-only costs time alone
	}
	if st, err := os.Stat(dir); err != nil || runtime.GOOS != "windows" && st.Mode().Perm()&0o022 != 0 {
		return nil, fmt.Errorf("%s holds machine code and may be written to by others: chmod go-w %[1]s", dir)
	}
	return wasi.NewCache(dir)
}

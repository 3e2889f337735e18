package suite

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/tapedeck-dev/tapedeck/axis/llm/fixture"
	"github.com/tapedeck-dev/tapedeck/internal/lazyregexp"
	"github.com/tapedeck-dev/tapedeck/tape"
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

// first holds what Create writes; NAME stands for the name, in names and texts.
//
//go:embed first/*
var first embed.FS

var goodName = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9_-]*$`)

// stubName is the name of the type stub that Create writes: Pyright, and editors with it, take the names in it for built in.
const stubName = "__builtins__.pyi"

// Create writes a first script called name into dir, which is made where it is not there: the script, its tests, the answers of the
// model that they need, and the type stub for editors. It returns the files that it wrote in that order. Nothing is written where one of
// them is there already, but for the stub, which stays as it is.
func Create(dir, name string) ([]string, error) {
	name = strings.TrimSuffix(name, ".star")
	if !goodName.MatchString(name) || strings.HasSuffix(name+".star", Suffix) {
		return nil, fmt.Errorf("%q is no name for a script: want letters, digits, _ and -, and no _test at its end", name)
	}
	var paths []string
	for _, from := range []string{"NAME.star", "NAME_test.star", "NAME_test.llm.jsonl"} {
		path := filepath.Join(dir, strings.ReplaceAll(from, "NAME", name))
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			return nil, errors.Join(err, fmt.Errorf("%s is there already: choose another name", path))
		}
		paths = append(paths, path)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	for _, path := range paths {
		text, err := first.ReadFile("first/NAME" + strings.TrimPrefix(filepath.Base(path), name))
		if err == nil {
			err = create(path, bytes.ReplaceAll(text, []byte("NAME"), []byte(name)))
		}
		if err != nil {
			return nil, err
		}
	}
	stub := filepath.Join(dir, stubName)
	switch err := create(stub, script.Stub()); {
	case err == nil:
		paths = append(paths, stub)
	case !errors.Is(err, fs.ErrExist):
		return nil, err
	}
	return paths, nil
}

func create(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}

// Rules returns the calls of models on the tape at path, or that of a recording, as rules of a fixture, in order. The error is that of
// the tape, or that a blob which a call names is missing; a tape without such a call has no rules.
func Rules(path string) ([]fixture.Rule, error) {
	path = testbench.TapePath(path)
	t, err := tape.Open(path, &tape.ReaderOptions{Tolerant: true})
	if err != nil {
		return nil, err
	}
	defer t.Close()
	rules, err := fixture.FromTape(t.Records(), t.Store)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return rules, nil
}

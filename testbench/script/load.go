package script

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// module is a file that has run, or does.
type module struct {
	globals starlark.StringDict
	err     error
}

// load is the statement of that name: a path below the script's directory, relative to the file that loads.
func (r *run) load(t *starlark.Thread, name string) (starlark.StringDict, error) {
	from := r.within(t.CallFrame(0).Pos.Filename())
	to := path.Join(path.Dir(from), name)
	if name == "" || strings.ContainsAny(name, "\\\x00") || path.IsAbs(name) || !filepath.IsLocal(filepath.FromSlash(to)) {
		return nil, fmt.Errorf("a file below the script's directory is wanted, with slashes, got %q", name)
	}
	return r.module(contextOf(t), append(loading(t), from), to)
}

// within is the path of a file below the script's directory, of the name that its positions have.
func (r *run) within(filename string) string {
	rel, err := filepath.Rel(filepath.FromSlash(r.dir), filepath.FromSlash(filename))
	if err != nil {
		return filename
	}
	return filepath.ToSlash(rel)
}

const localLoading = "loading"

// loading are the files above the one that t runs, the script first.
func loading(t *starlark.Thread) []string {
	chain, _ := t.Local(localLoading).([]string)
	return slices.Clip(chain)
}

// module runs a file once. chain are the files that are loading it.
func (r *run) module(ctx context.Context, chain []string, name string) (starlark.StringDict, error) {
	if i := slices.Index(chain, name); i >= 0 {
		return nil, fmt.Errorf("a circle of files that load each other: %s", strings.Join(append(chain[i:], name), " → "))
	}
	m := r.modules[name]
	if m == nil {
		m = &module{}
		r.modules[name] = m
		m.globals, m.err = r.exec(ctx, chain, name)
	}
	return m.globals, m.err
}

func (r *run) exec(ctx context.Context, chain []string, name string) (starlark.StringDict, error) {
	shown := path.Join(r.dir, name)
	src, err := r.read(name)
	if err != nil {
		return nil, &Error{Message: err.Error(), cause: err}
	}
	r.sources[shown] = src
	program, err := r.compile(shown, src)
	if err != nil {
		return nil, r.compileError(err)
	}
	depth := len(chain)
	t := r.thread(ctx, name, depth)
	t.SetLocal(localLoading, chain)
	defer r.budget.enter(t, depth)()
	globals, err := program.Init(t, r.predeclared)
	if err != nil {
		return nil, r.fault(err)
	}
	return globals, nil
}

func (r *run) compile(name string, src []byte) (*starlark.Program, error) {
	f, err := parse(name, src)
	if err != nil {
		return nil, err
	}
	return starlark.FileProgram(f, r.predeclared.Has)
}

// read opens a regular file below the script's directory; links that lead out are refused by the root.
func (r *run) read(name string) ([]byte, error) {
	info, err := r.root.Stat(filepath.FromSlash(name))
	if err != nil {
		return nil, opening(name, err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file: a script is one", name)
	}
	f, err := r.root.Open(filepath.FromSlash(name))
	if err != nil {
		return nil, opening(name, err)
	}
	defer f.Close()
	return readBounded(f)
}

// opening is an error of the root without the name of its system call.
func opening(name string, err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return &fs.PathError{Op: "open", Path: name, Err: at.Err}
	}
	return err
}

// testNames are the tests of a file. The error is a syntax.Error.
func testNames(f *syntax.File) (names []string, err error) {
	for _, s := range f.Stmts {
		def, ok := s.(*syntax.DefStmt)
		if !ok || !strings.HasPrefix(def.Name.Name, "test_") {
			continue
		}
		name := def.Name.Name
		switch {
		case len(def.Params) > 0:
			return nil, syntax.Error{Pos: def.Name.NamePos, Msg: name + " takes parameters, and a test takes none: give what it needs beside the file, or name it otherwise"}
		case slices.Contains(names, name):
			return nil, syntax.Error{Pos: def.Name.NamePos, Msg: name + " stands twice, and the first one would never run: name one otherwise"}
		}
		names = append(names, name)
	}
	return names, nil
}

package wasi_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/tapedeck-dev/tapedeck/testbench"
	"github.com/tapedeck-dev/tapedeck/testbench/wasi"
)

// Programs of testdata as modules, each compiled once.
var (
	prog  = sync.OnceValues(func() (string, error) { return build("prog") })
	hello = sync.OnceValues(func() (string, error) { return build("hello") })
)

func build(name string) (path string, err error) {
	if built == "" {
		if built, err = os.MkdirTemp("", "tapedeck-wasi-"); err != nil {
			return "", err
		}
	}
	path = filepath.Join(built, name+".wasm")
	cmd := exec.Command("go", "build", "-trimpath", "-o", path, "./testdata/"+name)
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", &buildError{out: string(out), err: err}
	}
	return path, nil
}

type buildError struct {
	out string
	err error
}

func (e *buildError) Error() string { return e.err.Error() + ": " + e.out }

var built string // their directory

func TestMain(m *testing.M) {
	status := m.Run()
	if built != "" {
		os.RemoveAll(built)
	}
	os.Exit(status)
}

// goModule returns the path of testdata/prog, compiled for WASI; in the long form only, since the standard library is compiled with it.
func goModule(t testing.TB) string { t.Helper(); return compiled(t, prog) }

func compiled(t testing.TB, build func() (string, error)) string {
	t.Helper()
	if os.Getenv("TAPEDECK_LONG") == "" {
		t.Skip("compiles Go for WASI: TAPEDECK_LONG=1 tries it")
	}
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("no go command here: modules in Go are not tried")
	}
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// ran is what became of a module.
type ran struct {
	res            *wasi.Result
	err            error
	stdout, stderr string
	tape           []byte
}

// run runs prog with those arguments.
func run(t testing.TB, c *testbench.Config, o *wasi.Options, args ...string) *ran {
	t.Helper()
	path := goModule(t)
	return runWith(t, c, o, args, func(ctx context.Context, b *testbench.Bench, o *wasi.Options) (*wasi.Result, error) {
		return wasi.Run(ctx, b, path, o)
	})
}

// runBytes runs a module.
func runBytes(t testing.TB, c *testbench.Config, o *wasi.Options, code []byte) *ran {
	t.Helper()
	return runWith(t, c, o, nil, func(ctx context.Context, b *testbench.Bench, o *wasi.Options) (*wasi.Result, error) {
		return wasi.RunModule(ctx, b, "test.wasm", code, o)
	})
}

func runWith(t testing.TB, c *testbench.Config, o *wasi.Options, args []string,
	do func(context.Context, *testbench.Bench, *wasi.Options) (*wasi.Result, error),
) *ran {
	t.Helper()
	var out, errs, kept bytes.Buffer
	config, options := testbench.Config{}, wasi.Options{}
	if c != nil {
		config = *c
	}
	if o != nil {
		options = *o
	}
	config.Name, config.Args = "prog.wasm", args
	if config.Emit == "" {
		config.EmitTo = &kept
	}
	b, err := testbench.Open(&config)
	if err != nil {
		t.Fatal(err)
	}
	options.Stdout, options.Stderr = &out, &errs
	r := &ran{}
	r.res, r.err = do(t.Context(), b, &options)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	r.stdout, r.stderr, r.tape = out.String(), errs.String(), kept.Bytes()
	return r
}

// ended fails the test where the module did not end well.
func (r *ran) ended(t testing.TB) *ran {
	t.Helper()
	if r.err != nil || r.res == nil || r.res.ExitCode != 0 {
		t.Fatalf("got %+v, %v\nstdout: %s\nstderr: %s", r.res, r.err, r.stdout, r.stderr)
	}
	return r
}

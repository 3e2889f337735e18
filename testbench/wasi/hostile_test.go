package wasi_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/testbench"
	"github.com/tapedeck-dev/tapedeck/testbench/wasi"
)

func TestWhatIsNoProgram(t *testing.T) {
	for name, tt := range map[string]struct {
		code []byte
		want string
	}{
		"nothing":                {nil, `which begins with "\x00asm", got ""`},
		"a script":               {[]byte("#!/bin/sh\nexit 0\n"), `got "#!/bin/s"`},
		"a component":            {[]byte("\x00asm\x0d\x00\x01\x00"), "got a component (WASI preview 2 or later); compile for wasip1"},
		"half a header":          {[]byte("\x00asm\x01"), "not all of one"},
		"an empty module":        {module(), "exports the function _start; this module does not"},
		"a library":              {module(types, oneFunction, section(7, vec(join(text("_initialize"), part{0, 0}))), section(10, vec(body()))), "got a library (a reactor)"},
		"_start is a memory":     {module(onePage, section(7, vec(join(text("_start"), part{2, 0})))), "this module does not"},
		"it ends early":          {program()[:40], "no WebAssembly 2.0 module"},
		"code that is not":       {program(0xff), "no WebAssembly 2.0 module"},
		"of another type":        {program(opI32Const, 1), "no WebAssembly 2.0 module"},
		"_start takes something": {module(types, section(3, vec(u32(4))), startIsZero, section(10, vec(body(opI32Const, 1)))), "does not start"},
		"imports, no memory": {module(types, section(2, vec(function("tapedeck", "take", 2))), oneFunction,
			section(7, vec(join(text("_start"), part{0, 1}))), section(10, vec(body()))), "want a memory"},
	} {
		t.Run(name, func(t *testing.T) {
			r := runBytes(t, nil, nil, tt.code)
			var wrong *wasi.ModuleError
			if !errors.As(r.err, &wrong) || !strings.Contains(r.err.Error(), tt.want) || !strings.HasPrefix(r.err.Error(), "test.wasm: ") {
				t.Errorf("got %v, want %q in it", r.err, tt.want)
			}
		})
	}
}

func TestImportsThatAreNotHere(t *testing.T) {
	for name, tt := range map[string]struct {
		code []byte
		want string
	}{
		"of another module": {importing([]part{function("env", "foo", 0)}), `function "foo" of "env"`},
		"of WASI":           {importing([]part{function("wasi_snapshot_preview1", "sock_connect", 1)}), `function "sock_connect" of "wasi_snapshot_preview1"`},
		"of an older WASI":  {importing([]part{function("wasi_unstable", "fd_write", 3)}), `function "fd_write" of "wasi_unstable"`},
		"of ours":           {importing([]part{function("tapedeck", "llm.complet", 1)}), `function "llm.complet" of "tapedeck"`},
		"two":               {importing([]part{function("env", "a", 0), function("env", "b", 0)}), `"a" of "env", function "b" of "env"`},
		"a memory":          {module(types, section(2, vec(join(text("env"), text("memory"), part{2, 0, 1}))), oneFunction, startIsZero, section(10, vec(body()))), `memory "memory" of "env"`},
	} {
		t.Run(name, func(t *testing.T) {
			r := runBytes(t, nil, nil, tt.code)
			var missing *wasi.ImportError
			if !errors.As(r.err, &missing) || !strings.Contains(r.err.Error(), tt.want) {
				t.Errorf("got %v, want %q in it", r.err, tt.want)
			}
		})
	}
	r := runBytes(t, nil, nil, importing([]part{function("tapedeck", "llm.complete", 0)}))
	var wrong *wasi.ModuleError
	if !errors.As(r.err, &wrong) || !strings.Contains(r.err.Error(), "llm.complete") {
		t.Errorf("of another type: got %v", r.err)
	}
}

func TestTraps(t *testing.T) {
	for name, tt := range map[string]struct {
		code []byte
		want string
	}{
		"unreachable":         {program(opUnreachable), "unreachable"},
		"outside of memory":   {program(opI32Const, 0x7f, opI32Const, 1, opI32Store, 0, 0), "out of bounds memory access"},
		"a division by zero":  {program(opI32Const, 1, opI32Const, 0, 0x6d, opDrop), "integer divide by zero"},
		"it calls itself":     {program(opCall, 0), "stack overflow"},
		"before it begins":    {module(types, oneFunction, onePage, startIsZero, section(8, u32(0)), section(10, vec(body(opUnreachable)))), "unreachable"},
		"data that fits not":  {module(types, oneFunction, onePage, startIsZero, section(10, vec(body())), section(11, vec(join(part{0, opI32Const, 0x7f, opEnd}, text("xx"))))), "out of bounds"},
		"no such table entry": {module(types, oneFunction, section(4, vec(part{0x70, 0, 1})), startIsZero, section(10, vec(body(opI32Const, 0, 0x11, 0, 0)))), "invalid table access"},
	} {
		t.Run(name, func(t *testing.T) {
			r := runBytes(t, nil, nil, tt.code)
			if r.err == nil || !strings.Contains(r.err.Error(), tt.want) {
				t.Errorf("got %v, want %q", r.err, tt.want)
			}
		})
	}
	var trap *wasi.TrapError
	r := runBytes(t, nil, nil, program(opUnreachable))
	if !errors.As(r.err, &trap) || trap.Reason != "unreachable" || len(trap.Stack) != 1 || r.res != nil {
		t.Errorf("got %+v", trap)
	}
}

// TestBusyLoops: whatever a module does without an end, it is ended.
func TestBusyLoops(t *testing.T) {
	loop := []byte{opLoop, noResult, opBr, 0, opEnd}
	for name, code := range map[string][]byte{
		"a loop":            program(loop...),
		"before it begins":  module(types, oneFunction, onePage, startIsZero, section(8, u32(0)), section(10, vec(body(loop...)))),
		"yielding the turn": importing([]part{function("wasi_snapshot_preview1", "sched_yield", 5)}, opLoop, noResult, opCall, 0, opDrop, opBr, 0, opEnd),
	} {
		t.Run(name, func(t *testing.T) {
			if name == "yielding the turn" {
				code = replaceTypes(code)
			}
			began := time.Now()
			r := runBytes(t, nil, &wasi.Options{Timeout: 100 * time.Millisecond}, code)
			var limit *wasi.LimitError
			if !errors.As(r.err, &limit) || limit.Limit != "timeout" || !strings.Contains(r.err.Error(), "100ms") {
				t.Errorf("got %v", r.err)
			}
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// replaceTypes gives a module a sixth type, ()->i32.
func replaceTypes(code []byte) []byte {
	more := section(1, vec(part{0x60, 0, 0}, part{0x60, 2, 0x7f, 0x7f, 1, 0x7f}, part{0x60, 1, 0x7f, 0},
		part{0x60, 4, 0x7f, 0x7f, 0x7f, 0x7f, 1, 0x7f}, part{0x60, 1, 0x7f, 1, 0x7f}, part{0x60, 0, 1, 0x7f}))
	return join(code[:8], more, code[8+len(types):])
}

func TestGoProgramsThatWouldNotEnd(t *testing.T) {
	for name, tt := range map[string]struct {
		o     wasi.Options
		limit string
		want  string
	}{
		"spin":  {wasi.Options{Timeout: 200 * time.Millisecond}, "timeout", "still ran after 200ms"},
		"watch": {wasi.Options{Reads: 1000}, "reads", "read the clock 1000 times while it stood still"},
		"ask":   {wasi.Options{Reads: 1000}, "reads", "read the clock 1000 times while it stood still"},
		"shout": {wasi.Options{Output: 1 << 20}, "output", "printed more than 1048576 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			r := run(t, nil, &tt.o, name)
			var limit *wasi.LimitError
			if !errors.As(r.err, &limit) || limit.Limit != tt.limit || !strings.Contains(r.err.Error(), tt.want) {
				t.Errorf("got %v, want %q", r.err, tt.want)
			}
		})
	}
}

// TestMemory: a module gets no more than it may have, and its language says what that means.
func TestMemory(t *testing.T) {
	r := run(t, nil, &wasi.Options{Memory: 32 << 20}, "grow")
	var exit *wasi.ExitError
	if !errors.As(r.err, &exit) || !strings.Contains(r.stderr, "out of memory") || !strings.Contains(r.err.Error(), "33554432") {
		t.Errorf("got %v\n%.300s", r.err, r.stderr)
	}
	if r := run(t, nil, &wasi.Options{Memory: 64 << 20}, "deep"); !errors.As(r.err, &exit) {
		t.Errorf("endless recursion: got %v\n%.300s", r.err, r.stderr)
	}
	var wrong *wasi.ModuleError
	r = runBytes(t, nil, &wasi.Options{Memory: 1 << 20}, module(types, oneFunction, section(5, vec(part{0, 17})), startIsZero, section(10, vec(body()))))
	if !errors.As(r.err, &wrong) || !strings.Contains(r.err.Error(), "--memory") || !strings.Contains(r.err.Error(), "17 pages (1 Mi) over limit of 16 pages") {
		t.Errorf("got %v", r.err)
	}
	// It grows until it is told -1, which it must be.
	runBytes(t, nil, &wasi.Options{Memory: 1 << 20}, program(opLoop, noResult,
		opI32Const, 1, opMemoryGrow, 0, opI32Const, 0x7f, opI32Ne, opBrIf, 0, opEnd)).ended(t)
}

// TestPathsThatLeadOut: the tree lies over a directory, beside which lies a secret, and links lead there.
func TestPathsThatLeadOut(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "work")
	secret := filepath.Join(top, "secret")
	for _, err := range []error{
		os.Mkdir(dir, 0o755), os.WriteFile(secret, []byte("the secret"), 0o600),
		os.Symlink(secret, filepath.Join(dir, "absolute")), os.Symlink("../secret", filepath.Join(dir, "relative")),
		os.Symlink("..", filepath.Join(dir, "up")), os.Symlink("loop", filepath.Join(dir, "loop")),
	} {
		if err != nil {
			t.Skip("no symbolic links here: ", err)
		}
	}
	out := filepath.Join(t.TempDir(), "run.tape")
	hostile := []string{"../secret", "../../../../../../../../etc/passwd", secret, "absolute", "relative", "up/secret", "loop", "aNULb",
		"\xff", strings.Repeat("x", 5000), "", "/", ".", "/dev/stdin", "/proc/self/environ"}
	r := run(t, &testbench.Config{Files: testbench.Files{Dir: dir}, Emit: out}, nil, append([]string{"paths"}, hostile...)...).ended(t)
	tape, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	for where, got := range map[string]string{"standard output": r.stdout, "the tape": string(tape)} {
		if strings.Contains(got, "the secret") || strings.Contains(got, "root:") {
			t.Errorf("%s has what lies outside:\n%s", where, got)
		}
	}
	if b, err := os.ReadFile(secret); err != nil || string(b) != "the secret" {
		t.Errorf("the file outside: %q, %v", b, err)
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) != 4 {
		t.Errorf("the directory has %v, %v", list, err)
	}
	if strings.Count(r.stdout, "true\n") < len(hostile) {
		t.Errorf("something was read:\n%.2000s", r.stdout)
	}
}

func TestOpenFiles(t *testing.T) {
	if r := run(t, nil, nil, "open").ended(t); !strings.HasPrefix(r.stdout, "true ") {
		t.Errorf("got %s", r.stdout)
	}
}

//go:build wasi

package wasi

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/llm/fixture"
	"github.com/tapedeck-dev/tapedeck/axis/process"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/testbench"
	"github.com/tapedeck-dev/tapedeck/testbench/wasi"
)

// A compiler makes a module of a file of testdata; the error says what is not installed.
type compiler func(t *testing.T, source, module string) error

func TestC(t *testing.T) { agent(t, "agent.c", clang, " s later, ") }

func TestRust(t *testing.T) { agent(t, "agent.rs", rust, " s later\n") }

func clang(t *testing.T, source, module string) error {
	path, err := exec.LookPath("clang")
	if err == nil {
		_, err = os.Stat("/usr/include/wasm32-wasi")
	}
	if err != nil {
		return fmt.Errorf("%w: apt-get install clang lld wasi-libc libclang-rt-dev-wasm32", err)
	}
	compile(t, path, "--target=wasm32-wasi", "-O2", "-o", module, source)
	return nil
}

// rust takes the first rustc that has the library of a target of WASI: another one than Debian's may come first on the path.
func rust(t *testing.T, source, module string) error {
	for _, rustc := range []string{"rustc", "/usr/bin/rustc"} {
		for _, target := range []string{"wasm32-wasip1", "wasm32-wasi"} {
			dir, err := exec.Command(rustc, "--print", "target-libdir", "--target", target).Output()
			if err != nil {
				continue
			}
			if found, _ := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "libstd-*.rlib")); len(found) > 0 {
				compile(t, rustc, "--target", target, "--edition", "2021", "-O", "-o", module, source)
				return nil
			}
		}
	}
	return fmt.Errorf("no rustc with the library of wasm32-wasi: apt-get install rustc libstd-rust-dev-wasm32, or rustup target add wasm32-wasip1")
}

func compile(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
}

// agent compiles one, runs it twice and replays it.
func agent(t *testing.T, source string, compile compiler, said string) {
	module := filepath.Join(t.TempDir(), "agent.wasm")
	if err := compile(t, filepath.Join("testdata", source), module); err != nil {
		t.Skip("not tried: ", err)
	}
	dir := t.TempDir()
	first, second := filepath.Join(dir, "1.tape"), filepath.Join(dir, "2.tape")
	out := run(t, module, first)
	for _, want := range []string{`{"text":"main.go did.","tool_calls":[]`, `{"stdout":" M main.go\n","stderr":"","exit_code":0,"duration_ms":30}`,
		"last, daily: 86400" + said} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	if again := run(t, module, second); again != out {
		t.Errorf("the second run printed\n%s\nthe first\n%s", again, out)
	}
	if a, b := read(t, first), read(t, second); !bytes.Equal(a, b) {
		t.Errorf("two runs, two tapes:\n%s\n%s", a, b)
	}
	replay(t, module, first, out)
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func run(t *testing.T, module, tape string) string {
	t.Helper()
	b := testbench.New(t, &testbench.Config{
		Args: []string{"first", "last"}, Env: map[string]string{"MODE": "daily"}, Emit: tape,
		LLM: testbench.LLM{Rules: []fixture.Rule{{
			Match: fixture.Match{Contains: "What changed?"}, Response: &fixture.Response{Text: "main.go did.", StopReason: "end_turn"},
		}}},
		Processes: testbench.Processes{Calls: []process.Call{{Program: "git", Args: []string{"status", "--short"}, Stdout: " M main.go\n", DurationMS: 30}}},
	})
	out := runOn(t, b, module)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	return out
}

func runOn(t *testing.T, b *testbench.Bench, module string) string {
	t.Helper()
	var out, errs bytes.Buffer
	if _, err := wasi.Run(t.Context(), b, module, &wasi.Options{Stdout: &out, Stderr: &errs}); err != nil {
		t.Fatalf("%v\n%s%s", err, out.String(), errs.String())
	}
	return out.String()
}

func replay(t *testing.T, module, tape, out string) {
	t.Helper()
	b, err := testbench.Replay(tape, nil)
	if err != nil {
		t.Fatal(err)
	}
	if again := runOn(t, b, module); again != out {
		t.Errorf("the replay printed\n%s\nthe run\n%s", again, out)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	report, err := b.Verdict(fidelity.ByteIdentical)
	if err != nil || len(report.Divergences) > 0 {
		t.Errorf("the replay differs: %+v, %v", report, err)
	}
}

// TestTheDocumentation: its examples are these files, which it names.
func TestTheDocumentation(t *testing.T) {
	text := string(read(t, "../../docs/reference/wasi.md"))
	for _, name := range []string{"tapedeck.h", "agent.c", "agent.rs"} {
		if read(t, filepath.Join("testdata", name)); !strings.Contains(text, "(../../integration/wasi/testdata/"+name+")") {
			t.Errorf("docs/reference/wasi.md does not name testdata/%s", name)
		}
	}
}

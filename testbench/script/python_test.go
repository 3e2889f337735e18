package script_test

import (
	"errors"
	"testing"

	"github.com/tapedeck-dev/tapedeck/testbench"
	"github.com/tapedeck-dev/tapedeck/testbench/script"
)

// TestPythonThatIsNoStarlark says of what only Python has what a script uses in its place.
func TestPythonThatIsNoStarlark(t *testing.T) {
	for src, want := range map[string][2]string{
		"return f\"{1}\"":           {"got string literal, want newline", `there are no f-strings: "%d of %s" % (n, name), or "{} of {}".format(n, name)`},
		"return of\"x\"":            {"got string literal, want newline", ""},
		"time.sleep(1)":             {"undefined: time", "the clock is clock.now_ms(), clock.monotonic_ms() and clock.sleep(ms)"},
		"return open(\"x\")":        {"undefined: open", "fs.read(path) and fs.write(path, data) take whole files"},
		"time.sleep(nil)":           {"undefined: time", "the clock is clock.now_ms(), clock.monotonic_ms() and clock.sleep(ms)\n  also line 2: undefined: nil"},
		"return isinstance(1, int)": {"undefined: isinstance", `type(x) == "int" asks for a type`},
		"raise 1":                   {"got raise, want primary expression", `fail("…") ends the script with an error`},
	} {
		b := testbench.New(t, nil)
		_, err := script.Run(t.Context(), b, write(t, "def main():\n  "+src+"\n"), nil)
		var e *script.Error
		if !errors.As(err, &e) || e.Message != want[0] || e.Hint != want[1] {
			t.Errorf("%s: %v, want %q", src, err, want)
		}
	}
}

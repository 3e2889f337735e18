//go:build escape

package escape

import (
	"fmt"
	"os"
	"testing"
)

// asked are the parts of this program that are no tests: run by it, outside or inside.
var asked = map[string]func(args []string) error{
	"launch":   launch,
	"inside":   func(args []string) error { return runInside(len(args) > 0) },
	"try":      func(args []string) error { return runTry(args[0]) },
	"stunt":    runStunt,
	"victim":   func([]string) error { return runVictim() },
	"relative": func([]string) error { return bindRelative() },
}

// TestMain also is what runs inside: the tries are made by this executable.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && asked[os.Args[1]] != nil {
		if err := asked[os.Args[1]](os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "escape:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

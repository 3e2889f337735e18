package openfiles_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/internal/openfiles"
)

// TestAtStart: the limit is that which the shell gave, not that to which Go has raised it since.
func TestAtStart(t *testing.T) {
	const marker = "TAPEDECK_OPENFILES_TEST"
	if os.Getenv(marker) != "" {
		fmt.Print(openfiles.AtStart().Soft)
		os.Exit(0)
	}
	cmd := exec.Command("sh", "-c", `ulimit -Sn 123 && exec "$0" -test.run '^TestAtStart$'`, os.Args[0])
	cmd.Env = append(os.Environ(), marker+"=1")
	if out, err := cmd.Output(); err != nil || strings.TrimSpace(string(out)) != "123" {
		t.Errorf("%s, %v", out, err)
	}
}

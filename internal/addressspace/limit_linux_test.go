package addressspace

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestMain ends before the tests where this is the process that was given too little: init has ended it then.
func TestMain(m *testing.M) {
	if os.Getenv("ADDRESSSPACE_TEST") != "" {
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestLimit(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		limit, command string
		status         int
	}{
		{"1500000", "record -- true", 125}, {"1500000", "cassette record", 125}, {"1500000", "mcp wrap -- cat", 125},
		{"1500000", "replay last", 1}, {"1500000", "quickstart --json", 1}, {"1500000", "doctor", 1},
		{"1500000", "", 0}, {"1500000", "--version", 0}, {"1500000", "--help", 0}, {"1500000", "show last", 0}, {"1500000", "verify last", 0},
		{"1500000", "cassette info last", 0}, {"1500000", "mcp serve last", 0}, {"1500000", "record --help", 0},
		{"1500000", "mcp wrap -h", 0}, {"1500000", "quickstart endpoint", 0}, {"unlimited", "record", 0},
	} {
		exe, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("sh", "-c", "ulimit -v "+tt.limit+` && exec "$0" "$@"`, exe)
		cmd.Args = append(cmd.Args, strings.Fields(tt.command)...)
		cmd.Env = append(os.Environ(), "ADDRESSSPACE_TEST=1")
		out, _ := cmd.CombinedOutput()
		lines := strings.Count(string(out), "\n")
		if got := cmd.ProcessState.ExitCode(); got != tt.status || (tt.status == 0) != (lines == 0) || lines > 1 {
			t.Errorf("ulimit %s, %s: status %d, want %d\n%s", tt.limit, tt.command, got, tt.status, out)
		}
	}
}

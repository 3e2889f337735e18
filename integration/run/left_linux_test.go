package run

import (
	"os/exec"
	"strings"
	"testing"
)

// TestRunning finds a process of the box, and none once that has ended.
func TestRunning(t *testing.T) {
	b := &Box{t: t, Home: t.TempDir()}
	cmd := exec.Command("cat")
	cmd.Env = []string{"HOME=" + b.Home}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if found := b.Running(); len(found) != 1 || !strings.HasPrefix(found[0], "cat") {
		t.Errorf("found %q", found)
	}
	stdin.Close()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if found := b.Running(); len(found) != 0 {
		t.Errorf("found %q after its end", found)
	}
}

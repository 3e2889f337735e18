package jail

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/internal/jail/mount"
)

func TestProbe(t *testing.T) {
	t.Parallel()
	if err := Available(); err != nil {
		t.Fatal(err)
	}
	for _, c := range Probe() {
		t.Logf("%+v", c)
		if !c.OK {
			t.Errorf("%s: %s", c.Name, c.Detail)
		}
		if c.OK != (c.Cost == "") {
			t.Errorf("%s: OK %v with cost %q", c.Name, c.OK, c.Cost)
		}
	}
}

// TestProbeLeavesNothing: the kernel leaves a directory in layers that none but root may enter.
func TestProbeLeavesNothing(t *testing.T) {
	t.Parallel()
	base, err := os.MkdirTemp("/var/tmp", "tapedeck-test-")
	if err != nil {
		t.Fatal(err)
	}
	if err := tryOverlay(base); err != nil {
		t.Error(err)
	}
	if err := os.Remove(base); err != nil { // which fails where something is in it
		t.Error(err)
	}
}

// TestUnavailable takes away what the jail needs in namespaces of the test's own.
func TestUnavailable(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("unshare"); err != nil {
		t.Skip("unshare is not installed")
	}
	for _, tt := range []struct{ name, spoil, want string }{
		{"nothing", "true", "available\n"},
		{"namespaces", "echo 0 >/proc/sys/user/max_user_namespaces", "user namespaces are switched off: user.max_user_namespaces is 0"},
		{"proc", "mount -t tmpfs none /proc/tty", mount.OpProc},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := helperConfig(t, "available")
			cmd := exec.Command("unshare", "-Urmpf", "--mount-proc", "sh", "-c", tt.spoil+` && exec "$0"`, c.Path)
			cmd.Env = c.Env
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Skipf("cannot take it away here: %v %s", err, out)
			}
			if !strings.Contains(string(out), tt.want) {
				t.Errorf("%s", out)
			}
		})
	}
}

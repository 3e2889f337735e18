package jail

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// likewise are tests of what is the same for every user, and takes long.
const likewise = "TestSpawnsOf|TestSpawnsBlocking|TestSpawnsMany|TestStub|TestNothingLeaks|TestWatchCalls|TestWatchOldCalls|TestSignals|" +
	"TestExecStorm|TestExecKilled|TestExecStopped|TestInputsCrowd|TestInputsDebugged|TestSpawnEnds"

// TestUnprivileged runs this package's tests again as a user who is not root: of those that are likewise only in the long form.
func TestUnprivileged(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("is unprivileged already")
	}
	setpriv, err := exec.LookPath("setpriv")
	if err != nil {
		t.Skip("setpriv is not installed")
	}
	dir, err := os.MkdirTemp("/var/tmp", "tapedeck-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	exe, unreadable := filepath.Join(dir, "jail.test"), filepath.Join(dir, "unreadable")
	if err := errors.Join(copyFile("/proc/self/exe", exe), copyFile("/proc/self/exe", unreadable)); err != nil {
		t.Fatal(err)
	}
	tmp := filepath.Join(dir, "tmp")
	if err := os.Mkdir(tmp, 0o700); err != nil {
		t.Fatal(err)
	}
	const user = 65534
	for path, mode := range map[string]os.FileMode{dir: 0o755, exe: 0o755, unreadable: 0o711} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chown(tmp, user, user); err != nil {
		t.Fatal(err)
	}
	covered := filepath.Join(dir, "covered")
	coverTree(t, covered, user)
	args := []string{"--reuid", "65534", "--regid", "65534", "--clear-groups", exe, "-test.timeout=300s"} // with the race detector each start of a jail takes half a second
	if os.Getenv("TAPEDECK_LONG") == "" {
		args = append(args, "-test.skip="+likewise)
	}
	if testing.Verbose() {
		args = append(args, "-test.v")
	}
	cmd := exec.Command(setpriv, args...)
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + tmp, coveredVar + "=" + covered, unreadableVar + "=" + unreadable}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("as uid %d: %v\n%s", user, err, out)
	}
	t.Logf("%s", out)
}

func copyFile(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return writeProgram(to, content)
}

// writeProgram writes what is executed next. While it does no process is forked, which would hold the file open for writing until it executes
// something else: nobody can execute it till then.
func writeProgram(path string, content []byte) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(path, content, 0o755)
}

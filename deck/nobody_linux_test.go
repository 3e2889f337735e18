package deck_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

const nobody = 65534

// runAsNobody runs so many tests of this program, those of a pattern, as a user who is not root, in a directory of their own. prepare, which may be
// nil, fills that and returns what their environment has beside.
func runAsNobody(t *testing.T, pattern string, tests int, prepare func(dir string) []string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("not root: the tests have run so already")
	}
	dir, err := os.MkdirTemp("", "tapedeck-nobody-") // outside t.TempDir, whose path is not readable by everyone
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "deck.test")
	copyProgram(t, binary)
	env := []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + dir, "TMPDIR=" + dir}
	if prepare != nil {
		env = append(env, prepare(dir)...)
	}
	cmd := exec.Command(binary, "-test.run", pattern, "-test.v", "-test.timeout", "2m")
	cmd.Dir, cmd.Env = dir, env
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	report, err := cmd.CombinedOutput()
	switch {
	case err != nil:
		t.Errorf("%v\n%s", err, report)
	case bytes.Contains(report, []byte("--- SKIP")):
		t.Skipf("the jail does not work for everyone here\n%s", report)
	case bytes.Count(report, []byte("--- PASS")) != tests:
		t.Errorf("%s", report)
	}
}

// copyProgram copies the program that runs.
func copyProgram(t *testing.T, to string) {
	t.Helper()
	content, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	writeProgram(t, to, content)
}

// writeProgram writes what is executed next. While it does no process is forked, which would hold the file open for writing until it executes
// something else: nobody can execute it till then.
func writeProgram(t *testing.T, path string, content []byte) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, content, 0o755); err != nil {
		t.Fatal(err)
	}
}

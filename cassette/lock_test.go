package cassette_test

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/cassette"
)

const lockEnv = "CASSETTE_TEST_LOCK"

// lockUntilKilled takes a lock and says so.
func lockUntilKilled(root string) {
	if _, err := cassette.AcquireRecordLock(root, "a@example.com"); err != nil {
		panic(err)
	}
	os.Stdout.WriteString("locked\n")
	select {}
}

// TestLock has another process hold the lock, and kills it.
func TestLock(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(t.TempDir(), "cassettes")
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), lockEnv+"="+root)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	_, err = cassette.AcquireRecordLock(root, "a@example.com")
	var locked *cassette.LockedError
	if !errors.As(err, &locked) || locked.Holder.PID != cmd.Process.Pid || locked.Holder.Since.IsZero() || locked.Holder.Command != filepath.Base(exe) {
		t.Fatalf("%+v, %v", locked, err)
	}
	other, err := cassette.AcquireRecordLock(root, "b@example.com")
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Release(); err != nil {
		t.Error(err)
	}
	cmd.Process.Kill()
	cmd.Wait()
	l, err := cassette.AcquireRecordLock(root, "a@example.com")
	if err != nil {
		t.Fatalf("the holder is dead: %v", err)
	}
	if _, err := cassette.AcquireRecordLock(root, "a@example.com"); !errors.As(err, &locked) || locked.Holder.PID != os.Getpid() {
		t.Errorf("%+v, %v", locked, err)
	}
	if err := l.Release(); err != nil {
		t.Error(err)
	}
	if l, err = cassette.AcquireRecordLock(root, "a@example.com"); err != nil {
		t.Fatal(err)
	}
	l.Release()
}

// TestLockName gives accounts that would be paths.
func TestLockName(t *testing.T) {
	root := filepath.Join(t.TempDir(), "cassettes")
	for _, account := range []string{"../../x", "/etc/passwd", "", ".", "a\x00b", "con", strings.Repeat("x", 5000), "a/b", "a\\b", "A", "a", "ü"} {
		l, err := cassette.AcquireRecordLock(root, account)
		if err != nil {
			t.Fatalf("%q: %v", account, err)
		}
		defer l.Release()
	}
	entries, err := os.ReadDir(filepath.Join(root, ".locks"))
	if err != nil || len(entries) != 24 {
		t.Errorf("%d files, %v", len(entries), err)
	}
}

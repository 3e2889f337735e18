//go:build unix

package tape_test

import (
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
)

// specialFiles makes what is no regular file in dir.
func specialFiles(t *testing.T, dir string) []string {
	t.Helper()
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	short, err := os.MkdirTemp("", "tape") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(short) })
	socket := filepath.Join(short, "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	link := filepath.Join(dir, "link")
	if err := os.Symlink(fifo, link); err != nil {
		t.Fatal(err)
	}
	return []string{fifo, socket, link, os.DevNull, "/dev/zero"}
}

// limitEnv makes fillDisk's files end where a full disk would.
const limitEnv = "TAPE_TEST_LIMIT"

func init() {
	full := jobs["full"]
	jobs["full"] = func(args []string) error {
		if os.Getenv(limitEnv) != "" {
			signal.Ignore(syscall.SIGXFSZ)
			if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 64_000, Max: 64_000}); err != nil {
				return err
			}
		}
		return full(args)
	}
}

// A file that may not grow is a full disk for everybody, wherever the tests run.
func TestATapeThatMayNotGrowLoadsAndTheRunGoesOn(t *testing.T) {
	checkFull(t, func(cmd *exec.Cmd) { cmd.Env = append(cmd.Env, limitEnv+"=1") })
}

// checkFull fills a disk in a child that prepare gives little room.
func checkFull(t *testing.T, prepare func(*exec.Cmd)) {
	t.Helper()
	cmd := jobCommand(t, "full", t.TempDir())
	prepare(cmd)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	} else {
		t.Logf("%s", out)
	}
}

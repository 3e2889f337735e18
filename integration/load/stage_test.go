//go:build load && linux

package load

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// A stage has the daemon's program and a directory for what it keeps.
type stage struct {
	t       *testing.T // of the scenario
	long    bool
	dir     string
	program string
}

func newStage(t *testing.T) *stage {
	if err := moreDescriptors(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	st := &stage{long: os.Getenv("TAPEDECK_LONG") != "", dir: dir, program: filepath.Join(dir, "tapedeck")}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", st.program, "github.com/tapedeck-dev/tapedeck/cmd/tapedeck")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the daemon: %v\n%s", err, out)
	}
	return st
}

// of returns the short form of a size, or the long one.
func of[T any](st *stage, short, long T) T {
	if st.long {
		return long
	}
	return short
}

// note logs a measured value, or what was found.
func (st *stage) note(what, format string, args ...any) {
	st.t.Logf("%s: %s", what, fmt.Sprintf(format, args...))
}

// moreDescriptors raises the limit of open files: a session is one here and one in the daemon.
func moreDescriptors() error {
	const wanted = 16384
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return err
	}
	if l.Cur >= wanted {
		return nil
	}
	l.Cur = min(wanted, l.Max)
	if l.Cur < wanted {
		return fmt.Errorf("%d open files are allowed, %d are needed: raise the hard limit (ulimit -Hn)", l.Max, wanted)
	}
	return unix.Setrlimit(unix.RLIMIT_NOFILE, &l)
}

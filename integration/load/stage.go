//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// A stage has the daemon's program, a directory for what it keeps, and the figures so far.
type stage struct {
	long    bool
	log     io.Writer
	dir     string
	program string
	figures []figure
}

// A figure is one measured value, or what was found.
type figure struct {
	Scenario string `json:"scenario"`
	What     string `json:"what"`
	Value    string `json:"value"`
}

func newStage(ctx context.Context, long bool, log io.Writer) (*stage, error) {
	if err := moreDescriptors(); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "load")
	if err != nil {
		return nil, err
	}
	st := &stage{long: long, log: log, dir: dir, program: filepath.Join(dir, "tapedeck")}
	build := exec.CommandContext(ctx, "go", "build", "-o", st.program, "github.com/tapedeck-dev/tapedeck/cmd/tapedeck")
	build.Stderr = log
	if err := build.Run(); err != nil {
		st.close()
		return nil, fmt.Errorf("building the daemon: %w", err)
	}
	return st, nil
}

func (st *stage) close() { os.RemoveAll(st.dir) }

// of returns the short form of a size, or the long one.
func of[T any](st *stage, short, long T) T {
	if st.long {
		return long
	}
	return short
}

func (st *stage) note(scenario, what, format string, args ...any) {
	f := figure{scenario, what, fmt.Sprintf(format, args...)}
	st.figures = append(st.figures, f)
	fmt.Fprintf(st.log, "   %s: %s\n", f.What, f.Value)
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

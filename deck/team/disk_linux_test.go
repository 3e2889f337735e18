package team_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/deck/team"
)

// diskVar names a directory that is to have a small disk, for a process that has mounts of its own.
const diskVar = "TEAM_TEST_DISK"

func init() { inChild[diskVar] = fullDisk }

// fullDisk pushes to a store on a disk that is full for a while.
func fullDisk(dir string) error {
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=4m"); err != nil {
		return err
	}
	ctx := context.Background()
	s, err := team.Open(ctx, "sqlite://"+filepath.Join(dir, "runs.sqlite"), "file://"+filepath.Join(dir, "blobs"))
	if err != nil {
		return err
	}
	defer s.Close()
	rec, err := recording.Open(os.Getenv(recordingVar))
	if err != nil {
		return err
	}
	push := func(id string) error {
		rec.Manifest.ID = id
		if err := rec.Manifest.Write(rec.Dir, false); err != nil {
			return err
		}
		_, _, err := s.Push(ctx, rec, nil)
		return err
	}
	whole := func(want string) error {
		runs, err := s.Runs(ctx, &team.Query{})
		if err != nil || ids(runs) != want {
			return fmt.Errorf("listed %q, want %q: %w", ids(runs), want, err)
		}
		for i := range runs {
			file := filepath.Join(rec.Dir, "pulled")
			if _, err := s.Pull(ctx, "", runs[i].ID, file, nil); err != nil {
				return err
			}
			os.Remove(file)
		}
		return nil
	}
	if err := errors.Join(push("one"), whole("one")); err != nil {
		return err
	}
	filler := filepath.Join(dir, "filler")
	if err := os.WriteFile(filler, make([]byte, 8<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("the disk is not full: %w", err)
	}
	if err := push("two"); err == nil {
		return errors.New("what a full disk has no place for was acknowledged")
	}
	if err := errors.Join(whole("one"), os.Remove(filler), push("two")); err != nil {
		return err
	}
	return whole("two one")
}

// TestFullDisk: what a full disk has no place for is not acknowledged and not listed, what is there stays, and it can be pushed when there is place.
func TestFullDisk(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), diskVar+"="+t.TempDir(), recordingVar+"="+made(t, "one", "alpha", "beta", nil).Dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS, UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}, GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, syscall.EPERM) {
		t.Skip("no small file system can be mounted here: ", err)
	}
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

package tape_test

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// mountEnv makes fillDisk's directory a file system of 64 KiB.
const mountEnv = "TAPE_TEST_MOUNT"

func init() {
	full := jobs["full"]
	jobs["full"] = func(args []string) error {
		if os.Getenv(mountEnv) != "" {
			if err := syscall.Mount("tmpfs", args[0], "tmpfs", 0, "size=64k"); err != nil {
				return err
			}
		}
		return full(args)
	}
}

// mounting is what lets a child mount in namespaces of its own.
func mounting(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
}

func TestATapeOnAFullDiskLoadsAndTheRunGoesOn(t *testing.T) {
	t.Parallel()
	probe := exec.Command("/bin/sh", "-c", "mount -t tmpfs -o size=64k tmpfs "+t.TempDir())
	mounting(probe)
	if out, err := probe.CombinedOutput(); err != nil {
		t.Skipf("a small file system cannot be mounted here: %v %s", err, out)
	}
	checkFull(t, func(cmd *exec.Cmd) {
		cmd.Env = append(cmd.Env, mountEnv+"=1")
		mounting(cmd)
	})
}

// Package jailtest helps to test what makes jails.
package jailtest

import (
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// ownVar is set where mounts are the process's own.
const ownVar = "TAPEDECK_TEST_OWN_MOUNTS"

// OwnMounts begins the program anew, for root, where what it mounts is gone with it, however it ends: another's df would list that.
// TestMain calls it.
func OwnMounts() {
	if os.Geteuid() != 0 || os.Getenv(ownVar) != "" {
		return
	}
	runtime.LockOSThread() // whose namespace the program keeps
	if unix.Unshare(unix.CLONE_NEWNS) != nil {
		runtime.UnlockOSThread()
		return
	}
	if unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "") != nil {
		return
	}
	os.Setenv(ownVar, "1")
	_ = syscall.Exec("/proc/self/exe", os.Args, os.Environ()) // else it goes on as it is
}

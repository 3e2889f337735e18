//go:build escape

package escape

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// launch is what becomes the recorder: it takes on what a recorder may be born with, then the user, then runs argv.
// Whatever it mounts goes with it, for a root caller starts it in a mount namespace of its own.
//
//	a descriptor left open     a file that lies elsewhere, for reading and writing
//	a session keyring          with a key in it
//	a small disk               a tmpfs (root)
//	a /tmp of its own          (root)
//	another /proc              of the host (root)
//	a cgroup                   that its user owns (root)
func launch(args []string) error {
	runtime.LockOSThread()
	data, err := os.ReadFile(os.Getenv(sceneVar))
	if err != nil {
		return err
	}
	var s scene
	if err := json.Unmarshal(data, &s); err != nil {
		return err
	}
	uid, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	if os.Geteuid() == 0 {
		if err := launchAsRoot(&s, uid); err != nil {
			return err
		}
	}
	keyring(s.Token)
	if _, err := unix.Open(filepath.Join(s.Elsewhere, "leaked"), unix.O_RDWR, 0); err != nil {
		return fmt.Errorf("leaked: %w", err)
	}
	return syscall.Exec(args[1], args[1:], os.Environ())
}

func launchAsRoot(s *scene, uid int) error {
	err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
	if err == nil {
		err = unix.Mount("tmpfs", s.Small, "tmpfs", 0, fmt.Sprintf("size=8m,mode=1777,uid=%d", uid))
	}
	if err == nil {
		err = unix.Mount(s.SlashTmp, "/tmp", "", unix.MS_BIND, "")
	}
	if err == nil && s.Below != "" {
		at := filepath.Join(s.Small, "mounted")
		if err = os.Mkdir(at, 0o755); err == nil {
			err = unix.Mount(s.Below, at, "", unix.MS_BIND, "")
		}
	}
	if err == nil && s.OtherProc != "" {
		err = unix.Mount("proc", s.OtherProc, "proc", 0, "")
	}
	if err == nil && s.Cgroup != "" {
		err = os.WriteFile(filepath.Join(s.Cgroup, "cgroup.procs"), []byte("0"), 0)
	}
	if err != nil {
		return fmt.Errorf("launch: %w", err)
	}
	if uid == 0 {
		return nil
	}
	return errors.Join(syscall.Setgroups(nil), syscall.Setgid(uid), syscall.Setuid(uid))
}

// keyring gives this process a session keyring of its own, with a key. A kernel without keys has nothing to be reached.
func keyring(token string) {
	if _, err := unix.KeyctlJoinSessionKeyring(token); err != nil {
		return
	}
	_, _ = unix.AddKey("user", token, []byte(token), unix.KEY_SPEC_SESSION_KEYRING)
}

// pointer is the address of what a system call reads or fills in.
func pointer[T any](v *T) uintptr { return uintptr(unsafe.Pointer(v)) }

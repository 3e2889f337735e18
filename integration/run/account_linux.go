package run

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// nobody is the user that a root caller tries everything as once more.
const nobody = 65534

// An account is the user that a box's commands run as.
type account struct {
	name string
	id   int // of the user and the group; -1 for the caller's own
}

// accounts are those to try everything as.
func accounts() []account {
	caller := account{name: "caller", id: -1}
	if os.Geteuid() != 0 {
		return []account{caller}
	}
	return []account{caller, {name: "unprivileged", id: nobody}}
}

// take makes a command run as the account.
func (a account) take(cmd *exec.Cmd) {
	if a.id >= 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(a.id), Gid: uint32(a.id)}}
	}
}

// own gives the account a path and everything below.
func (a account) own(path string) error {
	return filepath.WalkDir(path, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || a.id < 0 {
			return err
		}
		return os.Lchown(path, a.id, a.id)
	})
}

//go:build unix

package token

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// checkOwner refuses a directory of another user, but for root's, and one that others may write.
func checkOwner(dir string, info fs.FileInfo) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	if ok && st.Uid != 0 && int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to user %d: remove it, or set XDG_RUNTIME_DIR to a directory of your own", dir, st.Uid)
	}
	if info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%s can be written by others (mode %o): want 0700", dir, info.Mode().Perm())
	}
	return nil
}

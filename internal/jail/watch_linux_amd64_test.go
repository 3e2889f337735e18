package jail

import (
	"testing"

	"golang.org/x/sys/unix"
)

// TestWatchOldCalls: those that newer processors do not have.
func TestWatchOldCalls(t *testing.T) {
	t.Parallel()
	runWatchTests(t, []watchTest{
		{"open", []string{call(unix.SYS_OPEN, "new", unix.O_CREAT|unix.O_WRONLY, 0o644), call(unix.SYS_OPEN, "file", unix.O_RDONLY)},
			"", []string{"open new"}},
		{"creat", []string{call(unix.SYS_CREAT, "tofile", 0o644)}, "", []string{"open file"}},
		{"rename", []string{call(unix.SYS_RENAME, "tofile", "sub/l")}, "", []string{"rename tofile sub/l"}},
		{"renameat", []string{call(unix.SYS_RENAMEAT, cwd, "tofile", cwd, "sub/l")}, "", []string{"rename tofile sub/l"}},
		{"unlink", []string{call(unix.SYS_UNLINK, "tofile")}, "", []string{"unlink tofile"}},
		{"link", []string{call(unix.SYS_LINK, "tofile", "l")}, "", []string{"link tofile l"}},
		{"symlink", []string{call(unix.SYS_SYMLINK, "nowhere", "sub/l")}, "", []string{"symlink sub/l"}},
		{"mkdir", []string{call(unix.SYS_MKDIR, "tosub/d", 0o755)}, "", []string{"mkdir sub/d"}},
		{"rmdir", []string{call(unix.SYS_RMDIR, "tosub/deep")}, "", []string{"rmdir sub/deep"}},
		{"mknod", []string{call(unix.SYS_MKNOD, "p", unix.S_IFIFO|0o644, 0)}, "", []string{"mknod p"}},
		{"chmod", []string{call(unix.SYS_CHMOD, "tofile", 0o600)}, "", []string{"mode file"}},
		{"chown", []string{call(unix.SYS_CHOWN, "tofile", -1, -1)}, "", []string{"owner file"}},
		{"lchown", []string{call(unix.SYS_LCHOWN, "tofile", -1, -1)}, "", []string{"owner tofile"}},
		{"utime", []string{call(unix.SYS_UTIME, "tofile", 0)}, "", []string{"times file"}},
		{"utimes", []string{call(unix.SYS_UTIMES, "tofile", 0)}, "", []string{"times file"}},
		{"futimesat", []string{call(unix.SYS_FUTIMESAT, cwd, "tofile", 0), callAs("f", unix.SYS_OPEN, "file", unix.O_RDONLY),
			call(unix.SYS_FUTIMESAT, fdOf("f"), 0, 0)}, "", []string{"times file"}},
	})
}

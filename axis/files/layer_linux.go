package files

import (
	"os"

	"golang.org/x/sys/unix"
)

// whiteout makes the device 0/0 at path, by which an overlay hides what lies below. Since Linux 5.8 it needs no privilege.
func whiteout(root *os.Root, path string) error {
	return inDir(root, parentOf(path), func(fd int) error {
		return unix.Mknodat(fd, baseOf(path), unix.S_IFCHR, 0)
	})
}

// makeOpaque marks a directory so that an overlay with userxattr shows nothing of the one below it.
func makeOpaque(root *os.Root, path string) error {
	return inDir(root, path, func(fd int) error {
		return unix.Fsetxattr(fd, "user.overlay.opaque", []byte("y"), 0)
	})
}

// inDir calls do with an open descriptor of a directory below root.
func inDir(root *os.Root, path string, do func(fd int) error) error {
	dir, err := root.Open(localName(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	conn, err := dir.SyscallConn()
	if err != nil {
		return err
	}
	var done error
	if err := conn.Control(func(fd uintptr) { done = do(int(fd)) }); err != nil {
		return err
	}
	return done
}

package jail

import (
	"os"

	"golang.org/x/sys/unix"
)

// opaqueAttr is the attribute that an overlay mounted with userxattr reads.
const opaqueAttr = "user.overlay.opaque"

// MakeWhiteout makes path, in a directory that will be a layer of an Overlay, hide what lower layers have there. It
// needs no root. The path must not exist.
func MakeWhiteout(path string) error {
	if err := unix.Mknod(path, unix.S_IFCHR, 0); err != nil {
		return &os.PathError{Op: "make whiteout", Path: path, Err: err}
	}
	return nil
}

// MakeOpaque makes dir, a directory in a layer of an Overlay, hide everything that lower layers have below it.
func MakeOpaque(dir string) error {
	if err := unix.Setxattr(dir, opaqueAttr, []byte("y"), 0); err != nil {
		return &os.PathError{Op: "make opaque", Path: dir, Err: err}
	}
	return nil
}

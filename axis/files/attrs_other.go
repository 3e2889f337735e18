//go:build !linux

package files

import (
	"errors"
	"fmt"
	"os"
	"time"
)

// rootAttrs says that extended attributes are not kept on this system.
func rootAttrs(folder, string) attrSet { return nil }

func setAttrs(*os.Root, string, string) error { return nil }

func makeFIFO(_ *os.Root, path string, _ os.FileMode) error {
	return fmt.Errorf("files: a FIFO at %s: %w", path, errors.ErrUnsupported)
}

func setTimes(root *os.Root, path string, mtime int64) error {
	info, err := root.Lstat(localName(path))
	if err != nil || info.Mode()&os.ModeSymlink != 0 {
		return err
	}
	return root.Chtimes(localName(path), time.Time{}, time.Unix(0, mtime))
}

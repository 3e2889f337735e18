//go:build !linux

package files

import (
	"errors"
	"fmt"
	"os"
)

// whiteout says that overlays are Linux's.
func whiteout(*os.Root, string) error {
	return fmt.Errorf("hiding a path by an overlay: %w", errors.ErrUnsupported)
}

// makeOpaque says the same.
func makeOpaque(*os.Root, string) error {
	return fmt.Errorf("covering a directory by an overlay: %w", errors.ErrUnsupported)
}

//go:build !unix

package deck

import "os"

// A directory cannot be locked here.
func lockExclusive(string) (*os.File, error) { return nil, errNoLocks }
func lockShared(string) (*os.File, error)    { return nil, errNoLocks }

// linked knows no names but the one: sizes are then those of each name.
func linked(os.FileInfo) (inode, bool) { return inode{}, false }

//go:build !unix

package recording

import "os"

// A directory cannot be locked here.
func LockExclusive(string) (*os.File, error) { return nil, ErrNoLocks }
func lockShared(string) (*os.File, error)    { return nil, ErrNoLocks }

// LinkedInode knows no names but the one: sizes are then those of each name.
func LinkedInode(os.FileInfo) (Inode, bool) { return Inode{}, false }

// Unlock closes what was opened to be locked; nil is none.
func Unlock(f *os.File) {
	if f != nil {
		f.Close()
	}
}

package files

import (
	"errors"
	"io"
	"io/fs"
	"syscall"
)

// A sight is what the file system says about a path.
type sight struct {
	stamp         // the mode is 0 for a socket or device
	links  uint64 // hard links of a file
	sparse bool   // it takes less room than its length
}

func (s *sight) special() bool { return s.mode == 0 }

// A reading is a regular file, open for reading.
type reading interface {
	io.ReadCloser
	// now returns what the file system says about the file.
	now() (sight, error)
	// held reports whether somebody may still write to it, with the descriptors and mappings that there are. Where that
	// cannot be told it is true.
	held() bool
}

// isAbsent reports whether err says that nothing stands at a path: its directory is none, or a link now, too.
func isAbsent(err error) bool {
	return isGone(err) || errors.Is(err, syscall.ELOOP) || errors.Is(err, fs.ErrInvalid)
}

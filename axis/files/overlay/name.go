package overlay

import (
	"io/fs"
	"path"
	"strings"
	"syscall"
	"unicode/utf8"
)

// Limits on names, in bytes: those of Linux.
const (
	maxPathLen = 4096
	maxNameLen = 255
)

// shownPath is how much of a path stands in an error, in bytes.
const shownPath = 200

// A reason says in words why something failed, and which errno that is.
type reason struct {
	errno syscall.Errno
	text  string
	own   bool // it follows from what was asked for, and from the links that were passed; else it says what stands there
}

func (r *reason) Error() string { return r.text }

// Unwrap gives errors.Is the errno, and with it the errors of io/fs.
func (r *reason) Unwrap() error { return r.errno }

var (
	errAbsolute  = &reason{errno: syscall.EINVAL, text: "the path is absolute: give one relative to the tree", own: true}
	errOut       = &reason{errno: syscall.EINVAL, text: "the path leads out of the tree", own: true}
	errNUL       = &reason{errno: syscall.EINVAL, text: "the path holds a NUL", own: true}
	errNotUTF8   = &reason{errno: syscall.EINVAL, text: "the path is not UTF-8", own: true}
	errUnclean   = &reason{errno: syscall.EINVAL, text: "the path is not clean: want names with one slash between, none of them . or ..", own: true}
	errLongName  = &reason{errno: syscall.ENAMETOOLONG, text: "a name in the path is longer than 255 bytes", own: true}
	errLongPath  = &reason{errno: syscall.ENAMETOOLONG, text: "the path is longer than 4096 bytes", own: true}
	errTop       = &reason{errno: syscall.EINVAL, text: "it is the tree itself", own: true}
	errIntoSelf  = &reason{errno: syscall.EINVAL, text: "a directory cannot move into itself", own: true}
	errTarget    = &reason{errno: syscall.EINVAL, text: "the target is not UTF-8 of 1 to 4096 bytes without a NUL", own: true}
	errClosed    = &reason{errno: syscall.EBADF, text: "the file is closed", own: true}
	errNotOpened = &reason{errno: syscall.EBADF, text: "the file was not opened for that", own: true}
	errNegative  = &reason{errno: syscall.EINVAL, text: "the offset is negative", own: true}

	errNone       = &reason{errno: syscall.ENOENT, text: "no such file or directory"}
	errThere      = &reason{errno: syscall.EEXIST, text: "something stands there already"}
	errIsDir      = &reason{errno: syscall.EISDIR, text: "it is a directory"}
	errNoDir      = &reason{errno: syscall.ENOTDIR, text: "it is no directory"}
	errNotEmpty   = &reason{errno: syscall.ENOTEMPTY, text: "the directory is not empty"}
	errNoLink     = &reason{errno: syscall.EINVAL, text: "it is no symbolic link"}
	errWasRefused = &reason{errno: syscall.EACCES, text: "the tape says that what stands there was refused"}
	errManyLinks  = &reason{errno: syscall.ELOOP, text: "too many symbolic links on the way: more than 40", own: true}
	errLinkAway   = &reason{errno: syscall.EACCES, text: "a symbolic link on the way leads out of the tree", own: true}
)

// Clean returns name as the functions of this package take it: "./a//b/" is "a/b", "" is ".". The error, a *fs.PathError, is of a
// path that is absolute or leads out of the tree, and of what no name can be.
func Clean(name string) (string, error) {
	if strings.HasPrefix(name, "/") {
		return "", failure("clean", name, errAbsolute)
	}
	clean := path.Clean(name)
	return clean, check("clean", clean)
}

// check refuses what is no name of this package.
func check(op, name string) error {
	if why := checkName(name); why != nil {
		return failure(op, name, why)
	}
	return nil
}

func checkName(name string) *reason {
	switch {
	case len(name) > maxPathLen:
		return errLongPath
	case strings.IndexByte(name, 0) >= 0:
		return errNUL
	case !utf8.ValidString(name):
		return errNotUTF8
	case strings.HasPrefix(name, "/"):
		return errAbsolute
	case name == ".." || strings.HasPrefix(name, "../"):
		return errOut
	case !fs.ValidPath(name):
		return errUnclean
	}
	return checkLength(name)
}

func checkLength(name string) *reason {
	if len(name) <= maxNameLen {
		return nil
	}
	for part := range strings.SplitSeq(name, "/") {
		if len(part) > maxNameLen {
			return errLongName
		}
	}
	return nil
}

// failure is the error of an operation on a path.
func failure(op, name string, err error) error {
	if len(name) > shownPath {
		name = strings.ToValidUTF8(name[:shownPath], "") + "…"
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}

// join appends a name to a directory, "." being the tree itself.
func join(dir, name string) string {
	if dir == "." {
		return name
	}
	return dir + "/" + name
}

package program

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/tapedeck-dev/tapedeck/axis/files"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
)

// A NotFoundError says that the program to run is not there or cannot be executed.
type NotFoundError struct {
	Name string
	Err  error
}

func (e *NotFoundError) Error() string { return fmt.Sprintf("%s: %v", e.Name, e.Err) }

func (e *NotFoundError) Unwrap() error { return e.Err }

// Find finds the program as execvp would: a name with a slash is taken from dir, any other from the PATH of env,
// whose relative entries are taken from dir too.
func Find(name, dir string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		return executable(name, join(dir, name))
	}
	for _, p := range filepath.SplitList(recording.Getenv(env, "PATH")) {
		if path, err := executable(name, join(join(dir, p), name)); err == nil {
			return path, nil
		}
	}
	return "", &NotFoundError{Name: name, Err: fmt.Errorf("no such program in PATH: %w", fs.ErrNotExist)}
}

func executable(name, path string) (string, error) {
	st, err := os.Stat(path)
	if err != nil {
		return "", &NotFoundError{Name: name, Err: err}
	}
	if st.IsDir() || st.Mode()&0o111 == 0 {
		return "", &NotFoundError{Name: name, Err: fmt.Errorf("not an executable file: %w", fs.ErrInvalid)}
	}
	return path, nil
}

// join is filepath.Join with path winning where it is absolute.
func join(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// digests are those of the programs that this process read: a program of 200 MB takes a tenth of a second, and a replay asks for
// it again.
var digests sync.Map // programFile to cas.Digest

// A programFile is a file as it stood: whoever writes to it changes the time of its inode.
type programFile struct {
	path        string
	size, ctime int64
	inode       uint64
}

// DigestOf returns the BLAKE3 of a program's file, or the zero digest where it cannot be read: a program may be executable and
// not readable.
func DigestOf(path string) cas.Digest {
	f, err := os.Open(path)
	if err != nil {
		return cas.Digest{}
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return cas.Digest{}
	}
	file := programFile{path: path, size: st.Size()}
	var known bool
	if file.ctime, file.inode, known = files.InodeOf(st); known {
		if d, ok := digests.Load(file); ok {
			return d.(cas.Digest)
		}
	}
	h := cas.NewHasher()
	if _, err := io.Copy(h, f); err != nil {
		return cas.Digest{}
	}
	if known {
		digests.Store(file, h.Sum())
	}
	return h.Sum()
}

package foreign

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/lazyregexp"
)

// HeadSize is how much of a file Detect gives to Looks, in bytes.
const HeadSize = 64 << 10

// headOf returns how a file begins, nil for a folder.
func headOf(path string) ([]byte, error) {
	if info, err := os.Stat(path); err != nil || info.IsDir() {
		return nil, err
	}
	f, err := openFile(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	in, done, err := plain(f, path)
	if err != nil {
		return nil, err
	}
	defer done()
	head, err := io.ReadAll(io.LimitReader(in, HeadSize))
	if err != nil && len(head) == 0 {
		return nil, &Error{Path: path, Err: err}
	}
	if len(strings.TrimSpace(string(head))) == 0 {
		return nil, &Error{Path: path, Err: ErrEmpty}
	}
	return head, nil // a packed file that is cut begins well
}

// openFile opens a transcript, or one of the files of one, which must be a regular file: a FIFO would keep its reader waiting for
// ever, and a device may have no end.
func openFile(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &Error{Path: path, Err: errors.New("expected a regular file")}
	}
	return os.Open(path)
}

// isIn reports whether a path is that of a folder called name in one called parent.
func isIn(path, parent, name string) bool {
	return filepath.Base(path) == name && filepath.Base(filepath.Dir(path)) == parent
}

var uuid = lazyregexp.New(`^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$`)

// newest sets the file that a report is about: path, or where that is a folder the file below it, of those whose name is wanted,
// that was written last; it is said in a note. suits is asked by how a file begins, the last written first, for folders in which
// sessions lie that nobody means; nil takes all. Where none suits it is the newest.
func newest(r *Report, path string, wanted func(name string) bool, suits func(head []byte) bool) error {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return err
	}
	found, err := filesBelow(path, wanted)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return &Error{Path: path, Err: fmt.Errorf("%w: no session of %s in this folder", ErrEmpty, r.Format)}
	}
	i := slices.IndexFunc(found, func(path string) bool {
		head, err := headOf(path)
		return err == nil && (suits == nil || suits(head))
	})
	r.File = found[max(i, 0)]
	switch {
	case len(found) == 1:
		r.note("%s is the session in the folder", r.File)
	case i <= 0:
		r.note("%s is the newest of %d sessions in the folder", r.File, len(found))
	default:
		r.note("%s is the newest of %d sessions in the folder but for %d of sub-agents or in which nothing was said", r.File, len(found), i)
	}
	return nil
}

// filesBelow lists the files below a folder whose name is wanted, those written last first.
func filesBelow(folder string, wanted func(name string) bool) (found []string, err error) {
	at := map[string]time.Time{}
	err = filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() || !wanted(e.Name()) {
			return err
		}
		info, err := e.Info()
		if err == nil {
			found = append(found, path)
			at[path] = info.ModTime()
		}
		return err
	})
	slices.SortFunc(found, func(a, b string) int { return cmp.Or(at[b].Compare(at[a]), strings.Compare(b, a)) })
	return found, err
}

package deck

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/tapedeck-dev/tapedeck/internal/durable"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A tapeFile is a tape on its way to the disk. It gets its name with its header in it: a tape without one does not load, and
// a recorder may be killed in between.
type tapeFile struct{ *os.File }

// createTape begins the tape at path.
func createTape(path string, h *tape.Header) (*tapeFile, *tape.Writer, error) {
	begun := filepath.Join(filepath.Dir(path), durable.TempPrefix+filepath.Base(path))
	f, err := os.OpenFile(begun, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, nil, err
	}
	t := &tapeFile{f}
	w, err := tape.NewWriter(t, h)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(begun, path)
	}
	if err == nil {
		t.File, err = os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0) // its errors name it
	}
	return t, w, err
}

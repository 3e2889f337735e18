package bare

import (
	"crypto/rand"
	"os"
	"path/filepath"

	"golang.org/x/sys/windows"
)

// UnnamedFile makes a file that no other process can open, and that the system removes with its last handle, whatever ends the
// process.
func UnnamedFile() (*os.File, error) {
	path := filepath.Join(os.TempDir(), "tapedeck-"+rand.Text())
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return nil, err
	}
	const noSharing = 0
	h, err := windows.CreateFile(name, windows.GENERIC_READ|windows.GENERIC_WRITE, noSharing, nil, windows.CREATE_NEW,
		windows.FILE_ATTRIBUTE_TEMPORARY|windows.FILE_FLAG_DELETE_ON_CLOSE, 0)
	if err != nil {
		return nil, &os.PathError{Op: "create", Path: path, Err: err}
	}
	return os.NewFile(uintptr(h), path), nil
}

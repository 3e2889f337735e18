package deck

import (
	"context"
	"io"
	"os"
	"path/filepath"

	"github.com/tapedeck-dev/tapedeck/deck/packed"
)

// LooksPacked reports whether path is a file that begins as a packed recording does; a tape begins with a brace.
func LooksPacked(path string) bool {
	f, err := openRegular(path)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, len(packed.Magic))
	_, err = io.ReadFull(f, head)
	return err == nil && string(head) == packed.Magic
}

// UnpackTemp unpacks the packed file into a temporary directory, for who only looks at it; clean, which is not nil where err
// is, removes it. The errors are those of Unpack.
func UnpackTemp(ctx context.Context, file string, progress func(done, total int64)) (rec *Recording, clean func(), err error) {
	lock, temp, err := lockedTemp(os.TempDir(), openPrefix)
	if err != nil {
		return nil, nil, err
	}
	clean = func() {
		os.RemoveAll(temp)
		if lock != nil {
			lock.Close()
		}
	}
	rec, err = LibraryOf(temp).Unpack(ctx, file, &UnpackOptions{Output: filepath.Join(temp, "recording"), Progress: progress})
	if err != nil {
		clean()
		return nil, nil, err
	}
	return rec, clean, nil
}

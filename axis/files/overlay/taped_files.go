package overlay

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// maxRead is the longest content, in bytes, that is read from TapedOptions.Files.
const maxRead = 1 << 30

// content of a file that was read: what the tape holds of it, else what stands at its path in the directory of those files.
func (t *Taped) contentOf(name string, k *tape.FileRead) ([]byte, error) {
	b, err := t.bytes(name, k.Content, k.ContentHash)
	if err == nil || t.files == "" {
		return b, err
	}
	if b, err = t.fromFiles(k); err != nil {
		return nil, &UnknownError{Op: "read", Path: name, Err: err, Why: fmt.Sprintf(
			"what stood in %s is not on the tape, and not to be had from %s: %v", name, t.files, err)}
	}
	return b, nil
}

// fromFiles reads the file of a record. Where its hash is a digest, it is that of the bytes.
func (t *Taped) fromFiles(k *tape.FileRead) ([]byte, error) {
	root, err := os.OpenRoot(t.files)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	path := strings.TrimLeft(k.Path, "/")
	st, err := root.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !st.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no regular file", path)
	case st.Size() > maxRead:
		return nil, fmt.Errorf("%s is longer than %d bytes", path, maxRead)
	}
	f, err := root.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxRead))
	if err != nil {
		return nil, err
	}
	if got := cas.Sum(b); got != k.ContentHash && !tape.HashOfOthers(k.Extra) {
		return nil, errors.Join(fmt.Errorf("%s is not what the run read", path), &cas.CorruptError{Digest: k.ContentHash, Got: got})
	}
	return b, nil
}

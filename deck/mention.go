package deck

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A mention is any run of exactly 64 lowercase hex digits in any file of a recording that is no blob. What is mentioned
// is needed: by a record or a key that this version does not know, too. A blob that some text happens to name is kept for
// nothing, which costs its bytes and no more.

// unnamed returns the blobs of store, that of the recording in dir, which no file of the recording mentions. What is put
// there meanwhile is none of them. Its memory grows with the number of blobs, not with the tape.
func unnamed(dir string, store *cas.Dir) (map[cas.Digest]struct{}, error) {
	left := make(map[cas.Digest]struct{})
	for d, err := range store.All() {
		if err != nil {
			return nil, gone(err)
		}
		left[d] = struct{}{}
	}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return gone(err)
		}
		if e.IsDir() && strings.HasSuffix(path, tape.StoreSuffix) || len(left) == 0 {
			return fs.SkipDir
		}
		if !e.Type().IsRegular() {
			return nil
		}
		f, err := os.Open(path)
		if err != nil {
			return gone(err)
		}
		defer f.Close()
		return scanDigests(f, func(d cas.Digest) { delete(left, d) })
	})
	return left, err
}

// gone is err, unless it says that something was removed while it was looked at.
func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// scanDigests calls found with everything that r mentions.
func scanDigests(r io.Reader, found func(cas.Digest)) error {
	const length = 2 * cas.Size
	var run [length]byte
	n := 0 // digits of the run so far
	end := func() error {
		if n == length {
			d, err := cas.Parse(string(run[:]))
			if err != nil {
				return err
			}
			found(d)
		}
		n = 0
		return nil
	}
	br := bufio.NewReaderSize(r, 128<<10)
	for {
		if _, err := br.Peek(1); err != nil {
			return errors.Join(end(), notEOF(err))
		}
		b, _ := br.Peek(br.Buffered())
		for _, c := range b {
			if !hexDigit[c] {
				if n >= length {
					if err := end(); err != nil {
						return err
					}
				}
				n = 0
				continue
			}
			if n < length {
				run[n] = c
			}
			n++
		}
		br.Discard(len(b)) // it is buffered
	}
}

func notEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// hexDigit says of each byte whether it is a digit of a digest.
var hexDigit = func() (t [256]bool) {
	for _, c := range "0123456789abcdef" {
		t[c] = true
	}
	return t
}()

package library

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A blob is named by any run of exactly 64 lowercase hex digits in any file of a recording that is no blob. What is named
// is needed: by a record or a key that this version does not know, too. A blob that some text happens to name is kept for
// nothing, which costs its bytes and no more.

// An unreadError says why nobody knows what a recording names: something in it was not read.
type unreadError struct{ path, why string }

func (e *unreadError) Error() string {
	return fmt.Sprintf("%s %s: which blobs the recording needs is not known", e.path, e.why)
}

// Unnamed returns the blobs of store, that of the recording in dir, which no file of the recording names. What is put
// there meanwhile is none of them. Its memory grows with the number of blobs, not with the tape.
//
// The error is an *unreadError where dir holds anything but directories and regular files, such as a link, or where the
// tape was not read to its end: what was not looked into may name every blob.
func Unnamed(dir string, store *cas.Dir) (map[cas.Digest]struct{}, error) {
	left := make(map[cas.Digest]struct{})
	for d, err := range store.All() {
		if err != nil {
			return nil, recording.Gone(err)
		}
		left[d] = struct{}{}
	}
	at, read := filepath.Join(dir, recording.TapeName), false
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return recording.Gone(err)
		}
		switch {
		case len(left) == 0:
			return fs.SkipAll
		case e.IsDir() && (path == at+tape.StoreSuffix || path == filepath.Join(dir, recording.TerminalName)): // which names no blob
			return fs.SkipDir
		case e.IsDir():
			return nil
		case !e.Type().IsRegular():
			return &unreadError{path, "is neither a directory nor a regular file"}
		}
		f, err := os.Open(path)
		if err != nil {
			return recording.Gone(err)
		}
		defer f.Close()
		err = scanDigests(f, func(d cas.Digest) { delete(left, d) })
		read = read || err == nil && path == at
		return err
	})
	if err == nil && len(left) > 0 && !read {
		err = &unreadError{at, "is not there"}
	}
	if err != nil {
		return nil, err
	}
	return left, nil
}

// scanDigests calls found with everything that r names.
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
			return errors.Join(end(), recording.NotEOF(err))
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

// hexDigit says of each byte whether it is a digit of a digest.
var hexDigit = func() (t [256]bool) {
	for _, c := range "0123456789abcdef" {
		t[c] = true
	}
	return t
}()

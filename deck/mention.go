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

// mentions returns every digest that the files of the recording in dir mention, its blobs' contents aside. Its memory
// grows with the number of different digests, not with the tape.
func mentions(dir string) (map[cas.Digest]struct{}, error) {
	found := make(map[cas.Digest]struct{})
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return gone(err)
		}
		if e.IsDir() {
			if strings.HasSuffix(path, tape.StoreSuffix) {
				return fs.SkipDir
			}
			return nil
		}
		if !e.Type().IsRegular() {
			return nil
		}
		f, err := os.Open(path)
		if err != nil {
			return gone(err)
		}
		defer f.Close()
		return scanDigests(f, found)
	})
	return found, err
}

// gone is err, unless it says that something was removed while it was looked at.
func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// scanDigests adds to found what r mentions.
func scanDigests(r io.Reader, found map[cas.Digest]struct{}) error {
	const length = 2 * cas.Size
	var run [length]byte
	n := 0 // digits of the run so far
	end := func() error {
		if n == length {
			d, err := cas.Parse(string(run[:]))
			if err != nil {
				return err
			}
			found[d] = struct{}{}
		}
		n = 0
		return nil
	}
	br := bufio.NewReaderSize(r, 128<<10)
	for {
		b, err := br.Peek(1)
		if err != nil {
			return errors.Join(end(), notEOF(err))
		}
		b, _ = br.Peek(br.Buffered())
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

package files

import (
	"errors"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/tapedeck-dev/tapedeck/cas"
)

// same reports whether a file, link or FIFO stands on the disk as it was recorded. info and mode are what stands there now.
func (l *layerer) same(e *Entry, info fs.FileInfo, mode Mode) (bool, error) {
	if info == nil || mode&TypeMask != e.Mode&TypeMask {
		return false, nil
	}
	if e.Mode.IsLink() {
		target, err := l.real.Readlink(localName(e.Path))
		return err == nil && filepath.ToSlash(target) == e.Target, nil
	}
	if e.Mode.IsFIFO() || e.Secret == "" && mode != e.Mode {
		return mode == e.Mode, nil
	}
	if l.attrs(e.Path) != e.Attrs {
		return false, nil
	}
	same, err := l.sameBytes(e, info)
	if lost(err) {
		return false, nil
	}
	if err == nil && same && mode != e.Mode {
		l.note(e, NoteMode)
	}
	return same, err
}

// lost reports whether err says that a file cannot be read: it is then shown from the store.
func lost(err error) bool {
	return isGone(err) || errors.Is(err, fs.ErrPermission) || errors.Is(err, errNotRegular) || errors.Is(err, errTooLarge)
}

// sameBytes compares the content of a regular file, by its stamp where the cache knows it.
func (l *layerer) sameBytes(e *Entry, info fs.FileInfo) (bool, error) {
	if st, ok := stampOf(info); ok {
		// A cache that was made before a secret was known has the file as one without.
		if c, hit := l.cache.get(e.Path, st); hit && (e.Secret == "" || c.secret != "") {
			return sameContent(e, &Entry{Mode: e.Mode, Digest: c.digest, Size: c.size, Secret: c.secret}), nil
		}
	}
	if e.Secret != "" {
		return l.sameSecret(e, info)
	}
	if info.Size() != e.Size {
		return false, nil
	}
	f, _, err := openRegular(l.real, e.Path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	h := cas.NewHasher()
	_, err = io.Copy(h, f)
	return h.Sum() == e.Digest, err
}

func (l *layerer) sameSecret(e *Entry, info fs.FileInfo) (bool, error) {
	if l.opts.Scrubber == nil {
		return false, nil
	}
	b, _, _, err := readRegular(l.real, e.Path, max(info.Size(), DefaultMaxFileSize))
	return err == nil && l.opts.Scrubber.KeyedDigest(b) == e.Secret, err
}

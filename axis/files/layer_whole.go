package files

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
)

// isMoved reports whether the layer must hold a directory whole.
func (l *layerer) isMoved(path string) bool {
	_, moved := slices.BinarySearch(l.tree.Moved, path)
	return moved && l.opts.Upper
}

// holdWhole brings a directory into the layer with everything that stood in it, so that nothing of it lies in a layer below.
func (l *layerer) holdWhole(path string, onDisk bool) error {
	if err := l.opaque(path); err != nil {
		return err
	}
	l.whole = true
	defer func() { l.whole = false }()
	return l.dir(path, onDisk)
}

// copy puts a file or link that stands on the disk as it was recorded into the layer.
func (l *layerer) copy(e *Entry, info fs.FileInfo) error {
	if err := l.mkdirs(parentOf(e.Path)); err != nil {
		return err
	}
	if !e.Mode.IsRegular() || e.Secret == "" {
		n, err := create(l.layer, e.Path, e, e.Mode.FileMode(), l.store)
		l.stats.Bytes += n
		if err != nil {
			return err
		}
		return e.setTime(l.layer)
	}
	from, _, err := openRegular(l.real, e.Path) // a secret's true bytes are on the disk alone
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := l.layer.OpenFile(localName(e.Path), os.O_WRONLY|os.O_CREATE|os.O_EXCL|openFlags, 0o600)
	if err != nil {
		return err
	}
	n, err := io.Copy(to, from)
	l.stats.Bytes += n
	return errors.Join(err, to.Chmod(info.Mode().Perm()), to.Close(), setAttrs(l.layer, e.Path, e.Attrs), e.setTime(l.layer))
}

// What a layer holds for the sake of times alone; files beyond that are shown with those that they have now.
const (
	maxRetimedFiles = 20_000
	maxRetimedBytes = 256 << 20
)

// otherTime reports whether a file or link that stands on the disk as it was recorded was written at another time, and is to be shown
// with the recorded one.
func (l *layerer) otherTime(e *Entry, info fs.FileInfo) bool {
	if e.MTime == 0 || info.ModTime().UnixNano() == e.MTime ||
		l.retimed >= maxRetimedFiles || l.stats.Bytes+e.Size > maxRetimedBytes {
		return false
	}
	l.retimed++
	return true
}

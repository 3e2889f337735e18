package cas

import (
	"fmt"
	"io"
	"iter"
)

// A Store keeps blobs under their digests. All methods may be called by several goroutines at once.
type Store interface {
	// Put stores b and returns its digest. A blob that is there already is not written again.
	Put(b []byte) (Digest, error)
	// PutReader stores everything that r gives, in memory that does not grow with it, and returns its digest and length in
	// bytes.
	PutReader(r io.Reader) (Digest, int64, error)
	// Get returns the whole blob, verified. The error is a *MissingError, a *CorruptError, or the file system's.
	Get(d Digest) ([]byte, error)
	// Open streams the blob. Its last Read gives a *CorruptError in place of io.EOF where the bytes do not hash to d.
	Open(d Digest) (io.ReadCloser, error)
	// Size returns the length of the blob in bytes without reading it, or a *MissingError.
	Size(d Digest) (int64, error)
	// All lists the digests of the store in ascending order. Names that are no digest are not listed.
	All() iter.Seq2[Digest, error]
}

// A MissingError says that a blob that something names is not in the store.
type MissingError struct {
	Digest Digest
}

func (e *MissingError) Error() string { return fmt.Sprintf("blob %s is missing", e.Digest) }

// A CorruptError says that the bytes of a blob do not hash to its name.
type CorruptError struct {
	Digest Digest // the name
	Got    Digest // what the bytes hash to
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("blob %s is damaged: its bytes hash to %s", e.Digest, e.Got)
}

// Copy brings a blob of one store into another: by a hard link where both are directories (see Dir.Link for what is taken on
// trust then), else in bounded memory. Within one store it does nothing. A blob that from does not
// hold is a *MissingError, or fs.ErrNotExist where a link is tried; other errors are those of either store.
func Copy(to, from Store, d Digest) error {
	if to == from {
		return nil
	}
	dir, ok := to.(*Dir)
	source, also := from.(*Dir)
	if ok && also {
		_, err := dir.Link(d, source.Path(d))
		return err
	}
	r, err := from.Open(d)
	if err != nil {
		return err
	}
	defer r.Close()
	_, _, err = to.PutReader(r)
	return err
}

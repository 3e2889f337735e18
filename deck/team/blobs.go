package team

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/durable"
)

// Blobs keep bytes under their BLAKE3-256. Several processes may use the same ones at once.
type Blobs interface {
	// Put stores the size bytes that open gives from their beginning, which hash to d, so that a power cut does not take them. A blob that is there with this size is not
	// written again.
	Put(ctx context.Context, d cas.Digest, size int64, open func() io.Reader) error
	// Get gives n bytes from an offset on, all that follow where n is less than 0. Nobody has hashed them. A *cas.MissingError is for no such blob.
	Get(ctx context.Context, d cas.Digest, from, n int64) (io.ReadCloser, error)
	// Stat says how many bytes there are; a *cas.MissingError that there is no such blob.
	Stat(ctx context.Context, d cas.Digest) (int64, error)
	// Delete removes a blob; one that is not there is no error.
	Delete(ctx context.Context, d cas.Digest) error
}

// OpenBlobs opens what file:///PATH or s3://BUCKET/PREFIX names.
func OpenBlobs(ctx context.Context, address string) (Blobs, error) {
	if address == "" {
		return nil, errors.New("--blobs is missing: with this --store it says where the bytes lie, as in file:///srv/tapedeck or s3://BUCKET?endpoint=URL")
	}
	u, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("--blobs: no URL; want file:///PATH or s3://BUCKET/PREFIX?endpoint=URL")
	}
	switch path := pathOf(u); {
	case u.Scheme == "file" && path != "":
		return openDir(path)
	case u.Scheme == "s3" && u.Host != "":
		return openBucket(ctx, u)
	}
	return nil, fmt.Errorf("--blobs %s: want file:///PATH or s3://BUCKET/PREFIX?endpoint=URL", shown(u))
}

// shown is a URL without what may be a secret: the user, the password, the query.
func shown(u *url.URL) string {
	if u.Scheme == "" { // the options of a connection, perhaps
		return "(no URL)"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, Opaque: u.Opaque}).String()
}

// pathOf is the path that a URL of a file names: absolute behind three slashes, else as it stands.
func pathOf(u *url.URL) string {
	if u.Opaque != "" {
		return filepath.FromSlash(u.Opaque)
	}
	return filepath.FromSlash(u.Host + u.Path)
}

// dirBlobs are files: AA/DIGEST below a directory, AA being the first two digits.
type dirBlobs struct{ root string }

func openDir(root string) (Blobs, error) {
	if err := os.MkdirAll(root, 0o700); err != nil {
		return nil, fmt.Errorf("--blobs: %w", err)
	}
	return &dirBlobs{root}, nil
}

func (s *dirBlobs) path(d cas.Digest) string {
	name := d.String()
	return filepath.Join(s.root, name[:2], name)
}

func (s *dirBlobs) Put(_ context.Context, d cas.Digest, size int64, open func() io.Reader) error {
	path := s.path(d)
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if st, err := os.Lstat(path); err != nil || !st.Mode().IsRegular() || st.Size() != size {
		if err := write(dir, path, open()); err != nil {
			return err
		}
	}
	return errors.Join(durable.SyncDir(dir), durable.SyncDir(s.root)) // also where another had written it, and was killed before this
}

func write(dir, path string, r io.Reader) error {
	f, err := durable.Create(dir, &durable.Options{Sync: true})
	if err != nil {
		return err
	}
	defer f.Discard()
	if _, err := io.Copy(f, r); err != nil {
		return err
	}
	return f.Commit(path)
}

func (s *dirBlobs) Get(_ context.Context, d cas.Digest, from, n int64) (io.ReadCloser, error) {
	f, err := os.Open(s.path(d))
	if err != nil {
		return nil, orMissing(err, d)
	}
	if _, err := f.Seek(from, io.SeekStart); err != nil || n < 0 {
		return f, err
	}
	return struct {
		io.Reader
		io.Closer
	}{io.LimitReader(f, n), f}, nil
}

func (s *dirBlobs) Stat(_ context.Context, d cas.Digest) (int64, error) {
	st, err := os.Stat(s.path(d))
	if err != nil {
		return 0, orMissing(err, d)
	}
	return st.Size(), nil
}

func (s *dirBlobs) Delete(_ context.Context, d cas.Digest) error {
	if err := os.Remove(s.path(d)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func orMissing(err error, d cas.Digest) error {
	if errors.Is(err, fs.ErrNotExist) {
		return &cas.MissingError{Digest: d}
	}
	return err
}

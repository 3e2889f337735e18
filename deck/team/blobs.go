package team

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"net/url"
	"os"
	"path/filepath"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/durable"
)

// Blobs keep bytes under their BLAKE3-256. Several processes may use the same ones at once.
type Blobs interface {
	// Put stores the size bytes of r, which hash to d. A blob that is there with this size is not written again.
	Put(ctx context.Context, d cas.Digest, size int64, r io.Reader) error
	// Get gives n bytes from an offset on, all that follow where n is less than 0. Nobody has hashed them. A *cas.MissingError is for no such blob.
	Get(ctx context.Context, d cas.Digest, from, n int64) (io.ReadCloser, error)
	// Stat says how many bytes there are; a *cas.MissingError that there is no such blob.
	Stat(ctx context.Context, d cas.Digest) (int64, error)
	// Delete removes a blob; one that is not there is no error.
	Delete(ctx context.Context, d cas.Digest) error
	// All lists the blobs, in no order. What has another name than a digest is not listed.
	All(ctx context.Context) iter.Seq2[cas.Digest, error]
}

// OpenBlobs opens what file:///PATH or s3://BUCKET/PREFIX names.
func OpenBlobs(ctx context.Context, address string) (Blobs, error) {
	if address == "" {
		return nil, errors.New("--blobs is missing: with this --store it says where the bytes lie, as in file:///srv/tapedeck or s3://BUCKET?endpoint=URL")
	}
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("--blobs: %w", err)
	}
	switch path := pathOf(u); {
	case u.Scheme == "file" && path != "":
		return openDir(path)
	case u.Scheme == "s3" && u.Host != "":
		return openBucket(ctx, u)
	}
	return nil, fmt.Errorf("--blobs %s: want file:///PATH or s3://BUCKET/PREFIX?endpoint=URL", u.Redacted())
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

func (s *dirBlobs) Put(_ context.Context, d cas.Digest, size int64, r io.Reader) error {
	path := s.path(d)
	if st, err := os.Lstat(path); err == nil && st.Mode().IsRegular() && st.Size() == size {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := durable.Create(filepath.Dir(path), nil)
	if err != nil {
		return err
	}
	defer f.Discard()
	if _, err := io.Copy(f, r); err != nil {
		return err
	}
	if err := f.Commit(path); err != nil {
		return err
	}
	return durable.SyncDir(s.root)
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

func (s *dirBlobs) All(ctx context.Context) iter.Seq2[cas.Digest, error] {
	return func(yield func(cas.Digest, error) bool) {
		err := filepath.WalkDir(s.root, func(_ string, e fs.DirEntry, err error) error {
			if d, no := cas.Parse(e.Name()); err == nil && no == nil && !e.IsDir() && !yield(d, nil) {
				return fs.SkipAll
			}
			return errors.Join(err, ctx.Err())
		})
		if err != nil {
			yield(cas.Digest{}, err)
		}
	}
}

func orMissing(err error, d cas.Digest) error {
	if errors.Is(err, fs.ErrNotExist) {
		return &cas.MissingError{Digest: d}
	}
	return err
}

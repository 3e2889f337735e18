package team

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/tapedeck-dev/tapedeck/cas"
)

// defaultEndpoint is where a bucket lies whose URL does not say.
const defaultEndpoint = "https://s3.amazonaws.com"

// bucket are objects PREFIX/AA/DIGEST.
type bucket struct {
	client       *minio.Client
	name, prefix string
}

// openBucket finds out whether the bucket is there, and makes no request but that.
func openBucket(ctx context.Context, u *url.URL) (Blobs, error) {
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, fmt.Errorf("--blobs: %w", err)
	}
	at := query.Get("endpoint")
	if at == "" {
		at = defaultEndpoint
	}
	endpoint, err := url.Parse(at)
	if err != nil || endpoint.Host == "" || endpoint.Scheme != "http" && endpoint.Scheme != "https" {
		return nil, errors.New("--blobs: endpoint: want http://HOST:PORT or https://HOST")
	}
	client, err := minio.New(endpoint.Host, &minio.Options{
		Secure: endpoint.Scheme == "https", Region: query.Get("region"),
		Creds: credentials.NewChainCredentials([]credentials.Provider{&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}}),
	})
	if err != nil {
		return nil, fmt.Errorf("--blobs: %w", err)
	}
	s := &bucket{client, u.Host, strings.Trim(u.Path, "/")}
	if there, err := client.BucketExists(ctx, s.name); err != nil {
		return nil, fmt.Errorf("--blobs: the bucket %s at %s: %w", s.name, endpoint.Host, err)
	} else if !there {
		return nil, fmt.Errorf("--blobs: %s has no bucket %s: make it first", endpoint.Host, s.name)
	}
	return s, nil
}

func (s *bucket) key(d cas.Digest) string {
	name := d.String()
	return path.Join(s.prefix, name[:2], name)
}

// maxSingle is the largest object that one request makes, in bytes: what comes in several may be left in pieces.
const maxSingle = 5 << 30

func (s *bucket) Put(ctx context.Context, d cas.Digest, size int64, r io.ReadSeeker) error {
	if have, err := s.Stat(ctx, d); err == nil && have == size {
		return nil
	}
	_, err := s.client.PutObject(ctx, s.name, s.key(d), r, size, minio.PutObjectOptions{ContentType: "application/zstd", DisableMultipart: size <= maxSingle})
	return err
}

func (s *bucket) Get(ctx context.Context, d cas.Digest, from, n int64) (io.ReadCloser, error) {
	if n == 0 {
		return io.NopCloser(strings.NewReader("")), nil
	}
	o := minio.GetObjectOptions{}
	end := int64(0) // all that follows
	if n > 0 {
		end = from + n - 1
	}
	if from > 0 || n > 0 {
		if err := o.SetRange(from, end); err != nil {
			return nil, err
		}
	}
	body, _, _, err := (&minio.Core{Client: s.client}).GetObject(ctx, s.name, s.key(d), o)
	return body, s.orMissing(err, d)
}

func (s *bucket) Stat(ctx context.Context, d cas.Digest) (int64, error) {
	info, err := s.client.StatObject(ctx, s.name, s.key(d), minio.StatObjectOptions{})
	return info.Size, s.orMissing(err, d)
}

func (s *bucket) Delete(ctx context.Context, d cas.Digest) error {
	return s.client.RemoveObject(ctx, s.name, s.key(d), minio.RemoveObjectOptions{})
}

func (s *bucket) orMissing(err error, d cas.Digest) error {
	if err != nil && minio.ToErrorResponse(err).StatusCode == http.StatusNotFound {
		return &cas.MissingError{Digest: d}
	}
	return err
}

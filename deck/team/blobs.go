package team

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/durable"
	"github.com/tapedeck-dev/tapedeck/internal/lane"
)

// Blobs keep bytes under their BLAKE3-256. Several processes may use the same ones at once.
type Blobs interface {
	// Put stores the size bytes that open gives from their beginning, which hash to d, so that a power cut does not take them. A blob that is there with this size is not
	// written again.
	Put(ctx context.Context, d cas.Digest, size int64, open func() io.Reader) error
	// Replace stores them whatever is there, which stays as it is until they are whole: it may be damaged.
	Replace(ctx context.Context, d cas.Digest, size int64, open func() io.Reader) error
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
		if err := os.MkdirAll(path, 0o700); err != nil {
			return nil, fmt.Errorf("--blobs: %w", err)
		}
		return &dirBlobs{path}, nil
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

func (s *dirBlobs) path(d cas.Digest) string {
	name := d.String()
	return filepath.Join(s.root, name[:2], name)
}

func (s *dirBlobs) Put(ctx context.Context, d cas.Digest, size int64, open func() io.Reader) error {
	path := s.path(d)
	if st, err := os.Lstat(path); err != nil || !st.Mode().IsRegular() || st.Size() != size {
		return s.Replace(ctx, d, size, open)
	}
	return s.sync(filepath.Dir(path)) // another has written it, and may have been killed before this
}

func (s *dirBlobs) Replace(_ context.Context, d cas.Digest, _ int64, open func() io.Reader) error {
	path := s.path(d)
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := durable.Create(dir, &durable.Options{Sync: true})
	if err != nil {
		return err
	}
	defer f.Discard()
	if _, err := io.Copy(f, open()); err != nil {
		return err
	}
	if err := f.Commit(path); err != nil {
		return err
	}
	return s.sync(dir)
}

func (s *dirBlobs) sync(dir string) error {
	return errors.Join(durable.SyncDir(dir), durable.SyncDir(s.root))
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

// bucket are objects PREFIX/AA/DIGEST, each made by one request.
type bucket struct {
	endpoint *url.URL // nil for Amazon's of the region
	region   string
	name     string
	prefix   string
	keys     aws.Credentials // without any, requests are not signed
	pause    func(ctx context.Context, d time.Duration) error
}

// usualRegion is that of a bucket whose URL does not say; Amazon's servers then tell another.
const usualRegion = "us-east-1"

// openBucket finds out whether the bucket is there.
func openBucket(ctx context.Context, u *url.URL) (Blobs, error) {
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, fmt.Errorf("--blobs: %w", err)
	}
	s := &bucket{region: cmp.Or(query.Get("region"), usualRegion), name: u.Host, prefix: strings.Trim(u.Path, "/"), pause: func(ctx context.Context, d time.Duration) error { return lane.Pause(ctx, nil, d) }}
	if at := query.Get("endpoint"); at != "" {
		if s.endpoint, err = url.Parse(at); err != nil || s.endpoint.Host == "" || s.endpoint.Scheme != "http" && s.endpoint.Scheme != "https" {
			return nil, errors.New("--blobs: endpoint: want http://HOST:PORT or https://HOST")
		}
	}
	if s.keys, err = bucketKeys(); err != nil {
		return nil, fmt.Errorf("--blobs: %w", err)
	}
	resp, err := s.do(ctx, &request{method: http.MethodHead})
	if refused, ok := errors.AsType[*refusedError](err); ok && query.Get("region") == "" && refused.region != "" && refused.region != s.region {
		s.region = refused.region
		resp, err = s.do(ctx, &request{method: http.MethodHead})
	}
	if isMissing(err) {
		return nil, fmt.Errorf("--blobs: %s has no bucket %s: make it first", s.host().Host, s.name)
	}
	if err != nil {
		return nil, fmt.Errorf("--blobs: the bucket %s at %s: %w", s.name, s.host().Host, err)
	}
	return s, resp.Body.Close()
}

func (s *bucket) host() *url.URL {
	if s.endpoint != nil {
		return s.endpoint
	}
	return &url.URL{Scheme: "https", Host: "s3." + s.region + ".amazonaws.com"}
}

func (s *bucket) key(d cas.Digest) string {
	name := d.String()
	return path.Join(s.prefix, name[:2], name)
}

// maxObject is the largest object that one request makes, in bytes: what comes in several may be left in pieces.
const maxObject = 5 << 30

func (s *bucket) Put(ctx context.Context, d cas.Digest, size int64, open func() io.Reader) error {
	if have, err := s.Stat(ctx, d); err == nil && have == size {
		return nil
	}
	return s.Replace(ctx, d, size, open)
}

func (s *bucket) Replace(ctx context.Context, d cas.Digest, size int64, open func() io.Reader) error {
	if size > maxObject {
		return fmt.Errorf("--blobs: a bucket takes %d GiB at once, and this run is longer: keep it in a directory (file:///PATH)", maxObject>>30)
	}
	resp, err := s.do(ctx, &request{method: http.MethodPut, key: s.key(d), open: open, size: size})
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

func (s *bucket) Get(ctx context.Context, d cas.Digest, from, n int64) (io.ReadCloser, error) {
	if n == 0 {
		return io.NopCloser(strings.NewReader("")), nil
	}
	req := &request{method: http.MethodGet, key: s.key(d)}
	if n > 0 {
		req.span = fmt.Sprintf("bytes=%d-%d", from, from+n-1)
	} else if from > 0 {
		req.span = fmt.Sprintf("bytes=%d-", from)
	}
	resp, err := s.do(ctx, req)
	if err != nil {
		return nil, orNoBlob(err, d)
	}
	return resp.Body, nil
}

func (s *bucket) Stat(ctx context.Context, d cas.Digest) (int64, error) {
	resp, err := s.do(ctx, &request{method: http.MethodHead, key: s.key(d)})
	if err != nil {
		return 0, orNoBlob(err, d)
	}
	return resp.ContentLength, resp.Body.Close()
}

func (s *bucket) Delete(ctx context.Context, d cas.Digest) error {
	resp, err := s.do(ctx, &request{method: http.MethodDelete, key: s.key(d)})
	if isMissing(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// A request to a bucket.
type request struct {
	method, key string           // without a key it is about the bucket itself
	span        string           // of the bytes that are asked for: a Range
	open        func() io.Reader // of the size bytes of its body
	size        int64
}

// A refusedError is an answer that is none of success.
type refusedError struct {
	status int
	text   string // what the server says
	region string // the bucket's, where it says that; "" where not
}

func (e *refusedError) Error() string {
	return strings.TrimSpace(fmt.Sprintf("%d %s %s", e.status, http.StatusText(e.status), e.text))
}

// refusal is what people are told of an answer in XML: the rest of it may quote the request, with a token of a session.
func refusal(answer []byte) string {
	var e struct{ Code, Message string }
	if xml.Unmarshal(answer, &e) != nil {
		return ""
	}
	return strings.TrimSpace(e.Code + " " + e.Message)
}

// IsRefused reports whether a place for blobs has refused what was asked, which it will do again.
func IsRefused(err error) bool {
	_, ok := errors.AsType[*refusedError](err)
	return ok && !mayPass(err)
}

func isMissing(err error) bool {
	refused, ok := errors.AsType[*refusedError](err)
	return ok && refused.status == http.StatusNotFound
}

func orNoBlob(err error, d cas.Digest) error {
	if isMissing(err) {
		return &cas.MissingError{Digest: d}
	}
	return err
}

// A request that failed for a reason that may pass is made again, after a pause that doubles: some 6 s in all.
const (
	tries      = 6
	firstPause = 200 * time.Millisecond
)

// do makes a request until it is answered. The caller closes the body of what it returns, which is a success.
func (s *bucket) do(ctx context.Context, r *request) (*http.Response, error) {
	for n := 1; ; n++ {
		resp, err := s.try(ctx, r)
		if err == nil || n == tries || !mayPass(err) || s.pause(ctx, firstPause<<(n-1)) != nil {
			return resp, err
		}
	}
}

func mayPass(err error) bool {
	if refused, ok := errors.AsType[*refusedError](err); ok {
		return refused.status >= 500 || refused.status == http.StatusTooManyRequests
	}
	_, stranger := errors.AsType[*tls.CertificateVerificationError](err)
	return !stranger
}

// digest is what a signature says of the body: what arrives otherwise is refused. TLS says so itself.
func (s *bucket) digest(r *request) (string, error) {
	if s.host().Scheme == "https" {
		return "UNSIGNED-PAYLOAD", nil
	}
	h := sha256.New()
	if r.size > 0 {
		if _, err := io.Copy(h, r.open()); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// answerWithin is how long a server may take until it begins to answer.
const answerWithin = time.Minute

var bucketClient = sync.OnceValue(func() *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.ResponseHeaderTimeout, t.DisableCompression = answerWithin, true // a blob is its bytes
	return &http.Client{
		Transport: t,
		// What is asked for elsewhere would need another signature.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
})

func (s *bucket) try(ctx context.Context, r *request) (*http.Response, error) {
	sum, err := s.digest(r)
	if err != nil {
		return nil, err
	}
	var body io.Reader
	if r.size > 0 {
		body = r.open()
	}
	req, err := http.NewRequestWithContext(ctx, r.method, s.host().JoinPath(s.name, r.key).String(), body)
	if err != nil {
		return nil, err
	}
	req.ContentLength = r.size
	if r.method == http.MethodPut {
		req.Header.Set("Content-Type", "application/zstd")
	}
	if r.span != "" {
		req.Header.Set("Range", r.span)
	}
	req.Header.Set("X-Amz-Content-Sha256", sum)
	if s.keys.AccessKeyID != "" {
		plain := func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true }
		if err := v4.NewSigner(plain).SignHTTP(ctx, s.keys, req, sum, "s3", s.region, time.Now()); err != nil {
			return nil, err
		}
	}
	resp, err := bucketClient().Do(req)
	if err != nil || resp.StatusCode/100 == 2 {
		return resp, err
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10)) // the status says enough
	return nil, &refusedError{resp.StatusCode, refusal(text), resp.Header.Get("X-Amz-Bucket-Region")}
}

// bucketKeys are those of the environment, else of the profile that AWS_PROFILE names in AWS_SHARED_CREDENTIALS_FILE or ~/.aws/credentials; none
// where nobody has set any.
func bucketKeys() (aws.Credentials, error) {
	keys := keysOf(os.Getenv, "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
	if keys.HasKeys() {
		return keys, nil
	}
	path := os.Getenv("AWS_SHARED_CREDENTIALS_FILE")
	if path == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return aws.Credentials{}, nil
		}
		path = filepath.Join(home, ".aws", "credentials")
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return aws.Credentials{}, nil
	}
	if err != nil {
		return aws.Credentials{}, err
	}
	defer f.Close()
	values, wanted, section := make(map[string]string), cmp.Or(os.Getenv("AWS_PROFILE"), "default"), ""
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if name, ok := strings.CutPrefix(line, "["); ok {
			section = strings.TrimSpace(strings.TrimSuffix(name, "]"))
		} else if key, value, ok := strings.Cut(line, "="); ok && section == wanted && line[0] != '#' && line[0] != ';' {
			values[strings.ToLower(strings.TrimSpace(key))] = strings.TrimSpace(value)
		}
	}
	return keysOf(func(name string) string { return values[name] }, "aws_access_key_id", "aws_secret_access_key", "aws_session_token"), lines.Err()
}

func keysOf(value func(name string) string, id, secret, token string) aws.Credentials {
	return aws.Credentials{AccessKeyID: value(id), SecretAccessKey: value(secret), SessionToken: value(token)}
}

package cas

import (
	"io"
	"sync"

	"github.com/zeebo/blake3"
)

// A Hasher takes the digest of bytes that come piece by piece. It is not safe for concurrent use.
type Hasher struct {
	h *blake3.Hasher
}

// NewHasher returns a Hasher that has seen nothing.
func NewHasher() *Hasher { return &Hasher{h: blake3.New()} }

// Write adds b. It never fails.
func (h *Hasher) Write(b []byte) (int, error) { return h.h.Write(b) }

// Sum returns the digest of everything written since the beginning or the last Reset. More may be written after it.
func (h *Hasher) Sum() Digest {
	var d Digest
	h.h.Sum(d[:0])
	return d
}

// Reset forgets everything that was written.
func (h *Hasher) Reset() { h.h.Reset() }

// verifier passes the bytes of a blob through and ends them with a *CorruptError where they are not d's.
type verifier struct {
	io.ReadCloser
	want Digest
	hash *Hasher
}

func newVerifier(rc io.ReadCloser, d Digest) *verifier {
	return &verifier{ReadCloser: rc, want: d, hash: hashers.Get().(*Hasher)}
}

func (v *verifier) Read(p []byte) (int, error) {
	n, err := v.ReadCloser.Read(p)
	if v.hash == nil {
		return n, err
	}
	v.hash.Write(p[:n])
	if err != io.EOF {
		return n, err
	}
	if got := v.hash.Sum(); got != v.want {
		return n, &CorruptError{Digest: v.want, Got: got}
	}
	return n, io.EOF
}

// Close lets others have the hasher. What is read afterwards is the file's error.
func (v *verifier) Close() error {
	if v.hash != nil {
		v.hash.Reset()
		hashers.Put(v.hash)
		v.hash = nil
	}
	return v.ReadCloser.Close()
}

// hashers are used again: one has 10 KB.
var hashers = sync.Pool{New: func() any { return NewHasher() }}

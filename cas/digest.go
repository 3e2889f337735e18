package cas

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/zeebo/blake3"
)

// Size is the length of a digest in bytes.
const Size = 32

// ErrName is wrapped by every refusal of a text that is not the name of a blob.
var ErrName = errors.New("not 64 lowercase hex digits")

// A Digest is the BLAKE3-256 of some bytes. It is comparable and may be a map key; the zero Digest stands for "none".
type Digest [Size]byte

// Sum returns the digest of b.
func Sum(b []byte) Digest { return blake3.Sum256(b) }

// Parse reads the 64 lowercase hex digits that name a blob. Anything else is refused with an error that wraps ErrName,
// so that no path is ever built from a name that came with the data.
func Parse(s string) (Digest, error) { return parse(s) }

// parse is Parse for a name in either form, without a copy: a tape's reader does this for every digest of every record.
func parse[T string | []byte](s T) (Digest, error) {
	var d Digest
	if len(s) != 2*Size {
		return d, fmt.Errorf("cas: name %.80q: %w", s, ErrName)
	}
	var bad byte
	for i := range d {
		hi, lo := nibbles[s[2*i]], nibbles[s[2*i+1]]
		bad |= hi | lo
		d[i] = hi<<4 | lo&0xf
	}
	if bad > 0xf {
		return Digest{}, fmt.Errorf("cas: name %.80q: %w", s, ErrName)
	}
	return d, nil
}

// nibbles maps a lowercase hex digit to its value and every other byte to 0xff.
var nibbles = func() (t [256]byte) {
	for i := range t {
		t[i] = 0xff
	}
	for i, c := range "0123456789abcdef" {
		t[c] = byte(i)
	}
	return t
}()

// String returns the 64 lowercase hex digits of d.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// Short returns the first 12 hex digits, for people.
func (d Digest) Short() string { return hex.EncodeToString(d[:6]) }

// IsZero reports whether d stands for "none".
func (d Digest) IsZero() bool { return d == Digest{} }

// AppendText appends the hex form of d to b.
func (d Digest) AppendText(b []byte) ([]byte, error) { return hex.AppendEncode(b, d[:]), nil }

// MarshalText returns the hex form of d.
func (d Digest) MarshalText() ([]byte, error) { return d.AppendText(nil) }

// UnmarshalText reads what MarshalText wrote.
func (d *Digest) UnmarshalText(b []byte) error {
	got, err := parse(b)
	if err != nil {
		return err
	}
	*d = got
	return nil
}

func (d Digest) compare(e Digest) int { return bytes.Compare(d[:], e[:]) }

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

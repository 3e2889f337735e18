package scrub

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"

	"github.com/tapedeck-dev/tapedeck/cas"
)

// Long files are scrubbed and compared in memory that does not grow with them.

// Streams reports whether FileWriter makes of a file that begins with head what Bytes makes of it: it is neither compressed nor
// a form. A head of 4 KiB tells.
func (s *Scrubber) Streams(head []byte) bool {
	return unpacker(head) == nil && delimiterOf(head) == nil
}

// FileWriter is Writer for a file: it learns nothing, as Bytes does.
func (s *Scrubber) FileWriter(w io.Writer) *Writer { return &Writer{s: s, w: w} }

// A KeyedHash is KeyedDigest of bytes that come piece by piece.
type KeyedHash struct{ h hash.Hash }

// KeyedHash returns one that has seen nothing.
func (s *Scrubber) KeyedHash() *KeyedHash { return &KeyedHash{hmac.New(sha256.New, s.key[:])} }

// Write adds b. It never fails.
func (k *KeyedHash) Write(b []byte) (int, error) { return k.h.Write(b) }

// Sum returns what KeyedDigest returns of everything written.
func (k *KeyedHash) Sum() string { return hex.EncodeToString(k.h.Sum(nil)) }

// maskWindow is how much DigestReader masks at once, in bytes.
const maskWindow = 1 << 20

// DigestReader is Digest of what r gives. Of a text of more than 1 MiB as many whole lines are masked at once as fit into that,
// so that a fact which is told from another line may stand; it is the same for equal texts. The error is r's.
func (m *Masker) DigestReader(r io.Reader) (cas.Digest, error) {
	h := cas.NewHasher()
	seen := make(map[string]int)
	buf := make([]byte, 0, maskWindow)
	for {
		n, err := io.ReadFull(r, buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		ended := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !ended {
			return cas.Digest{}, err
		}
		take := len(buf)
		if !ended {
			take = wholeLines(buf)
		}
		_, _ = h.Write(m.Mask(renumber(buf[:take], seen)))
		buf = buf[:copy(buf, buf[take:])]
		if ended {
			return h.Sum(), nil
		}
	}
}

// wholeLines returns how many bytes of b its whole lines have; all where it has not one.
func wholeLines(b []byte) int {
	for i := len(b); i > 0; i-- {
		if b[i-1] == '\n' {
			return i
		}
	}
	return len(b)
}

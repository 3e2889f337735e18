package scrub

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"
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

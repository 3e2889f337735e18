package ambient

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
	"sync"
)

// A Seed makes the random bytes of one run.
type Seed [32]byte

// NewSeed returns the seed of the recording called id in the project of key.
func NewSeed(key []byte, id string) (s Seed) {
	copy(s[:], mac(key, []byte("tapedeck: the seed of a run\x00"+id)))
	return s
}

// Source returns the random bytes of process n, from their first one on: those that it asks its kernel for, device 0, or those of a
// device that it opens.
func (s *Seed) Source(n, device uint64) *Random {
	var key [32]byte
	copy(key[:], mac(s[:], binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, n), device)))
	return &Random{from: rand.NewChaCha8(key)}
}

func mac(key, text []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write(text)
	return h.Sum(nil)
}

// A Random is the random bytes of one process.
type Random struct {
	mu   sync.Mutex
	from *rand.ChaCha8
}

// Fill fills b.
func (r *Random) Fill(b []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.from.Read(b)
}

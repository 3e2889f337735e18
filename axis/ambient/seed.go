package ambient

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
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

// ErrSeed is returned for a text that is no Seed's.
var ErrSeed = errors.New("ambient: no seed: 64 hex digits and a newline were expected")

// MarshalText is 64 hex digits and a newline.
func (s *Seed) MarshalText() ([]byte, error) { return append(hex.AppendEncode(nil, s[:]), '\n'), nil }

// UnmarshalText reads what MarshalText wrote.
func (s *Seed) UnmarshalText(text []byte) error {
	digits, ok := bytes.CutSuffix(text, []byte("\n"))
	b, err := hex.AppendDecode(nil, digits)
	if !ok || err != nil || len(b) != len(s) {
		return ErrSeed
	}
	copy(s[:], b)
	return nil
}

// Device returns the random bytes of a device that process n opens, from the first one on: its kth.
func (s *Seed) Device(n, k uint64) *Random { return s.source(n, k) }

// Draws returns the random bytes that process n asks its kernel for.
func (s *Seed) Draws(n uint64) *Draws {
	return &Draws{seed: s, process: n, from: make(map[draw]*Random)}
}

func (s *Seed) source(of ...uint64) *Random {
	var name []byte
	for _, v := range of {
		name = binary.BigEndian.AppendUint64(name, v)
	}
	var key [32]byte
	copy(key[:], mac(s[:], name))
	return &Random{from: rand.NewChaCha8(key)}
}

func mac(key, text []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write(text)
	return h.Sum(nil)
}

// A Random is random bytes in their order.
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

// A Draws is the random bytes that one process asks for. What it asks for at one place, in one length, is in an order of its own: a key of
// a map that another thread makes meanwhile changes no name.
type Draws struct {
	seed    *Seed
	process uint64

	mu   sync.Mutex
	from map[draw]*Random
}

type draw struct{ place, size int }

// maxDraws bounds the orders of one process. What is asked for beyond them has one in common.
const maxDraws = 4096

// Fill fills b for a place that Places has numbered.
func (d *Draws) Fill(place int, b []byte) { d.of(draw{place, len(b)}).Fill(b) }

func (d *Draws) of(key draw) *Random {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.from[key]
	if r == nil {
		if len(d.from) >= maxDraws {
			key = draw{}
		}
		if r = d.from[key]; r == nil {
			r = d.seed.source(d.process, 0, uint64(key.place), uint64(key.size))
			d.from[key] = r
		}
	}
	return r
}

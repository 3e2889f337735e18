package testbench

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// MaxRandom is the most bytes that one reading of Random gives.
const MaxRandom = 16 << 20

// Random gives random numbers that are the same in every run of one seed (ChaCha8), each reading on the tape as a random_read.
// It is an io.Reader. It may be used by several goroutines at once.
type Random struct {
	b   *Bench
	rec *tape.Recorder

	mu   sync.Mutex // held while a reading is recorded: readings stand in the order in which they were drawn
	src  *rand.ChaCha8
	rand *rand.Rand // of src
}

func newRandom(b *Bench, seed uint64) *Random {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], seed)
	src := rand.NewChaCha8(key)
	return &Random{b: b, src: src, rand: rand.New(src), rec: b.Recorder()}
}

// Int returns a number from low to high, both of them possible. On the tape it stands as 8 bytes, big endian, in two's complement.
func (r *Random) Int(low, high int64) (int64, error) {
	if low > high {
		return 0, fmt.Errorf("testbench: random number from %d to %d: the first must not be above the second", low, high)
	}
	var p [8]byte
	if err := r.give(p[:], func() { binary.BigEndian.PutUint64(p[:], uint64(r.between(low, high))) }); err != nil {
		return 0, err
	}
	n := int64(binary.BigEndian.Uint64(p[:]))
	if n < low || n > high {
		return 0, fmt.Errorf("testbench: random number from %d to %d: the tape holds %d for this reading", low, high, n)
	}
	return n, nil
}

// between is called under mu.
func (r *Random) between(low, high int64) int64 {
	span := uint64(high) - uint64(low)
	if span == math.MaxUint64 {
		return int64(r.src.Uint64())
	}
	return int64(uint64(low) + r.rand.Uint64N(span+1))
}

// Bytes returns n random bytes; n is from 0 to MaxRandom.
func (r *Random) Bytes(n int) ([]byte, error) {
	if n < 0 || n > MaxRandom {
		return nil, fmt.Errorf("testbench: %d random bytes: want from 0 to %d", n, MaxRandom)
	}
	p := make([]byte, n)
	_, err := r.Read(p)
	return p, err
}

// Read fills p, as one reading for each MaxRandom bytes of it.
func (r *Random) Read(p []byte) (int, error) {
	for at := 0; at < len(p) || at == 0; at += MaxRandom {
		part := p[at:min(len(p), at+MaxRandom)]
		err := r.give(part, func() { _, _ = r.src.Read(part) }) // which never fails
		if err != nil {
			return at, err
		}
	}
	return len(p), nil
}

// give fills p by one reading: what draw puts there, or what the tape of a replay has.
func (r *Random) give(p []byte, draw func()) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	taped := false
	if r.b.from != nil {
		var err error
		if taped, err = r.b.randomTaped(p); err != nil {
			return err
		}
	}
	if !taped {
		draw()
	}
	if r.rec == nil {
		return nil
	}
	payload, err := r.rec.Payload(p)
	if err != nil {
		return err
	}
	return r.rec.Record(&tape.RandomRead{Length: int64(len(p)), Payload: payload})
}

package scriptedllm

import (
	"math/rand/v2"
	"sync"
	"time"
)

// seededTime is the time of every answer of a seeded endpoint.
var seededTime = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

const (
	base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	hexits = "0123456789abcdef"
)

// ids makes up what providers vary from answer to answer.
type ids struct {
	now func() time.Time

	mu  sync.Mutex // guards rng
	rng *rand.Rand
}

// newIDs returns a source that repeats itself for a seed other than 0.
func newIDs(seed uint64) *ids {
	if seed == 0 {
		return &ids{now: time.Now, rng: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))}
	}
	return &ids{now: func() time.Time { return seededTime }, rng: rand.New(rand.NewPCG(seed, seed))}
}

// fresh returns prefix and n letters of the alphabet.
func (d *ids) fresh(prefix, alphabet string, n int) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	b := []byte(prefix)
	for range n {
		b = append(b, alphabet[d.rng.IntN(len(alphabet))])
	}
	return string(b)
}

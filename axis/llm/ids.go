package llm

import (
	"math/rand/v2"
	"sync"
	"time"
)

// seededTime is the time of every answer of a source with a seed.
var seededTime = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Alphabets of ids.
const (
	Base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	Hexits = "0123456789abcdef"
)

// IDs makes up what providers vary from answer to answer. Several goroutines may use it at once.
type IDs struct {
	Now func() time.Time

	mu  sync.Mutex // guards rng
	rng *rand.Rand
}

// NewIDs returns a source that repeats itself for a seed other than 0, its time too.
func NewIDs(seed uint64) *IDs {
	if seed == 0 {
		return &IDs{Now: time.Now, rng: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))}
	}
	return &IDs{Now: func() time.Time { return seededTime }, rng: rand.New(rand.NewPCG(seed, seed))}
}

// Fresh returns prefix and n letters of the alphabet.
func (d *IDs) Fresh(prefix, alphabet string, n int) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	b := []byte(prefix)
	for range n {
		b = append(b, alphabet[d.rng.IntN(len(alphabet))])
	}
	return string(b)
}

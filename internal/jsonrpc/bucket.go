package jsonrpc

import "time"

// A bucket holds tokens, of which each request takes one. It is for one goroutine.
type bucket struct {
	rate, burst float64 // tokens a second, and at most
	tokens      float64
	at          time.Time // when tokens was right
}

func newBucket(rate float64, burst int) bucket {
	return bucket{rate: rate, burst: float64(burst), tokens: float64(burst), at: time.Now()}
}

// take takes a token and returns how long to wait before it is there.
func (b *bucket) take() time.Duration {
	if b.rate <= 0 {
		return 0
	}
	if b.tokens < 1 {
		now := time.Now()
		b.tokens = min(b.burst, b.tokens+now.Sub(b.at).Seconds()*b.rate)
		b.at = now
	}
	b.tokens--
	if b.tokens >= 0 {
		return 0
	}
	return time.Duration(-b.tokens / b.rate * float64(time.Second))
}

//go:build load && linux

package load

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// A hist holds how long each of many things took.
type hist struct {
	mu  sync.Mutex
	all []time.Duration
}

func (h *hist) add(d time.Duration) {
	h.mu.Lock()
	h.all = append(h.all, d)
	h.mu.Unlock()
}

// quantile returns the q-th of them, q from 0 to 1.
func (h *hist) quantile(q float64) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.all) == 0 {
		return 0
	}
	slices.Sort(h.all)
	return h.all[min(len(h.all)-1, int(q*float64(len(h.all))))]
}

func (h *hist) String() string {
	ms := func(q float64) string { return fmt.Sprintf("%.2f", float64(h.quantile(q))/1e6) }
	return fmt.Sprintf("p50 %s, p99 %s, p99.9 %s ms of %d", ms(.5), ms(.99), ms(.999), len(h.all))
}

// ratio says how a time stands to another.
func ratio(a, b time.Duration) float64 { return float64(a) / float64(max(b, 1)) }

package main

import (
	"runtime"
	"testing"
	"time"
)

func TestMemoryLimit(t *testing.T) {
	for _, tt := range []struct{ live, want int64 }{
		{0, leanMemory}, {18 << 20, leanMemory}, {28 << 20, 42<<20 + leanMemory/3}, {2 << 30, 3<<30 + leanMemory/3},
	} {
		if got := memoryLimit(tt.live); got != tt.want {
			t.Errorf("limit of %d MiB in use: %d, want %d", tt.live>>20, got, tt.want)
		}
	}
}

func TestPercentFor(t *testing.T) {
	for _, tt := range []struct {
		live        int64
		least, want int
	}{
		{0, usualPercent, loosePercent}, {2 << 20, usualPercent, loosePercent}, // little: up to 32 MB, as at the start
		{8 << 20, usualPercent, 300}, {8 << 20, leanPercent, 300},
		{16 << 20, usualPercent, usualPercent}, {16 << 20, leanPercent, leanPercent}, {3 << 30, usualPercent, usualPercent},
	} {
		if got := percentFor(tt.live, tt.least); got != tt.want {
			t.Errorf("with %d MiB alive the heap may grow by %d%%, want %d%%", tt.live>>20, got, tt.want)
		}
	}
}

func TestAfterEachGC(t *testing.T) {
	ran := make(chan struct{})
	stop := make(chan struct{})
	defer close(stop)
	afterEachGC(func() {
		select {
		case ran <- struct{}{}:
		case <-stop:
		}
	})
	for range 3 {
		runtime.GC()
		select {
		case <-ran:
		case <-time.After(time.Minute):
			t.Fatal("a collection passed unseen")
		}
	}
}

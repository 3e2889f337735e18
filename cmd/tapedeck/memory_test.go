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

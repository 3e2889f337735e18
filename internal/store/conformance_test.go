package store_test

import (
	"context"
	"testing"

	"github.com/tapedeck-dev/tapedeck/internal/store"
	"github.com/tapedeck-dev/tapedeck/internal/store/storetest"
)

func TestMemory(t *testing.T) {
	storetest.Run(t, func(*testing.T) store.Store { return store.NewMemory() })
}

func TestDisk(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store { return openDisk(t, t.TempDir(), nil) })
}

// A cache of two descriptors and small segments change nothing that anybody sees.
func TestDiskSmall(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store {
		return openDisk(t, t.TempDir(), &store.Options{Descriptors: 2, Segment: 64 << 10, IndexEvery: 1e6})
	})
}

func openDisk(t testing.TB, dir string, o *store.Options) *store.Disk {
	t.Helper()
	s, err := store.Open(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(context.Background()) })
	return s
}

package store_test

import (
	"context"
	"testing"

	"github.com/tapedeck-dev/tapedeck/internal/store"
)

func TestDisk(t *testing.T) {
	conform(t, func(t *testing.T) store.Store { return openDisk(t, t.TempDir(), nil) })
}

// A cache of two descriptors and small segments change nothing that anybody sees.
func TestDiskSmall(t *testing.T) {
	conform(t, func(t *testing.T) store.Store {
		return openDisk(t, t.TempDir(), &store.Options{Descriptors: 2, Segment: 64 << 10, IndexEvery: 1e6})
	})
}

// conform holds every store to the same behaviour: what store.Store promises, whatever keeps the runs. It checks the
// stores that open makes, empty and one for each part. Open sees to it that they are closed.
func conform(t *testing.T, open func(t *testing.T) store.Store) {
	for name, check := range map[string]func(*testing.T, store.Store){
		"Life":              life,
		"Lines":             lines,
		"StartTwice":        startTwice,
		"StartAtOnce":       startAtOnce,
		"Names":             names,
		"Indices":           indices,
		"ConcurrentBatches": concurrentBatches,
		"Dropped":           dropped,
		"Limit":             limit,
		"TooLarge":          tooLarge,
		"EndTwice":          endTwice,
		"EndAtOnce":         endAtOnce,
		"List":              list,
		"TraceParts":        traceParts,
		"Verdicts":          verdicts,
		"Canceled":          canceled,
		"Closed":            closed,
		"Many":              many,
		"Subscribe":         subscribe,
		"SubscribeEnded":    subscribeEnded,
		"SubscribeRandom":   subscribeRandom,
		"SlowSubscriber":    slowSubscriber,
		"LongSnapshot":      longSnapshot,
		"Unsubscribe":       unsubscribe,
		"CloseSubscribed":   closeSubscribed,
	} {
		t.Run(name, func(t *testing.T) { check(t, open(t)) })
	}
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

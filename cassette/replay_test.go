package cassette_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck-dev/tapedeck/cassette"
)

// timedCassette records an output every 100 ms for a second, and a long pause at the end.
func timedCassette(t *testing.T) *cassette.Reader {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "c")
	var now time.Duration
	w, err := cassette.Create(dir, &cassette.CreateOptions{ResolutionMS: 1, FrameEvery: -1, Clock: func() time.Duration { return now }})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		now = time.Duration(i) * 100 * time.Millisecond
		w.Output(fmt.Appendf(nil, "%d\r\n", i))
	}
	now = time.Hour
	if _, err := w.Finish(&cassette.Final{}); err != nil {
		t.Fatal(err)
	}
	r, err := cassette.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// TestReplayTime plays in the machine's time, which synctest makes.
func TestReplayTime(t *testing.T) {
	r := timedCassette(t)
	for _, c := range []struct {
		o    cassette.ReplayOptions
		want time.Duration
	}{
		{cassette.ReplayOptions{Mode: cassette.ReplayRealtime}, time.Hour},
		{cassette.ReplayOptions{Mode: cassette.ReplayScaled, Factor: 0.25}, 15 * time.Minute},
		{cassette.ReplayOptions{Mode: cassette.ReplayScaled, Factor: 2}, 2 * time.Hour},
		{cassette.ReplayOptions{Mode: cassette.ReplayCollapsed}, 0},
		{cassette.ReplayOptions{}, 0}, // what the manifest says
		{cassette.ReplayOptions{Mode: cassette.ReplayRealtime, Most: time.Second}, 1900 * time.Millisecond},
		{cassette.ReplayOptions{Mode: cassette.ReplayRealtime, From: 30 * time.Minute}, 0},
		{cassette.ReplayOptions{Mode: cassette.ReplayRealtime, From: 450 * time.Millisecond}, time.Hour - 500*time.Millisecond},
		{cassette.ReplayOptions{Mode: cassette.ReplayScaled}, time.Hour}, // without a factor
	} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			var seq uint64
			err := cassette.Replay(t.Context(), r, &c.o, func(e *cassette.Event) error {
				if e.Seq <= seq {
					t.Errorf("%d behind %d", e.Seq, seq)
				}
				seq = e.Seq
				if c.o.Mode == cassette.ReplayRealtime && c.o.Most == 0 && c.o.From == 0 && time.Since(start) != e.Time() {
					t.Errorf("event of %v at %v", e.Time(), time.Since(start))
				}
				return nil
			})
			if got := time.Since(start); err != nil || got != c.want {
				t.Errorf("%+v took %v, not %v: %v", c.o, got, c.want, err)
			}
		})
	}
}

// TestReplaySlow sees that what each takes is not waited for again.
func TestReplaySlow(t *testing.T) {
	r := timedCassette(t)
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		err := cassette.Replay(t.Context(), r, &cassette.ReplayOptions{Mode: cassette.ReplayRealtime}, func(*cassette.Event) error {
			time.Sleep(70 * time.Millisecond)
			return nil
		})
		if got := time.Since(start); err != nil || got != time.Hour+140*time.Millisecond { // the last frame, the final record
			t.Error(got, err)
		}
	})
}

func TestReplaySleeper(t *testing.T) {
	r := timedCassette(t)
	var slept []time.Duration
	o := &cassette.ReplayOptions{Mode: cassette.ReplayScaled, Factor: 0.5, Streams: []cassette.Stream{cassette.StreamOutput},
		Sleep: func(_ context.Context, d time.Duration) error { slept = append(slept, d); return nil }}
	var got strings.Builder
	if err := cassette.Replay(t.Context(), r, o, func(e *cassette.Event) error { got.Write(e.Bytes); return nil }); err != nil {
		t.Fatal(err)
	}
	if len(slept) != 9 || slept[0] != 50*time.Millisecond || !strings.HasPrefix(got.String(), "0\r\n1\r\n") {
		t.Errorf("%v, %q", slept, got.String())
	}
}

func TestReplayEnds(t *testing.T) {
	r := timedCassette(t)
	mine := errors.New("enough")
	if err := cassette.Replay(t.Context(), r, nil, func(*cassette.Event) error { return mine }); !errors.Is(err, mine) {
		t.Error(err)
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		err := cassette.Replay(ctx, r, &cassette.ReplayOptions{Mode: cassette.ReplayRealtime}, func(*cassette.Event) error { return nil })
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Minute {
			t.Error(err, time.Since(start))
		}
	})
	for _, o := range []cassette.ReplayOptions{{Mode: "backwards"}, {Mode: cassette.ReplayScaled, Factor: -1}} {
		if err := cassette.Replay(t.Context(), r, &o, func(*cassette.Event) error { return nil }); err == nil {
			t.Errorf("%+v plays", o)
		}
	}
}

package ambient

import (
	"testing"
	"time"
)

// TestLeave: before a run leaves its recorded times they are given; then all processes read what goes on from the later of what was given
// last and the time that is named, also one that the recording does not know.
func TestLeave(t *testing.T) {
	start := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	log := new(Heard)
	stream := log.Stream(fixed(start.UnixNano()), new(Places))
	stream.Now(0)
	stream.Now(0)
	times, _ := stream.Times()
	for _, later := range []time.Duration{-time.Hour, 0, time.Hour} {
		clock := NewClock(start)
		g, _, err := clock.Given(times)
		if err != nil {
			t.Fatal(err)
		}
		if now := g.Now(0); now != start.UnixNano() {
			t.Errorf("before: %d, want %d", now, start.UnixNano())
		}
		clock.Leave(start.Add(later).UnixNano())
		fresh, _, _ := clock.Given(nil)
		for _, g := range []*Given{g, fresh} {
			since := time.Duration(g.Now(0) - start.UnixNano())
			if since < max(later, 0) || since > max(later, 0)+time.Minute {
				t.Errorf("left at %v: time goes on after %v", later, since)
			}
			if behind := time.Duration(g.Behind()); behind < time.Hour {
				t.Errorf("left at %v: it is behind by %v", later, behind)
			}
		}
	}
}

// fixed is a clock that stands still.
type fixed int64

func (f fixed) Now(int) int64 { return int64(f) }
func (fixed) Behind() int64   { return 0 }

package ambient

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestAgain gives what was recorded, as often as it was read and not: a mark is an answer.
func TestAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		log := new(Log)
		s := log.Stream(nil)
		read := func(n int) (out []int64) {
			for range n {
				time.Sleep(time.Second)
				out = append(out, s.Now())
			}
			return out
		}
		first := read(2)
		log.Answered(1)
		second := read(3)
		log.Answered(2)
		third := read(1)
		times, _ := s.Times()

		time.Sleep(time.Hour)
		clock := NewClock(start)
		g, err := clock.Given(times)
		if err != nil {
			t.Fatal(err)
		}
		want := func(what string, times ...int64) {
			t.Helper()
			for i, w := range times {
				if got := g.Now(); got != w {
					t.Errorf("%s, read %d: %d, want %d", what, i, got, w)
				}
			}
		}
		want("before any answer", first...)
		clock.Answered(1)
		want("one too few", second[:2]...)
		if behind := g.Behind(); behind != time.Now().UnixNano()-second[1] {
			t.Error("behind", behind)
		}
		clock.Answered(2)
		want("after the second", third...)
		if clock.Beyond() != 0 {
			t.Error("beyond", clock.Beyond())
		}

		clock = NewClock(start)
		g, _ = clock.Given(times)
		want("before any answer", first...)
		time.Sleep(time.Millisecond)
		want("one too many", first[1]+int64(time.Millisecond))
		time.Sleep(time.Hour)
		want("never as late as what comes next", second[0]-1)
		clock.Answered(1)
		want("again", second...)
		if clock.Beyond() != 2 {
			t.Error("beyond", clock.Beyond())
		}

		clock = NewClock(start)
		g, _ = clock.Given(times)
		clock.Answered(2) // before the first one
		want("in another order", slices.Concat(first, second, third)...)
		if clock.Beyond() != 0 {
			t.Error("beyond", clock.Beyond())
		}

		clock = NewClock(start)
		g, _ = clock.Given(times)
		want("before any answer", first...)
		clock.Answered(1)
		want("again", second...)
		other, _ := clock.Given(nil)
		time.Sleep(time.Minute)
		if got, want := other.Now(), second[2]+int64(time.Minute); got != want {
			t.Errorf("of a process that is not recorded %d, want %d", got, want)
		}
	})
}

func TestSeed(t *testing.T) {
	draw := func(key, id string, n uint64) string {
		s := NewSeed([]byte(key), id)
		b := make([]byte, 16)
		r := s.Source(n, 0)
		r.Fill(b[:3])
		r.Fill(b[3:])
		return string(b)
	}
	all := []string{draw("k", "a", 1), draw("k", "a", 2), draw("k", "b", 1), draw("l", "a", 1)}
	if draw("k", "a", 1) != all[0] {
		t.Error("another run of the same recording draws something else")
	}
	slices.Sort(all)
	if len(slices.Compact(all)) != 4 {
		t.Error("two runs or two processes draw the same")
	}
}

func FuzzTimes(f *testing.F) {
	f.Add([]byte{2, 3, 4, 5, 6})
	f.Fuzz(func(t *testing.T, b []byte) {
		clock := NewClock(time.Now())
		g, err := clock.Given(b)
		if err != nil {
			return
		}
		for i := range min(len(b)+2, 100) {
			g.Now()
			clock.Answered(uint64(i))
		}
	})
}

func BenchmarkNow(b *testing.B) {
	s := new(Log).Stream(nil)
	for b.Loop() {
		s.Now()
		s.times = s.times[:0]
	}
}

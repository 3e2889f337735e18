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
		log := new(Heard)
		s := log.Stream(nil, new(Places))
		read := func(n int) (out []int64) {
			for range n {
				time.Sleep(time.Second)
				out = append(out, s.Now(0))
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
		g, _, err := clock.Given(times)
		if err != nil {
			t.Fatal(err)
		}
		want := func(what string, times ...int64) {
			t.Helper()
			for i, w := range times {
				if got := g.Now(0); got != w {
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
		g, _, _ = clock.Given(times)
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
		g, _, _ = clock.Given(times)
		clock.Answered(2) // before the first one
		want("in another order", slices.Concat(first, second, third)...)
		if clock.Beyond() != 0 {
			t.Error("beyond", clock.Beyond())
		}

		clock = NewClock(start)
		g, _, _ = clock.Given(times)
		want("before any answer", first...)
		clock.Answered(1)
		want("again", second...)
		other, _, _ := clock.Given(nil)
		time.Sleep(time.Minute)
		if got, want := other.Now(0), second[2]+int64(time.Minute); got != want {
			t.Errorf("of a process that is not recorded %d, want %d", got, want)
		}
	})
}

// TestThread has a thread read the time when it and another one have been answered: on a replay where the other one has not it is the same.
func TestThread(t *testing.T) {
	process := new(Heard)
	thread, other := process.Thread(), process.Thread()
	s := thread.Stream(nil, new(Places))
	main := process.Stream(nil, new(Places))
	s.Now(0)
	thread.Answered(1)
	other.Answered(2)
	want := s.Now(0)
	main.Now(0)
	times, _ := s.Times()

	clock := NewClock(time.Now())
	g, _, err := clock.Given(times)
	if err != nil {
		t.Fatal(err)
	}
	g.Now(0)
	clock.Answered(1)
	if got := g.Now(0); got != want || clock.Beyond() != 0 {
		t.Errorf("%d, want %d; %d beyond", got, want, clock.Beyond())
	}
	if main.marked != 2 {
		t.Errorf("the process heard %d last, not what its threads did", main.marked)
	}
}

// TestPlaces has two threads read and draw in an order that changes: each place has what it had.
func TestPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, places := new(Heard), new(Places)
		s := log.Stream(nil, places)
		now := func(s Timer, p *Places, place uint64) int64 {
			time.Sleep(time.Second)
			return s.Now(p.Number(place))
		}
		start := time.Now()
		a1, b1, a2 := now(s, places, 'a'), now(s, places, 'b'), now(s, places, 'a')
		log.Answered(1)
		b2 := now(s, places, 'b')
		times, _ := s.Times()

		for _, of := range []struct {
			what string
			a, b uint64
		}{{"the program", 'a', 'b'}, {"another build of it", 'c', 'd'}} {
			clock := NewClock(start)
			g, p, err := clock.Given(times)
			if err != nil {
				t.Fatal(err)
			}
			got := []int64{now(g, p, of.a), now(g, p, of.b)}
			if of.a == 'a' {
				p.Number('x') // a place that is new takes none of theirs
			}
			got = append(got, now(g, p, of.a))
			clock.Answered(1)
			got = append(got, now(g, p, of.b))
			if want := []int64{a1, b1, a2, b2}; !slices.Equal(got, want) || clock.Beyond() != 0 || clock.Reads() != 4 {
				t.Errorf("%s: %v, want %v; %d beyond", of.what, got, want, clock.Beyond())
			}
		}

		clock := NewClock(start)
		g, p, _ := clock.Given(times)
		if got := []int64{now(g, p, 'b'), now(g, p, 'a'), now(g, p, 'a')}; !slices.Equal(got, []int64{b1, a1, a2}) {
			t.Errorf("in another order %v", got)
		}
		if got := now(g, p, 'x'); got < a2 || got >= b2 || clock.Beyond() != 1 {
			t.Errorf("of a place that is new %d, %d beyond", got, clock.Beyond())
		}
	})
}

// TestSparePlace has a program read at a place that is new while another one's time is left: it has that, as one whose function has another name now.
func TestSparePlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, places := new(Heard), new(Places)
		places.Number('s') // of a draw, which is the same in any build
		s := log.Stream(nil, places)
		now := func(s Timer, p *Places, place uint64) int64 {
			time.Sleep(time.Second)
			return s.Now(p.Number(place))
		}
		start := time.Now()
		a1, b1, a2 := now(s, places, 'a'), now(s, places, 'b'), now(s, places, 'a')
		log.Answered(1)
		now(s, places, 'a')
		times, _ := s.Times()

		for what, of := range map[string]struct {
			places string
			want   []int64
			beyond int64
		}{
			"another name":     {"xbx", []int64{a1, b1, a2}, 0},
			"two others":       {"xyx", []int64{a1, b1, a2}, 0},
			"more often":       {"xaba", []int64{a1, a1, b1, a2}, 0},
			"after all others": {"abax", []int64{a1, b1, a2, a2 + int64(time.Second) - 1}, 1},
		} {
			clock := NewClock(start)
			g, p, err := clock.Given(times)
			if err != nil {
				t.Fatal(err)
			}
			p.Number('s')
			var got []int64
			for _, place := range of.places {
				got = append(got, now(g, p, uint64(place)))
			}
			if !slices.Equal(got, of.want) || clock.Beyond() != of.beyond {
				t.Errorf("%s: %v, want %v; %d beyond", what, got, of.want, clock.Beyond())
			}
		}
	})
}

// TestPlacesEnd has a program ask at more places than are told apart: at those it is known to have, it has their numbers.
func TestPlacesEnd(t *testing.T) {
	p := new(Places)
	for place := range uint64(MaxPlaces) {
		if n := p.Number(place + 1); n != int(place)+1 {
			t.Fatalf("place %d has number %d", place+1, n)
		}
	}
	again, _, err := readPlaces(p.append(nil))
	if err != nil {
		t.Fatal(err)
	}
	other, _, _ := readPlaces(p.append(nil)) // another build asks first at a place that is not recorded
	for _, tt := range []struct {
		what  string
		p     *Places
		place uint64
		want  int
	}{
		{"recorded, beyond", p, MaxPlaces + 1, 0},
		{"recorded, the last", p, MaxPlaces, MaxPlaces},
		{"replayed, the last", again, MaxPlaces, MaxPlaces},
		{"replayed, beyond", again, MaxPlaces + 1, 0},
		{"another build, its first", other, MaxPlaces + 1, 1},
		{"another build, its second", other, MaxPlaces + 2, 2},
	} {
		if n := tt.p.Number(tt.place); n != tt.want {
			t.Errorf("%s: number %d, want %d", tt.what, n, tt.want)
		}
	}
	for place := range uint64(MaxPlaces) {
		other.Number(MaxPlaces + 1 + place)
	}
	if n := other.Number(3 * MaxPlaces); n != 0 {
		t.Errorf("another build, beyond: number %d", n)
	}
}

// TestPlacesOfThread: what a thread asks for first, at a place that it has not on the recording, says that the program is another build only where
// its process does not know better.
func TestPlacesOfThread(t *testing.T) {
	p := new(Places)
	p.Number('a')
	p.Number('b')
	read := func(process *Places) *Places {
		again, _, err := readPlaces(p.append(nil))
		if err != nil {
			t.Fatal(err)
		}
		again.Process = process
		return again
	}
	same, other := read(nil), read(nil)
	same.Number('b')
	other.Number('x')
	for _, tt := range []struct {
		what    string
		process *Places
		want    []int // of a place that is new and one that is not
	}{{"the same build", same, []int{3, 1}}, {"another build", other, []int{1, 2}}, {"nobody knows", read(nil), []int{1, 2}}} {
		thread := read(tt.process)
		if got := []int{thread.Number('y'), thread.Number('a')}; !slices.Equal(got, tt.want) {
			t.Errorf("%s: numbers %v, want %v", tt.what, got, tt.want)
		}
	}
}

func TestSeed(t *testing.T) {
	seed := func(key, id string) *Seed {
		s := NewSeed([]byte(key), id)
		return &s
	}
	draw := func(d *Draws, place, n int) string {
		b := make([]byte, n)
		d.Fill(place, b)
		return string(b)
	}
	d := seed("k", "a").Draws(1)
	all := []string{
		draw(d, 1, 16), draw(d, 1, 16), draw(d, 2, 16), draw(d, 1, 32)[:16], draw(seed("k", "a").Draws(2), 1, 16),
		draw(seed("k", "b").Draws(1), 1, 16), draw(seed("l", "a").Draws(1), 1, 16),
	}
	d = seed("k", "a").Draws(1)
	if again := []string{draw(d, 2, 16), draw(d, 1, 32)[:16], draw(d, 1, 16), draw(d, 1, 16)}; !slices.Equal(again, []string{all[2], all[3], all[0], all[1]}) {
		t.Error("in another order another place or length draws something else")
	}
	device := make([]byte, 16)
	seed("k", "a").Device(1, 1).Fill(device)
	all = append(all, string(device))
	slices.Sort(all)
	if len(slices.Compact(all)) != 8 {
		t.Error("two runs, processes, places or lengths draw the same")
	}
}

func FuzzTimes(f *testing.F) {
	f.Add([]byte{1, 0, 0, 0, 0, 0, 0, 0, 9, 2, 7, 4, 5, 6})
	f.Fuzz(func(t *testing.T, b []byte) {
		clock := NewClock(time.Now())
		g, _, err := clock.Given(b)
		if err != nil {
			return
		}
		for i := range min(len(b)+2, 100) {
			g.Now(i % 3)
			clock.Answered(uint64(i))
		}
	})
}

func BenchmarkNow(b *testing.B) {
	s := new(Heard).Stream(nil, new(Places))
	for b.Loop() {
		s.Now(0)
		s.times = s.times[:0]
	}
}

// TestNoPlaces: of a recording that knows of no place at all none is told apart, neither for times nor for random numbers.
func TestNoPlaces(t *testing.T) {
	s := new(Heard).Stream(nil, new(Places))
	first, second := s.Now(0), s.Now(0)
	times, _ := s.Times()
	g, again, err := NewClock(time.Now()).Given(times)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := g.Now(again.TimeNumber('a')), g.Now(again.TimeNumber('b')); a != first || b != second {
		t.Errorf("gave %d and %d, recorded were %d and %d", a, b, first, second)
	}
	if n := again.Number('r'); n != 0 {
		t.Errorf("random numbers are drawn at place %d", n)
	}
}

// TestTimesOfNoPlace: of a recording that does not know where its times were read each place gets the next one, and no random number moves.
func TestTimesOfNoPlace(t *testing.T) {
	p, log := new(Places), new(Heard)
	s := log.Stream(nil, p)
	where := p.Number(unseen)
	random := p.Number('r')
	first, second := s.Now(where), s.Now(where)
	times, _ := s.Times()
	g, again, err := NewClock(time.Now()).Given(times)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := g.Now(again.TimeNumber('a')), g.Now(again.TimeNumber('b')); a != first || b != second {
		t.Errorf("gave %d and %d, recorded were %d and %d", a, b, first, second)
	}
	if n := again.Number('r'); n != random {
		t.Errorf("the random numbers' place is %d, it was %d", n, random)
	}
}

// TestTimeStandsStillForAMoment: a program that waits for the clock before it asks, as one does whose answers came in another order, goes on.
func TestTimeStandsStillForAMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		log := new(Heard)
		s := log.Stream(nil, new(Places))
		first := s.Now(0)
		for arrival := range uint64(3) {
			time.Sleep(10 * time.Millisecond)
			log.Answered(arrival + 1)
			s.Now(0)
		}
		times, _ := s.Times()

		g, _, err := NewClock(start).Given(times)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		for last, until := int64(0), first+int64(time.Minute); last < until; time.Sleep(time.Millisecond) {
			now := g.Now(0)
			if now < last {
				t.Fatalf("%d comes after %d", now, last)
			}
			if last = now; time.Since(began) > 2*time.Minute {
				t.Fatalf("time stands still %v behind", time.Duration(until-now))
			}
		}
	})
}

package ambient

import (
	"testing"
	"testing/synctest"
	"time"
)

// recordSteps records a program that reads twice, and once after each of two of its three answers.
func recordSteps(t *testing.T) (again func() (*Clock, *Given)) {
	t.Helper()
	log, places := new(Heard), new(Places)
	s := log.Stream(nil, places)
	read := func() {
		time.Sleep(10 * time.Millisecond)
		s.Now(0)
	}
	read()
	read()
	log.Answered(1)
	read()
	log.Answered(2)
	log.Answered(3)
	read()
	times, _ := s.Times()
	start := time.Now()
	return func() (*Clock, *Given) {
		clock := NewClock(start)
		g, _, err := clock.Given(times)
		if err != nil {
			t.Fatal(err)
		}
		return clock, g
	}
}

// TestAwait holds an answer up until what came before it has come again.
func TestAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock, g := recordSteps(t)()
		answered := make(chan uint64, 3)
		answer := func(arrival uint64) {
			clock.Asked(arrival)
			_ = g.Await(t.Context(), arrival) // the test is not over
			clock.Answered(arrival)
			answered <- arrival
		}
		none := func(why string) {
			t.Helper()
			synctest.Wait()
			if len(answered) > 0 {
				t.Errorf("answered %d %s", <-answered, why)
			}
		}
		go answer(1)
		none("before any read")
		g.Now(0)
		none("before the second read")
		g.Now(0)
		if a := <-answered; a != 1 {
			t.Error("answered", a)
		}
		go answer(3)
		g.Now(0)
		none("before the second answer")
		answer(2)
		if a, b := <-answered, <-answered; a+b != 5 {
			t.Error("answered", a, b)
		}
		g.Now(0)
		if clock.Beyond() != 0 {
			t.Error("beyond", clock.Beyond())
		}
	})
}

// TestAwaitInVain waits for what does not come, once.
func TestAwaitInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		again := recordSteps(t)
		_, g := again()
		waits := func(arrival uint64) time.Duration {
			began := time.Now()
			if err := g.Await(t.Context(), arrival); err != nil {
				t.Fatal(err)
			}
			return time.Since(began)
		}
		took := time.Duration(0)
		for arrival := range uint64(5) { // of which two are none of its
			took += waits(arrival)
		}
		if took < quietLeast || took > 3*quietMost {
			t.Error("waited", took)
		}
		_, g = again()
		g.vain = vainMost
		if took := waits(1); took > 0 {
			t.Error("after too many waits in vain", took)
		}
		var clock *Clock
		clock, g = again()
		clock.Leave(0)
		if took := waits(1); took > 0 {
			t.Error("of a run that has left the recorded times", took)
		}
	})
}

// TestEarly gives a time of after an answer to what is done before it, where it is about to come.
func TestEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock, g := recordSteps(t)()
		for range 3 {
			time.Sleep(10 * time.Millisecond)
			g.Now(0)
		}
		clock.Answered(1)
		clock.Answered(3)
		if g.Now(0); clock.Beyond() != 0 {
			t.Error("beyond", clock.Beyond())
		}
	})
}

// recordChunks records a program whose two answers come in chunks beside each other, and a child that ends: it reads after each.
func recordChunks(t *testing.T) (clock *Clock, g *Given) {
	t.Helper()
	log, places := new(Heard), new(Places)
	place := places.Number(7)
	s := log.Stream(nil, places)
	start := time.Now()
	for _, heard := range []func(){
		func() { log.Answered(1) }, func() { log.Answered(2) }, func() { log.Piece(1, 1) }, func() { log.Piece(2, 1) }, func() { log.Ended(5) },
	} {
		s.Now(place)
		heard()
	}
	s.Now(place)
	times, _ := s.Times()
	clock = NewClock(start)
	g, again, err := clock.Given(times)
	if err != nil {
		t.Fatal(err)
	}
	if n := again.Number(7); n != place || len(g.queues[place]) != 6 || len(g.queues) != 1 {
		t.Fatalf("place %d has %v, want all at %d", n, g.queues, place)
	}
	return clock, g
}

// TestAwaitSteps: chunks of answers, and ends of children, come in their order, each when what was read before it has been read again.
func TestAwaitSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock, g := recordChunks(t)
		g.Now(1)
		clock.Answered(1)
		g.Now(1)
		clock.Answered(2)
		came := make(chan string, 3)
		ctx := t.Context()
		for name, await := range map[string]func() error{
			"first":  func() error { return g.AwaitPiece(ctx, 1, 1) },
			"second": func() error { return g.AwaitPiece(ctx, 2, 1) },
			"end":    func() error { return g.AwaitEnd(ctx, 5) },
		} {
			go func() {
				_ = await() // the test is not over
				came <- name
			}()
		}
		for _, want := range []string{"first", "second", "end"} {
			synctest.Wait()
			if len(came) > 0 {
				t.Errorf("%s came where nothing had been read before %s", <-came, want)
			}
			g.Now(1)
			if is := <-came; is != want {
				t.Errorf("%s came, want %s", is, want)
			}
		}
		if err := g.AwaitPiece(ctx, 3, 1); err != nil || g.vain > 0 {
			t.Errorf("a chunk that is on no recording: %v, %d in vain", err, g.vain)
		}
	})
}

// TestAwaitWork: who is at work is waited for, though it takes long, and who is at rest is not.
func TestAwaitWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		again := recordSteps(t)
		for _, c := range []struct {
			busy, most time.Duration
			vain       int
		}{{0, 3 * lookEach, 0}, {300 * time.Millisecond, 350 * time.Millisecond, 0}, {time.Hour, 2 * busyMost, 1}} {
			_, g := again()
			begun := time.Now()
			g.Work = func() (uint64, bool) { return 1, time.Since(begun) < c.busy }
			if err := g.Await(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(begun); took < min(c.busy, busyMost) || took > c.most || g.vain != c.vain {
				t.Errorf("at work for %v: waited %v, %d in vain", c.busy, took, g.vain)
			}
		}
	})
}

// TestAwaitLoose: a place that is read less often than it was is waited for once.
func TestAwaitLoose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, places := new(Heard), new(Places)
		steady, spinner := places.Number(7), places.Number(8)
		s := log.Stream(nil, places)
		start := time.Now()
		for arrival := range uint64(3) {
			s.Now(steady)
			s.Now(spinner)
			log.Answered(arrival + 1)
		}
		s.Now(steady)
		times, _ := s.Times()
		clock := NewClock(start)
		g, _, err := clock.Given(times)
		if err != nil {
			t.Fatal(err)
		}
		for arrival := range uint64(3) {
			g.Now(steady)
			begun := time.Now()
			if err := g.Await(t.Context(), arrival+1); err != nil {
				t.Fatal(err)
			}
			if waited := time.Since(begun) > 0; waited != (arrival == 0) {
				t.Errorf("answer %d waited: %t", arrival+1, waited)
			}
			clock.Answered(arrival + 1)
		}
	})
}

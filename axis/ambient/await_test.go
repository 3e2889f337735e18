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
			reached, _, err := g.Await(t.Context(), arrival)
			if err != nil {
				t.Error(err)
				return
			}
			clock.Answered(arrival)
			reached()
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

// TestAwaitForTheProcess holds an answer to a thread up until its process, which hears of it too, has read what it had read before.
func TestAwaitForTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		process, places := new(Heard), new(Places)
		thread := process.Thread()
		reads, threadReads := process.Stream(nil, places), thread.Stream(nil, new(Places))
		threadReads.Now(0)
		reads.Now(0)
		thread.Answered(1)
		time.Sleep(time.Second)
		late := reads.Now(0)
		clock := NewClock(time.Now())
		given := func(s *Stream) *Given {
			times, _ := s.Times()
			g, _, err := clock.Given(times)
			if err != nil {
				t.Fatal(err)
			}
			return g
		}
		g, of := given(threadReads), given(reads)
		g.Process = of
		g.Now(0)
		answered := make(chan func(), 1)
		go func() {
			reached, _, err := g.Await(t.Context(), 1)
			if err != nil {
				t.Error(err)
			}
			answered <- reached
		}()
		synctest.Wait()
		if len(answered) > 0 {
			t.Error("answered before the process had read its first time")
		}
		of.Now(0)
		reached := <-answered
		if !of.busy() {
			t.Error("the process is not about to have an answer")
		}
		clock.Answered(1)
		reached()
		if now := of.Now(0); now != late || of.busy() {
			t.Error("read behind the answer", now, "want", late)
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
			reached, _, err := g.Await(t.Context(), arrival)
			if err != nil {
				t.Fatal(err)
			}
			reached()
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

// TestAwaitBehindOneThatIsHeld waits longer while another answer is on its way, and not while that one waits for others itself.
func TestAwaitBehindOneThatIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		again := recordSteps(t)
		for _, tt := range []struct {
			held        bool
			least, most time.Duration
		}{{false, busyMost, busyMost + quietMost}, {true, quietLeast, 2 * quietMost}} {
			_, g := again()
			_, held, err := g.Await(t.Context(), 99) // none of its: nothing comes before it
			if err != nil {
				t.Fatal(err)
			}
			if tt.held {
				held(true)
			}
			began := time.Now()
			if _, _, err := g.Await(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took < tt.least || took > tt.most {
				t.Errorf("held %v: waited %v", tt.held, took)
			}
		}
	})
}

// TestAwaitBesideOneThatIsHeld: an answer does not wait for one that is held up, of a process that gets what it asked for at once in the order of its
// ends: that one may wait for this one. It waits for one that is not.
func TestAwaitBesideOneThatIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		again := recordSteps(t)
		for _, tt := range []struct {
			atOnce, held bool
			took         time.Duration // at least; 0 for not at all
		}{{false, true, quietAnswer}, {true, false, quietAnswer}, {true, true, 0}} {
			clock, g := again()
			g.AtOnce = tt.atOnce
			clock.Answered(1)
			for range 3 {
				g.Now(0)
			}
			_, held, err := g.Await(t.Context(), 2)
			if err != nil {
				t.Fatal(err)
			}
			held(tt.held)
			began := time.Now()
			if _, _, err := g.Await(t.Context(), 3); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took < tt.took || tt.took == 0 && took > 0 {
				t.Errorf("%+v: waited %v", tt, took)
			}
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

// TestAwaitWakes: what comes while it is looked what is missing wakes who looks.
func TestAwaitWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, places := new(Heard), new(Places)
		s := log.Stream(nil, places)
		const answers = 8
		for arrival := range uint64(answers) {
			log.Answered(arrival + 1)
		}
		s.Now(0)
		times, _ := s.Times()
		began := time.Now()
		for range 30000 {
			clock := NewClock(began)
			g, _, err := clock.Given(times)
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				for arrival := range uint64(answers - 1) {
					clock.Answered(arrival + 1)
				}
			}()
			if _, _, err := g.Await(t.Context(), answers); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("waited for %v", took)
		}
	})
}

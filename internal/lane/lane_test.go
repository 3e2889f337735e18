package lane_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/internal/lane"
)

// A handClock stands still until it is moved. Its timers fire then.
type handClock struct {
	mu     sync.Mutex
	now    time.Time
	timers map[chan time.Time]time.Time
	asked  chan time.Duration // every timer that is made
}

func newHandClock() *handClock {
	return &handClock{now: time.Unix(1e9, 0), timers: make(map[chan time.Time]time.Time), asked: make(chan time.Duration, 100)}
}

func (c *handClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *handClock) Timer(d time.Duration) (<-chan time.Time, func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ch := make(chan time.Time, 1)
	c.timers[ch] = c.now.Add(d)
	c.asked <- d
	return ch, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.timers, ch)
	}
}

func (c *handClock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	for ch, at := range c.timers {
		if !at.After(c.now) {
			ch <- c.now
			delete(c.timers, ch)
		}
	}
}

// lines reads a scene: "> key" and "< text" at the given second, "<n text" belongs to the line n, "* key" is a line of the program that
// nothing waits for.
func scene(lines ...string) (out []lane.Line[string]) {
	for i, l := range lines {
		what, text := l[:1], l[1:]
		line := lane.Line[string]{Place: uint64(i + 1), MS: int64(1000 * i), Counts: what == ">"}
		if what == "<" {
			line.From = lane.Far
			var owner int
			if n, err := fmt.Sscanf(text, "%d", &owner); n == 1 && err == nil {
				line.Owners = []int{owner}
			}
		}
		line.Value = text[slices.Index([]byte(text), ' ')+1:]
		out = append(out, line)
	}
	return out
}

// A table plays a scene to a test.
type table struct {
	*lane.Player[string, string]
	t     *testing.T
	clock *handClock
}

func play(t *testing.T, o lane.PlayerOptions[string, string], lines ...string) *table {
	c := newHandClock()
	o.Clock, o.Slack, o.Key = c, 2*time.Second, func(v string) string { return v }
	return &table{lane.NewPlayer(scene(lines...), &o), t, c}
}

// says has the program say something that the scene holds.
func (p *table) says(key string) {
	p.t.Helper()
	i, ok := p.Find(key, 0, nil)
	if !ok {
		p.t.Fatalf("%q is not in the scene", key)
	}
	p.Came(i)
}

// hears expects what is due by now, in order; a limit that is reached moves the clock by want.
func (p *table) hears(want ...string) {
	p.t.Helper()
	for _, w := range want {
		if got := p.next(nil); got != w {
			p.t.Fatalf("heard %q, want %q", got, w)
		}
	}
	ctx, cancel := context.WithCancel(p.t.Context())
	cancel()
	if d, err := p.Next(ctx); err == nil {
		p.t.Fatalf("heard %q, want nothing", d.Value)
	}
	for len(p.clock.asked) > 0 {
		<-p.clock.asked
	}
}

// next is what is said next; held is told of each limit that is reached for it.
func (p *table) next(held func(time.Duration)) string {
	p.t.Helper()
	done := make(chan struct{})
	var due lane.Due[string]
	var err error
	go func() {
		defer close(done)
		due, err = p.Next(p.t.Context())
	}()
	for {
		select {
		case d := <-p.clock.asked:
			if held == nil {
				p.t.Errorf("held for %v", d)
				held = func(time.Duration) {}
			}
			held(d)
			p.clock.move(d)
		case <-done:
			if err != nil {
				return err.Error()
			}
			return due.Value
		}
	}
}

func TestLineIsDueAtItsPlace(t *testing.T) {
	t.Parallel()
	p := play(t, lane.PlayerOptions[string, string]{}, "> a", "> b", "<1 B", "< note", "<0 A")
	p.hears()
	p.says("b")
	p.hears()
	p.says("a")
	p.hears("B", "note", "A")
}

func TestNobodyAskedForIt(t *testing.T) {
	t.Parallel()
	p := play(t, lane.PlayerOptions[string, string]{}, "> a", "<0 A", "> b", "<2 B")
	p.says("a")
	p.hears("A")
	p.Ended()
	if _, err := p.Next(t.Context()); !errors.Is(err, lane.ErrEnd) {
		t.Errorf("after the end: %v", err)
	}
	var missing []string
	for _, v := range p.Missing {
		missing = append(missing, v)
	}
	if !slices.Equal(missing, []string{"b"}) {
		t.Errorf("missing is %q", missing)
	}
}

// What does not come holds the others up once, for as long as it took then and two seconds, and is answered when it comes late.
func TestHeldUpOnce(t *testing.T) {
	t.Parallel()
	p := play(t, lane.PlayerOptions[string, string]{}, "> a", "> b", "> c", "<0 A", "<1 B", "<2 C")
	p.says("a")
	var held []time.Duration
	if got := p.next(func(d time.Duration) { held = append(held, d) }); got != "A" {
		t.Errorf("heard %q", got)
	}
	if !slices.Equal(held, []time.Duration{3 * time.Second}) { // one that it took then
		t.Errorf("held for %v", held)
	}
	p.says("c")
	p.hears("C")
	p.says("b")
	p.hears("B")
}

// What the program has asked for is still said when it has ended; what nobody asked for is not.
func TestEndedProgram(t *testing.T) {
	t.Parallel()
	p := play(t, lane.PlayerOptions[string, string]{}, "> a", "> b", "< note", "<0 A")
	p.says("a")
	p.Ended()
	if a, end := p.next(nil), p.next(nil); a != "A" || end != lane.ErrEnd.Error() {
		t.Errorf("heard %q and %q", a, end)
	}
}

func TestFarSideEnds(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		o    lane.PlayerOptions[string, string]
		held time.Duration
	}{
		"at once":           {lane.PlayerOptions[string, string]{Ends: true}, 2 * time.Second},
		"after a while":     {lane.PlayerOptions[string, string]{Ends: true, Linger: func(int64, bool) time.Duration { return time.Hour }}, 2 * time.Second},
		"not before it did": {lane.PlayerOptions[string, string]{Ends: true, EndWaits: true}, 0},
	} {
		p := play(t, tt.o, "> a", "> b")
		p.says("a")
		if tt.held == 0 {
			p.hears()
			p.says("b")
		}
		var held time.Duration
		if got := p.next(func(d time.Duration) { held = max(held, d) }); got != lane.ErrEnd.Error() {
			t.Errorf("%s: heard %q", name, got)
		}
		if held < tt.held {
			t.Errorf("%s: held for %v", name, held)
		}
	}
}

// A batch goes out when the first of its requests has come, without what belongs to the others.
func TestBatch(t *testing.T) {
	t.Parallel()
	lines := scene("> a", "> b", "<0 AB")
	lines[2].Owners = []int{0, 1}
	lines[1].Counts = false
	p := lane.NewPlayer(lines, &lane.PlayerOptions[string, string]{Key: func(v string) string { return v }})
	for i := range 2 {
		p.Came(i)
		if due, err := p.Next(t.Context()); err != nil || !slices.Equal(due.For, []int{i}) {
			t.Errorf("for %v: %v", due.For, err)
		}
	}
}

func TestEqualLines(t *testing.T) {
	t.Parallel()
	p := play(t, lane.PlayerOptions[string, string]{}, "> x", "> y", "> x", "> x")
	find := func(best, alike int) int {
		i, ok := p.Find("x", best, func(string) int { return alike })
		if !ok {
			return -1
		}
		p.Came(i)
		return i
	}
	if a, b, c, d := find(1, 1), find(1, 0), find(0, 0), find(0, 0); a != 0 || b != 2 || c != 3 || d != -1 {
		t.Errorf("found %d %d %d %d", a, b, c, d)
	}
	p = play(t, lane.PlayerOptions[string, string]{}, "> x", "> x", "> x")
	seen := 0
	i, _ := p.Find("x", 2, func(string) int { seen++; return seen % 3 })
	if i != 1 || seen != 2 {
		t.Errorf("the most alike is %d after %d", i, seen)
	}
}

// Take uses a line up, and passes by those that are none.
func TestTake(t *testing.T) {
	t.Parallel()
	p := play(t, lane.PlayerOptions[string, string]{}, "> x", "> y", "> x")
	n := -2
	if v, ok := p.Take("x", 1, func(string) int { n++; return n }); v != "x" || !ok || p.HasCome(0) || !p.HasCome(2) {
		t.Errorf("took %q, %v", v, ok)
	}
	if _, ok := p.Take("x", 1, func(string) int { return -1 }); ok {
		t.Error("took what is none")
	}
	if _, ok := p.Take("x", 0, nil); !ok {
		t.Error("the first is not there any more")
	}
	if _, ok := p.Take("x", 0, nil); ok {
		t.Error("took one twice")
	}
}

// What somebody else has said is said no more, and holds nobody up.
func TestSaidByOthers(t *testing.T) {
	t.Parallel()
	p := play(t, lane.PlayerOptions[string, string]{}, "> a", "<0 A", "<0 more")
	p.says("a")
	p.Said(1)
	p.hears("more")
}

func TestSpeed(t *testing.T) {
	t.Parallel()
	p := play(t, lane.PlayerOptions[string, string]{Speed: 2}, "> a", "< one", "<0 A")
	p.says("a")
	for i, want := range []string{"one", "A"} {
		var held []time.Duration
		if got := p.next(func(d time.Duration) { held = append(held, d) }); got != want || !slices.Equal(held, []time.Duration{time.Second / 2}) {
			t.Errorf("line %d is %q after %v", i, got, held)
		}
	}
}

// Other lines may take the place of those that nothing has happened to.
func TestReplace(t *testing.T) {
	t.Parallel()
	p := play(t, lane.PlayerOptions[string, string]{}, "> a", "<0 A", "> b", "<2 B")
	p.says("a")
	p.hears("A")
	p.Replace(scene("> a", "<0 A", "> c", "< note", "<2 C"), 2)
	p.says("c")
	p.hears("note", "C")
}

// Lines of other streams hold one up while those are open.
func TestStreams(t *testing.T) {
	t.Parallel()
	lines := scene("< one", "< two", "< one", "< two")
	for i := range lines {
		lines[i].Stream = uint64(i % 2)
	}
	c := newHandClock()
	o := lane.NewOrder(lines, time.Second, c)
	o.Open(0, 1)
	done := make(chan error)
	go func() { done <- o.Await(t.Context(), 3, 1, 3000) }()
	if d := <-c.asked; d != time.Second {
		t.Errorf("held for %v", d)
	}
	o.Passed(2) // and so is the first of its stream
	if err := <-done; err != nil {
		t.Error(err)
	}
	o.Close(1)
	if err := o.Await(t.Context(), 3, 0, 0); err != nil {
		t.Error(err)
	}
}

func TestNearest(t *testing.T) {
	t.Parallel()
	diff := func(n int) ([]fidelity.Change, bool) { return make([]fidelity.Change, max(n, 0)), n >= 0 }
	if n, _, ok := lane.Nearest([]int{-1, 5, 2, 3, 2}, diff); n != 2 || !ok {
		t.Errorf("the nearest is %d, %v", n, ok)
	}
	if _, _, ok := lane.Nearest([]int{-1}, diff); ok {
		t.Error("what cannot be compared is near")
	}
	change := fidelity.Change{Path: "a.b", Op: fidelity.Changed, Was: "1", Now: "2"}
	if got := lane.Differences([]fidelity.Change{change, change, change, change}, ""); got != "differs in a.b: 1 -> 2; a.b: 1 -> 2; a.b: 1 -> 2; and 1 more" {
		t.Errorf("%q", got)
	}
}

// Rest waits for what is due, and no longer than its limit.
func TestRest(t *testing.T) {
	t.Parallel()
	p := play(t, lane.PlayerOptions[string, string]{}, "> a", "<0 A")
	p.hears()
	p.Rest(time.Hour) // nothing is due
	p.says("a")
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.Rest(time.Minute)
	}()
	d := <-p.clock.asked
	p.clock.move(d)
	<-done
	if d != time.Minute {
		t.Errorf("rested for %v", d)
	}
}

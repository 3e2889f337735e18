package exchange_test

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// turn is a recorded call of a model: of which conversation, what was asked, and when, in ms since the run began.
type turn struct {
	lane         string
	begun, ended int64
	process      uint64 // that ended meanwhile; 0 for none
}

// at is an ordinal of what happens so many ms after a run began.
func at(ms int64) uint64 { return uint64(100 * ms) }

// conversations is a book of turns, which stand as they ended, and the key of each.
func conversations(t testing.TB, turns ...turn) (*exchange.Book, []exchange.Key) {
	t.Helper()
	return conversationsOpened(t, nil, turns...)
}

// conversationsOpened is conversations of which some opened their connections at another time than that at which their request came.
func conversationsOpened(t testing.TB, opened map[int]int64, turns ...turn) (*exchange.Book, []exchange.Key) {
	t.Helper()
	keys := make([]exchange.Key, len(turns))
	b, err := exchange.NewBook(func(yield func(*tape.Record, error) bool) {
		for i, x := range turns {
			come, ok := opened[i]
			if !ok {
				come = x.begun
			}
			k := &tape.LLMCall{Provider: "test", Endpoint: "messages", Model: "m", Exchange: tape.Exchange{
				Method: "POST", URL: "https://h/a", Lane: x.lane, Arrival: uint64(i + 1), Status: 200, RequestDigest: cas.Sum([]byte{byte(i)}),
				Response: inline("0123"), Stream: []tape.Chunk{{TMS: x.ended - x.begun, Length: 4, G: at(x.ended)}},
			}, Extra: slices.Concat(tape.NumberField(tape.PlaceKey, at(come)+1), tape.NumberField(tape.OpenerKey, 1))}
			var kind tape.Kind = k
			if strings.HasPrefix(x.lane, "http:") {
				h := &tape.HTTPExchange{Exchange: k.Exchange, Extra: k.Extra}
				h.Method, h.URL = "GET", fmt.Sprintf("https://h/things?n=%d", i)
				kind, keys[i] = h, exchange.KeyOf(h, classifier{})
			} else {
				keys[i] = exchange.KeyOf(k, classifier{})
			}
			if x.process != 0 { // which ended a moment before
				p := &tape.ProcessSpawn{SpawnID: x.process, ParentSpawnID: 1, DurationMS: 2500, Extra: tape.NumberField(tape.PlaceKey, at(x.ended-2550))}
				yield(&tape.Record{Seq: uint64(i), G: at(x.ended - 50), MonotonicMS: x.ended - 50, Kind: p}, nil)
			}
			yield(&tape.Record{Seq: uint64(i), G: at(x.ended) + uint64(i) + 1, MonotonicMS: x.ended, VirtualTimeMS: morning + x.ended, Kind: kind}, nil)
		}
	}, classifier{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	b.KeepOrder()
	return b, keys
}

// TestKeepOrder: the answer of a conversation ends after that which ended before it, of a conversation beside it.
func TestKeepOrder(t *testing.T) {
	two := []turn{{"llm:a", 100, 500, 0}, {"llm:b", 100, 600, 0}}
	tool := []turn{{"llm:a", 100, 200, 0}, {"llm:a", 5200, 5300, 0}, {"llm:b", 100, 5400, 0}} // 5 s pass between a's turns
	after := []turn{{"llm:a", 100, 200, 0}, {"llm:b", 300, 400, 0}}
	// a goes on 700 ms after its first answer, b after 550 or 900: before a does, if its answer came at once.
	soon := []turn{{"llm:a", 100, 200, 0}, {"llm:b", 100, 400, 0}, {"llm:a", 900, 1000, 0}, {"llm:b", 950, 1050, 0}}
	late := []turn{{"llm:a", 100, 200, 0}, {"llm:b", 100, 400, 0}, {"llm:a", 900, 1000, 0}, {"llm:b", 1300, 1400, 0}}
	many := []turn{{"llm:a", 100, 500, 0}, {"llm:b", 100, 600, 0}}
	for i := range 63 { // more than keep the order
		many = append(many, turn{fmt.Sprintf("llm:c%d", i), 100, 600, 0})
	}
	for _, tt := range []struct {
		name  string
		turns []turn
		asked []time.Duration // when the replay asks for each; below 0 never
		want  []time.Duration // when it has the answer
		lost  int
	}{
		{"as it was", two, []time.Duration{0, 0}, []time.Duration{0, 100 * ms}, 0},
		{"the second comes first", two, []time.Duration{700 * ms, 0}, []time.Duration{700 * ms, 800 * ms}, 0},
		{"the first never comes", two, []time.Duration{-1, 0}, []time.Duration{-1, 2000 * ms}, 1},
		{"the first has a tool run", tool, []time.Duration{0, 5000 * ms, 0}, []time.Duration{0, 5000 * ms, 5100 * ms}, 0},
		{"the first has a tool run for ever", tool, []time.Duration{0, -1, 0}, []time.Duration{0, -1, 7000 * ms}, 1},
		{"one after the other", after, []time.Duration{700 * ms, 0}, []time.Duration{700 * ms, 0}, 0},
		{"both take their time, the second less", soon, []time.Duration{0, 0, 700 * ms, 750 * ms}, []time.Duration{0, 200 * ms, 750 * ms, 800 * ms}, 0},
		{"both take their time, the second more", late, []time.Duration{0, 0, 700 * ms, 1000 * ms}, []time.Duration{0, 100 * ms, 700 * ms, 1000 * ms}, 0},
		{"many at once", many, []time.Duration{700 * ms, 0}, []time.Duration{700 * ms, 0}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, keys := conversations(t, tt.turns...)
				got := make([]time.Duration, len(tt.asked))
				var answered sync.WaitGroup
				for i, at := range tt.asked {
					got[i] = -1
					if at < 0 {
						continue
					}
					answered.Go(func() {
						time.Sleep(at)
						_, end, err := give(t.Context(), t, b, keys[i])
						if got[i] = at + end; err != nil {
							t.Error(err)
						}
					})
				}
				answered.Wait()
				for i, want := range tt.want {
					if got[i] != want {
						t.Errorf("answer %d came at %v, want %v", i, got[i], want)
					}
				}
				if lost := b.Order().Lost(); len(lost) != tt.lost {
					t.Errorf("lost %q", lost)
				}
			})
		})
	}
}

// TestKeepOrderUnderWay: a request that comes as the answer before it has ended was under way by then where its connection was open.
func TestKeepOrderUnderWay(t *testing.T) {
	for opened, want := range map[int64]time.Duration{550: 0, 450: 800 * ms} {
		synctest.Test(t, func(t *testing.T) {
			b, keys := conversationsOpened(t, map[int]int64{1: opened}, turn{"llm:a", 100, 500, 0}, turn{"llm:b", 550, 600, 0})
			go func() {
				time.Sleep(700 * ms)
				_, _, _ = give(t.Context(), t, b, keys[0])
			}()
			if _, end, err := give(t.Context(), t, b, keys[1]); end != want || err != nil {
				t.Errorf("opened at %d ms it ended at %v, %v", opened, end, err)
			}
			synctest.Wait()
			time.Sleep(time.Second)
		})
	}
}

// TestKeepOrderEnds: a call that nothing answers is that of another program, which nothing holds up.
func TestKeepOrderEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, keys := conversations(t, turn{"llm:a", 100, 500, 0}, turn{"llm:b", 100, 600, 0})
		g := newRig(t, exchange.TapOptions{})
		o, err := g.tap.Begin(&exchange.Request{Method: "POST", URL: "https://h/a", Body: []byte(`{"model":"m","messages":[{"text":"other"}]}`)})
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := o.Take(b); ok {
			t.Fatal("answered")
		}
		if _, end, err := give(t.Context(), t, b, keys[1]); end != 0 || err != nil || len(b.Order().Lost()) != 0 {
			t.Errorf("it was held for %v: %v, lost %q", end, err, b.Order().Lost())
		}
	})
}

// TestKeepOrderOfRequests: an answer waits for the requests beside it that had come by its end.
func TestKeepOrderOfRequests(t *testing.T) {
	for _, tt := range []struct {
		second, first time.Duration // when the second is asked for, below 0 never; when the first has its answer
		lost          int
	}{{0, 0, 0}, {time.Second, time.Second, 0}, {-1, 2100 * ms, 1}} {
		synctest.Test(t, func(t *testing.T) {
			b, keys := conversations(t, turn{"llm:a", 100, 500, 0}, turn{"llm:b", 200, 600, 0})
			var answered sync.WaitGroup
			if tt.second >= 0 {
				answered.Go(func() {
					time.Sleep(tt.second)
					if _, _, err := give(t.Context(), t, b, keys[1]); err != nil {
						t.Error(err)
					}
				})
			}
			if _, end, err := give(t.Context(), t, b, keys[0]); end != tt.first || err != nil || len(b.Order().Lost()) != tt.lost {
				t.Errorf("the second came at %v: held for %v, want %v; %v, lost %q", tt.second, end, tt.first, err, b.Order().Lost())
			}
			answered.Wait()
		})
	}
}

// TestProcessEnding: a process ends once the answers that had ended before it are given, and the requests have come that had.
func TestProcessEnding(t *testing.T) {
	for name, tt := range map[string]struct {
		asked []time.Duration // when the replay asks; below 0 never
		want  time.Duration   // when the process ends
		lost  int
	}{
		"as it was":          {[]time.Duration{0, time.Second}, 1000 * ms, 0},
		"slower":             {[]time.Duration{500 * ms, 1500 * ms}, 1500 * ms, 0},
		"each is late":       {[]time.Duration{1900 * ms, 3700 * ms}, 3700 * ms, 0},
		"the second is late": {[]time.Duration{0, 5 * time.Second}, 2800 * ms, 1}, // 800 ms passed upon the first
		"neither ever comes": {[]time.Duration{-1, -1}, 2000 * ms, 1},
		"the first never is": {[]time.Duration{-1, 0}, 2000 * ms, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, keys := conversations(t, turn{"llm:a", 100, 200, 0}, turn{"llm:a", 1000, 4000, 7}) // 7 ran from 1450 to 3950
				var answered sync.WaitGroup
				for i, at := range tt.asked {
					if at < 0 {
						continue
					}
					answered.Go(func() {
						time.Sleep(at)
						if _, _, err := give(t.Context(), t, b, keys[i]); err != nil {
							t.Error(err)
						}
					})
				}
				b.Order().ProcessBegan(7)
				start := time.Now()
				if wait := b.Order().ProcessEnding(7); wait != nil {
					wait(t.Context())
				}
				if got := time.Since(start); got != tt.want || len(b.Order().Lost()) != tt.lost {
					t.Errorf("it ended after %v, want %v; lost %q", got, tt.want, b.Order().Lost())
				}
				b.Order().ProcessEnded(7)
				answered.Wait()
				if b.Order().ProcessEnding(8) != nil {
					t.Error("one that is on no tape waits")
				}
			})
		})
	}
}

// TestChildrenThatRanApart: a child that had begun when its sibling had ended, and now runs beside it, ends after it. It does not wait for one
// that does not run.
func TestChildrenThatRanApart(t *testing.T) {
	for _, begins := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			b, err := exchange.NewBook(func(yield func(*tape.Record, error) bool) {
				k := &tape.LLMCall{Exchange: tape.Exchange{Method: "POST", URL: "https://h/a", Lane: "llm:a", Arrival: 1, Status: 200, Response: inline("0123"),
					Stream: []tape.Chunk{{TMS: 100, Length: 4, G: at(200)}}}, Extra: tape.NumberField(tape.PlaceKey, at(100)+1)}
				yield(&tape.Record{Seq: 1, G: at(200) + 1, MonotonicMS: 200, Kind: k}, nil)
				for i, begun := range []int64{5000, 9000} {
					p := &tape.ProcessSpawn{SpawnID: uint64(7 + i), ParentSpawnID: 1, DurationMS: 100, Extra: tape.NumberField(tape.PlaceKey, at(begun))}
					yield(&tape.Record{Seq: uint64(2 + i), G: at(begun + 100), MonotonicMS: begun + 100, Kind: p}, nil)
				}
			}, classifier{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			b.KeepOrder()
			o, start := b.Order(), time.Now()
			if _, _, err := give(t.Context(), t, b, exchange.KeyOf(&tape.LLMCall{Exchange: tape.Exchange{Method: "POST", URL: "https://h/a"}}, classifier{})); err != nil {
				t.Fatal(err)
			}
			if begins {
				o.ProcessBegan(7)
				time.AfterFunc(time.Second, func() { o.ProcessEnded(7) })
			}
			o.ProcessBegan(8)
			if wait := o.ProcessEnding(8); (wait != nil) != begins {
				t.Errorf("its sibling begins %v: it waits %v", begins, wait != nil)
			} else if begins {
				wait(t.Context())
			}
			if took := time.Since(start); begins && took < time.Second || len(o.Lost()) > 0 {
				t.Errorf("its sibling begins %v: it ended after %v, lost %q", begins, took, o.Lost())
			}
			o.ProcessEnded(8)
		})
	}
}

// TestProcessesEndInOrder: a process ends after another of its parent that had ended while it ran.
func TestProcessesEndInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, keys := conversations(t, turn{"llm:a", 100, 3000, 7}, turn{"llm:a", 3010, 3200, 8}) // 7 ran from 450 to 2950, 8 from 650 to 3150
		b.Order().ProcessBegan(7)
		b.Order().ProcessBegan(8)
		go func() {
			time.Sleep(time.Second)
			b.Order().ProcessEnded(7)
		}()
		go func() { _, _, _ = give(t.Context(), t, b, keys[0]) }()
		go func() { time.Sleep(time.Second); _, _, _ = give(t.Context(), t, b, keys[1]) }()
		start := time.Now()
		wait := b.Order().ProcessEnding(8)
		if wait == nil {
			t.Fatal("it does not wait")
		}
		wait(t.Context())
		if got := time.Since(start); got < time.Second || len(b.Order().Lost()) > 0 {
			t.Errorf("it ended after %v, lost %q", got, b.Order().Lost())
		}
		b.Order().ProcessEnded(8)
	})
}

// TestChildrenOfThreads: children of one process end in order, whichever of its threads, which have ended by then, had started them; those of
// two processes do not wait for each other. No model need be asked.
func TestChildrenOfThreads(t *testing.T) {
	for _, forked := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			b, err := exchange.NewBook(func(yield func(*tape.Record, error) bool) {
				spawn := func(id, parent uint64, begun, ended int64, extra []tape.Field) {
					p := &tape.ProcessSpawn{SpawnID: id, ParentSpawnID: parent, DurationMS: ended - begun, Extra: append(extra, tape.NumberField(tape.PlaceKey, at(begun))...)}
					yield(&tape.Record{Seq: id, G: at(ended), MonotonicMS: ended, Kind: p}, nil)
				}
				spawn(4, 2, 100, 500, nil)
				spawn(5, 3, 150, 600, nil)
				spawn(2, 1, 50, 700, tape.FlagFields(map[string]bool{tape.ForkedKey: forked}))
				spawn(3, 1, 50, 800, tape.FlagFields(map[string]bool{tape.ForkedKey: forked}))
			}, classifier{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			b.KeepOrder()
			o := b.Order()
			o.ProcessBegan(4)
			o.ProcessBegan(5)
			if wait := o.ProcessEnding(5); (wait != nil) != forked {
				t.Errorf("of threads %v: it waits %v", forked, wait != nil)
			}
			o.ProcessEnded(4)
			if o.ProcessEnding(5) != nil {
				t.Error("it waits for who has ended")
			}
		})
	}
}

// TestProcessEndingOfPollers: a program that polls until a process ends, which waits in vain, does not hold that up for ever.
func TestProcessEndingOfPollers(t *testing.T) {
	const polls = 100
	turns := []turn{{"llm:a", 100, 200, 0}, {"llm:a", 1000, 4000, 7}} // 7 ran from 1450 to 3950
	recorded := slices.Clone(turns)
	for i := range int64(polls) {
		recorded = append(recorded, turn{"llm:a", 5000 + 10*i, 5005 + 10*i, uint64(100 + i)})
	}
	for name, tt := range map[string]struct {
		turns []turn
		first uint64 // of the processes that poll, one a second
		want  time.Duration
	}{
		"nothing polls":       {turns, 0, 2 * time.Second},
		"none recorded":       {turns, 1000, 2 * time.Second},
		"one again and again": {turns, 7, 2 * time.Second},
		"recorded ones":       {recorded, 100, 32500 * ms}, // what it took then, and 30 s
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, _ := conversations(t, tt.turns...)
				b.Order().ProcessBegan(7)
				wait := b.Order().ProcessEnding(7)
				if wait == nil {
					t.Fatal("it does not wait")
				}
				start := time.Now()
				var polling sync.WaitGroup
				defer polling.Wait()
				polling.Go(func() {
					for i := uint64(0); tt.first > 0 && i < polls; i++ {
						id := tt.first + i
						if tt.first == 7 {
							id = 7
						}
						b.Order().ProcessBegan(id)
						time.Sleep(500 * ms)
						if id != 7 {
							b.Order().ProcessEnded(id)
						}
						time.Sleep(500 * ms)
					}
				})
				wait(t.Context())
				if got := time.Since(start); got != tt.want || len(b.Order().Lost()) != 1 {
					t.Errorf("it ended after %v, want %v; lost %q", got, tt.want, b.Order().Lost())
				}
			})
		})
	}
}

// TestKeepOrderOfProcesses: an answer during which a process ended waits for that.
func TestKeepOrderOfProcesses(t *testing.T) {
	for name, tt := range map[string]struct {
		begins bool
		ends   time.Duration // 0 for never
		want   time.Duration
		lost   int
	}{
		"it ends":      {true, time.Second, 1100 * ms, 0},
		"it goes on":   {true, 0, 4500 * ms, 1},
		"it never ran": {false, 0, 2350 * ms, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, keys := conversations(t, turn{"llm:a", 100, 3000, 7})
				if tt.begins {
					b.Order().ProcessBegan(7)
				}
				if tt.ends > 0 {
					go func() {
						time.Sleep(tt.ends)
						b.Order().ProcessEnded(7)
					}()
				}
				if _, end, err := give(t.Context(), t, b, keys[0]); end != tt.want || err != nil || len(b.Order().Lost()) != tt.lost {
					t.Errorf("held for %v, want %v; %v, lost %q", end, tt.want, err, b.Order().Lost())
				}
			})
		})
	}
}

// TestKeepOrderBeside: a process that goes on, and ended before the next call, is about to end by the end of the answer where that was soon,
// and else has the time that it had.
func TestKeepOrderBeside(t *testing.T) {
	for name, tt := range map[string]struct {
		ended  int64         // when the answer had, of a process that ran from 1500 to 4000
		begins bool          // it runs again
		near   time.Duration // when it comes near its end; 0 for never
		want   time.Duration
		lost   int
	}{
		"soon":           {3900, true, time.Second, time.Second, 0},
		"soon, not then": {3900, true, 0, 2600 * ms, 0},
		"later":          {2000, true, 0, 500 * ms, 0},
		"it never runs":  {2000, false, 0, 3400 * ms, 1}, // as long as until it began, and two seconds
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, keys := conversations(t, turn{"llm:a", 100, tt.ended, 0}, turn{"llm:a", 4010, 4050, 7})
				if tt.begins {
					b.Order().ProcessBegan(7)
				}
				if tt.near > 0 {
					go func() {
						time.Sleep(tt.near)
						if b.Order().ProcessEnding(7) == nil {
							t.Error("it does not wait for the answer")
						}
					}()
				}
				if _, end, err := give(t.Context(), t, b, keys[0]); end != tt.want || err != nil || len(b.Order().Lost()) != tt.lost {
					t.Errorf("held for %v, want %v; %v, lost %q", end, tt.want, err, b.Order().Lost())
				}
			})
		})
	}
}

// TestAskedForAtOnce: what a program whose timers are its own asked for at once ends in the recorded order, a model's answer among it too. What came
// later, or never, is not waited for; what comes upon an answer that waits itself is.
func TestAskedForAtOnce(t *testing.T) {
	fan := []turn{{"http:h", 100, 300, 0}, {"http:h", 101, 310, 0}, {"http:h", 99, 320, 0}, {"http:h", 102, 330, 0}, {"http:h", 98, 340, 0}}
	var beats []turn
	for i := range int64(4) {
		beats = append(beats, turn{"http:h", 150 + 200*i, 190 + 200*i, 0}, turn{"llm:a", 100 + 200*i, 200 + 200*i, 0})
	}
	for name, tt := range map[string]struct {
		turns []turn
		asked []time.Duration // below 0 never
		want  []time.Duration
	}{
		"as they ended":              {fan, []time.Duration{40 * ms, 30 * ms, 20 * ms, 10 * ms, 0}, []time.Duration{40 * ms, 40 * ms, 40 * ms, 40 * ms, 40 * ms}},
		"a model before it":          {[]turn{{"llm:a", 101, 300, 0}, {"http:h", 100, 310, 0}}, []time.Duration{40 * ms, 0}, []time.Duration{40 * ms, 40 * ms}},
		"a model behind it":          {[]turn{{"http:h", 101, 300, 0}, {"llm:a", 100, 310, 0}}, []time.Duration{40 * ms, 0}, []time.Duration{40 * ms, 40 * ms}},
		"one that never comes":       {fan[:3], []time.Duration{-1, 0, time.Second}, []time.Duration{-1, 100 * ms, time.Second}},
		"one that a timer asked for": {[]turn{{"http:h", 1000, 1100, 0}, {"http:h", 100, 1200, 0}}, []time.Duration{900 * ms, 0}, []time.Duration{900 * ms, 100 * ms}},
		"one upon another":           {[]turn{{"http:h", 100, 200, 0}, {"http:h", 201, 300, 0}, {"http:h", 100, 310, 0}}, []time.Duration{40 * ms, 80 * ms, 0}, []time.Duration{40 * ms, 80 * ms, 80 * ms}},
		"a timer's, time and again":  {beats, []time.Duration{-1, 0, -1, 200 * ms, -1, 400 * ms, -1, 600 * ms}, []time.Duration{-1, 100 * ms, -1, 300 * ms, -1, 500 * ms, -1, 600 * ms}},
		"one after another":          {[]turn{{"http:h", 100, 200, 0}, {"http:h", 201, 300, 0}}, []time.Duration{50 * ms, 0}, []time.Duration{50 * ms, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, keys := conversations(t, tt.turns...)
				got := make([]time.Duration, len(keys))
				var answered sync.WaitGroup
				for i, at := range tt.asked {
					if got[i] = at; at < 0 {
						continue
					}
					answered.Go(func() {
						time.Sleep(at)
						_, end, err := give(t.Context(), t, b, keys[i])
						if got[i] += end; err != nil {
							t.Error(err)
						}
					})
				}
				answered.Wait()
				if lost := b.Order().Lost(); !slices.Equal(got, tt.want) || len(lost) != 0 {
					t.Errorf("answers came at %v, want %v; lost %q", got, tt.want, lost)
				}
			})
		})
	}
}

// TestWakings: a thread wakes after the answer that its process had got before, and an answer comes after the thread that had woken, if that does so soon.
// Nothing else holds a thread up. One that stays away three times is waited for no more, nor one that is some sleeps behind.
func TestWakings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		records := func(yield func(*tape.Record, error) bool) {
			thread := &tape.ProcessSpawn{SpawnID: 5, ParentSpawnID: 1, Extra: tape.FlagFields(map[string]bool{tape.ForkedKey: true})}
			var woke []uint64
			for i := range int64(9) { // it wakes once while each answer comes, and once upon it
				k := &tape.LLMCall{Exchange: tape.Exchange{Method: "POST", URL: fmt.Sprintf("https://h/%d", i), Lane: "llm:a", Arrival: uint64(i + 1), Status: 200, Response: inline("0123"),
					Stream: []tape.Chunk{{TMS: 500, Length: 4, G: at(600 + 1000*i)}}}, Extra: slices.Concat(tape.NumberField(tape.PlaceKey, at(100+1000*i)), tape.NumberField(tape.OpenerKey, 1))}
				yield(&tape.Record{Seq: uint64(i), G: at(600+1000*i) + 1, MonotonicMS: 600 + 1000*i, Kind: k}, nil)
				woke = append(woke, at(300+1000*i), at(800+1000*i))
			}
			b, _ := json.Marshal(woke)
			thread.Extra = append(thread.Extra, tape.Field{Name: tape.WokeKey, Value: b})
			yield(&tape.Record{Seq: 20, G: at(10000), MonotonicMS: 10000, Kind: thread}, nil)
		}
		b, err := exchange.NewBook(records, classifier{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		b.KeepOrder()
		o, start := b.Order(), time.Now()
		wakes := func(n int, want time.Duration) {
			begun := time.Now()
			if o.Wakes(t.Context(), 5, n); time.Since(begun) != want {
				t.Errorf("waking %d is held for %v, want %v", n, time.Since(begun), want)
			}
			o.Woken(5, n)
		}
		answer := func(i int, want time.Duration) {
			key := exchange.KeyOf(&tape.LLMCall{Exchange: tape.Exchange{Method: "POST", URL: fmt.Sprintf("https://h/%d", i)}}, classifier{})
			if _, end, err := give(t.Context(), t, b, key); end != want || err != nil {
				t.Errorf("answer %d is held for %v, want %v; %v", i, end, want, err)
			}
		}
		go func() { time.Sleep(200 * ms); wakes(1, 0) }()
		answer(0, 200*ms)
		wakes(2, 0)
		go func() { time.Sleep(300 * ms); wakes(3, 0); wakes(4, 100*ms) }()
		time.Sleep(400 * ms)
		answer(1, 0)
		synctest.Wait()
		for i := range 3 {
			answer(2+i, []time.Duration{500 * ms, 500 * ms, 0}[i]) // the last waits for the ninth waking, and the sixth has not come
		}
		for n := 5; n <= 10; n++ {
			wakes(n, 0)
		}
		answer(6, 500*ms)
		wakes(11, 0)
		wakes(12, 0)
		answer(7, 0) // it has stayed away three times
		wakes(18, 2*time.Second)
		if len(o.Lost()) > 0 || time.Since(start) > 5*time.Second {
			t.Errorf("after %v: lost %q", time.Since(start), o.Lost())
		}
	})
}

// TestOneAfterAnother: who asks for one thing after another, in a conversation of its own each, gets each at once.
func TestOneAfterAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, keys := conversations(t, turn{"llm:a", 100, 200, 0}, turn{"llm:b", 201, 301, 0}, turn{"llm:c", 302, 402, 0})
		for i, key := range keys {
			if _, end, err := give(t.Context(), t, b, key); end != 0 || err != nil {
				t.Errorf("answer %d is held for %v; %v", i, end, err)
			}
		}
	})
}

// TestReached: a run is in a turn until the next one's question comes, whatever is held up beside it.
func TestReached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, keys := conversations(t, turn{"llm:a", 100, 500, 0}, turn{"llm:b", 100, 510, 0}, turn{"llm:a", 900, 1000, 0})
		order := b.Order()
		for i, want := range []uint64{at(100) + 1, at(100) + 1, at(900) + 1} {
			if got := order.Reached(); got != want {
				t.Errorf("before question %d: %d, want %d", i, got, want)
			}
			if _, ok := b.Take(keys[i]); !ok {
				t.Fatal("nothing is left")
			}
		}
		if got := order.Reached(); got != math.MaxUint64 {
			t.Errorf("in the last turn: %d", got)
		}
	})
}

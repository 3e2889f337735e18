package exchange_test

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// span is a recorded exchange: when it ended, and when each of its chunks came after its request, all in ms.
type span struct {
	ended int64
	tms   []int64
	err   string
}

// together is a book of exchanges of one key, whose records stand as they ended.
func together(t testing.TB, spans ...span) (*exchange.Book, exchange.Key) {
	t.Helper()
	return bookOf(t, func(*tape.Record) {}, spans...)
}

// bookOf is together with each record changed.
func bookOf(t testing.TB, change func(*tape.Record), spans ...span) (*exchange.Book, exchange.Key) {
	t.Helper()
	g := ordinals(spans)
	b, err := exchange.NewBook(func(yield func(*tape.Record, error) bool) {
		for i, s := range spans {
			k := post(uint64(i+1), "https://h/a", "x")
			k.Error, k.Response = s.err, inline("0123456789"[:len(s.tms)])
			for j, ms := range s.tms {
				k.Stream = append(k.Stream, tape.Chunk{TMS: ms, Offset: int64(j), Length: 1})
			}
			seq := uint64(0)
			for j, other := range spans {
				if other.ended < s.ended || other.ended == s.ended && j < i {
					seq++
				}
			}
			k.Extra = tape.NumberField(tape.PlaceKey, g[moment{i, 0}])
			for j := range k.Stream {
				k.Stream[j].G = g[moment{i, j + 1}]
			}
			r := &tape.Record{Seq: seq, G: g[moment{i, len(s.tms) + 1}], MonotonicMS: s.ended, VirtualTimeMS: morning + s.ended, Kind: k}
			change(r)
			yield(r, nil)
		}
	}, classifier{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	id, _ := identify(t, "https://h/a", "x")
	return b, id.Key
}

// A moment of an exchange is its begin, each of its chunks and its end, in order.
type moment struct{ exchange, n int }

// ordinals are those that a recorder gives to the moments of exchanges; of those in one ms in the order of the exchanges.
func ordinals(spans []span) map[moment]uint64 {
	var all []moment
	at := make(map[moment]int64)
	for i, s := range spans {
		begun := s.ended - s.tms[len(s.tms)-1]
		for j, ms := range slices.Concat([]int64{0}, s.tms, s.tms[len(s.tms)-1:]) {
			m := moment{i, j}
			all, at[m] = append(all, m), begun+ms
		}
	}
	slices.SortStableFunc(all, func(x, y moment) int { return cmp.Compare(at[x], at[y]) })
	g := make(map[moment]uint64)
	for i, m := range all {
		g[m] = uint64(i + 1)
	}
	return g
}

// bare takes the ordinals out of a record.
func bare(r *tape.Record) {
	r.G = 0
	for i := range tape.ExchangeOf(r.Kind).Stream {
		tape.ExchangeOf(r.Kind).Stream[i].G = 0
	}
}

// give asks for the next answer, gives it to its end, and returns when its head and its end were given, from now on.
func give(ctx context.Context, t testing.TB, b *exchange.Book, k exchange.Key) (head, end time.Duration, err error) {
	t.Helper()
	begun := time.Now()
	rec, ok := b.Take(k)
	if !ok {
		t.Fatal("nothing is left")
	}
	body, err := exchange.OpenAnswer(nil, rec.Exchange, &exchange.AnswerOptions{Of: rec})
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	if err := body.Begin(ctx); err != nil {
		return 0, 0, err
	}
	head = time.Since(begun)
	for err == nil {
		_, err = body.Next(ctx)
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return head, time.Since(begun), err
}

const ms = time.Millisecond

// morning is when runs began, in Unix epoch ms.
const morning = 1_800_000_000_000

// TestCompany replays two equal requests, the second of which comes 700 ms after the first.
func TestCompany(t *testing.T) {
	type times struct{ head, end time.Duration } // since the first request
	placed := func(*tape.Record) {}
	for _, tt := range []struct {
		name          string
		first, second span
		want          [2]times
		change        func(*tape.Record)
	}{
		{"the first waits for the second, which was there when it came", span{900, []int64{800}, ""}, span{950, []int64{300}, ""},
			[2]times{{700 * ms, 700 * ms}, {800 * ms, 800 * ms}}, placed},
		{"of a stream that had begun the end waits", span{900, []int64{100, 800}, ""}, span{950, []int64{100, 300}, ""},
			[2]times{{0, 700 * ms}, {700 * ms, 800 * ms}}, placed},
		{"the second came first", span{950, []int64{900}, ""}, span{900, []int64{100}, ""},
			[2]times{{800 * ms, 800 * ms}, {700 * ms, 700 * ms}}, placed},
		{"the second was sent when the first had ended", span{900, []int64{800}, ""}, span{1000, []int64{100}, ""},
			[2]times{{0, 0}, {700 * ms, 700 * ms}}, placed},
		{"without ordinals 3 ms before a chunk is not known to be before it", span{900, []int64{100, 800}, ""}, span{950, []int64{753}, ""},
			[2]times{{0, 700 * ms}, {800 * ms, 800 * ms}}, bare},
		{"without ordinals 4 ms before a chunk is", span{900, []int64{100, 800}, ""}, span{950, []int64{754}, ""},
			[2]times{{700 * ms, 700 * ms}, {800 * ms, 800 * ms}}, bare},
		{"one was cut", span{900, []int64{800}, ""}, span{950, []int64{300}, exchange.Reset},
			[2]times{{0, 0}, {700 * ms, 700 * ms}}, placed},
		{"a tape without ordinals and times", span{0, []int64{800}, ""}, span{0, []int64{300}, ""},
			[2]times{{0, 0}, {700 * ms, 700 * ms}}, bare},
		{"1 ms before a chunk is before it", span{900, []int64{100, 800}, ""}, span{950, []int64{751}, ""},
			[2]times{{700 * ms, 700 * ms}, {800 * ms, 800 * ms}}, placed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, key := bookOf(t, tt.change, tt.first, tt.second)
				var got [2]times
				done := make(chan struct{})
				go func() {
					defer close(done)
					got[0].head, got[0].end, _ = give(t.Context(), t, b, key)
				}()
				time.Sleep(700 * ms)
				got[1].head, got[1].end, _ = give(t.Context(), t, b, key)
				got[1].head, got[1].end = got[1].head+700*ms, got[1].end+700*ms
				<-done
				if got != tt.want {
					t.Errorf("got %v, want %v", got, tt.want)
				}
			})
		})
	}
}

// TestCompanyOfOneRun: requests keep company where one run sent them, and a tape of several runs tells by the time of day.
func TestCompanyOfOneRun(t *testing.T) {
	second := func(r *tape.Record, f func()) {
		if tape.ExchangeOf(r.Kind).Arrival == 2 {
			f()
		}
	}
	for _, tt := range []struct {
		name   string
		change func(*tape.Record)
		waits  time.Duration // the first answer, for the second request, which comes after it
	}{
		{"ordinals", func(*tape.Record) {}, 2800 * ms},
		{"ordinals, and the clock was set", func(r *tape.Record) { second(r, func() { r.VirtualTimeMS += 3_600_000 }) }, 2800 * ms},
		{"no ordinals", bare, 2800 * ms},
		{"no ordinals, and another run", func(r *tape.Record) { bare(r); second(r, func() { r.VirtualTimeMS += 900 }) }, 0},
		{"no ordinals behind a run", func(r *tape.Record) { second(r, func() { bare(r); r.VirtualTimeMS += 900 }) }, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, key := bookOf(t, tt.change, span{900, []int64{800}, ""}, span{950, []int64{300}, ""})
				if _, end, err := give(t.Context(), t, b, key); end != tt.waits || err != nil {
					t.Errorf("the first ended after %v, %v", end, err)
				}
				if _, end, err := give(t.Context(), t, b, key); end != 0 || err != nil {
					t.Errorf("the second ended after %v, %v", end, err)
				}
			})
		})
	}
}

// TestCompanyThatStaysAway: an equal request that does not come this time holds the others up once, for as long as it took
// while recording and two seconds.
func TestCompanyThatStaysAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, key := together(t, span{1000, []int64{800}, ""}, span{1800, []int64{1000}, ""}, span{2600, []int64{1000}, ""}, span{2700, []int64{1000}, ""})
		if _, end, err := give(t.Context(), t, b, key); end != 2800*ms || err != nil {
			t.Errorf("ended after %v, %v", end, err)
		}
		if _, end, err := give(t.Context(), t, b, key); end != 0 || err != nil {
			t.Errorf("the next ended after %v, %v", end, err)
		}
	})
}

// TestCompanyOfMany: of many equal requests each waits for those that were there, and none for another's end.
func TestCompanyOfMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var spans []span
		for i := range int64(20) {
			spans = append(spans, span{1000 + i, []int64{900}, ""})
		}
		b, key := together(t, spans...)
		ends := make(chan time.Duration)
		for range spans {
			go func() {
				_, end, _ := give(t.Context(), t, b, key)
				ends <- end
			}()
		}
		for range spans {
			if end := <-ends; end != 0 {
				t.Errorf("one ended after %v", end)
			}
		}
	})
}

// TestCompanyIsLeft: a program that goes away while its answer waits for others is no longer waited for.
func TestCompanyIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, key := together(t, span{900, []int64{800}, ""}, span{950, []int64{300}, ""})
		ctx, cancel := context.WithTimeout(t.Context(), 100*ms)
		defer cancel()
		if _, _, err := give(ctx, t, b, key); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if _, end, err := give(t.Context(), t, b, key); end != 100*ms || err != nil {
			t.Errorf("the other ended after %v, %v", end, err)
		}
	})
}

// TestPolls: requests that came one after the other in the same millisecond, or right behind each other, keep no company.
func TestPolls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var spans []span
		for i := range int64(50) {
			spans = append(spans, span{100 + i/3, []int64{0}, ""})
		}
		b, key := together(t, spans...)
		for range spans {
			if head, end, err := give(t.Context(), t, b, key); end != 0 || head != 0 || err != nil {
				t.Fatalf("one was given after %v, %v, %v", head, end, err)
			}
		}
	})
}

// TestCompanyOfThree: the second waits for the end of the first for as long as that waits for the third.
func TestCompanyOfThree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, key := together(t, span{6000, []int64{5900}, ""}, span{6100, []int64{5900}, ""}, span{6200, []int64{300}, ""})
		ends := make(chan time.Duration, 2)
		for range 2 {
			go func() {
				_, end, _ := give(t.Context(), t, b, key)
				ends <- end
			}()
			synctest.Wait()
		}
		time.Sleep(5 * time.Second)
		_, third, err := give(t.Context(), t, b, key)
		if first, second := <-ends, <-ends; first != 5000*ms || second != 5100*ms || third != 200*ms || err != nil {
			t.Errorf("ended after %v, %v, %v, %v", first, second, third, err)
		}
	})
}

// TestCompanyByChance: where most of many equal requests went by themselves, two that did not were not sent for one answer, and neither waits
// for the program to act on the other.
func TestCompanyByChance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var spans []span
		for i := range int64(40) {
			spans = append(spans, span{100 * (i + 1), []int64{50}, ""})
		}
		spans = append(spans, span{5000, []int64{50}, ""}, span{5005, []int64{50}, ""})
		b, key := together(t, spans...)
		for range 40 {
			if _, end, err := give(t.Context(), t, b, key); end != 0 || err != nil {
				t.Fatalf("one ended after %v, %v", end, err)
			}
		}
		ends := make(chan time.Duration, 2)
		for range 2 {
			go func() {
				_, end, _ := give(t.Context(), t, b, key)
				ends <- end
			}()
		}
		if first, second := <-ends, <-ends; first != 0 || second != 0 {
			t.Errorf("ended after %v, %v", first, second)
		}
	})
}

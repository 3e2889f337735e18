package jsonrpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func request(id int, method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params)
}

// TestAFloodIsNotRead sends far more than handlers take: no more than Concurrent run, Waiting wait, one is in the reader's hand,
// and the rest stays with the sender until there is room. Everything is answered in the end.
func TestAFloodIsNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var most, now atomic.Int64
		c, f := peer(t, &Options{
			Limits: Limits{Concurrent: 4, Waiting: 8},
			Handler: func(context.Context, *Request) (any, error) {
				most.Store(max(most.Load(), now.Add(1)))
				<-release
				now.Add(-1)
				return nil, nil
			},
		})
		const n = 100
		var sent atomic.Int64
		go func() {
			for i := range n {
				f.send(request(i, "x", "null"))
				sent.Add(1)
			}
		}()
		synctest.Wait()
		if s := c.Stats(); s.Running != 4 || s.Waiting != 8 || sent.Load() != 13 {
			t.Errorf("%+v, %d sent", s, sent.Load())
		}
		close(release)
		seen := map[string]bool{}
		for range n {
			seen[f.recv()] = true
		}
		if len(seen) != n || most.Load() > 4 {
			t.Errorf("%d answered, %d at once", len(seen), most.Load())
		}
	})
}

// TestRepliesPassAFlood fills every place with handlers that wait for a reply of the peer, and more requests before it: were they
// not refused, neither side would ever go on.
func TestRepliesPassAFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, f := peer(t, &Options{
			Limits: Limits{Concurrent: 2, Waiting: 1},
			Handler: func(ctx context.Context, r *Request) (any, error) {
				var v json.RawMessage
				err := r.Conn.Call(ctx, r.Conn.NewID(), "ask", nil, &v)
				return v, err
			},
		})
		answers := make(chan string, 100)
		go func() {
			for {
				b, _, err := f.s.Read()
				if err != nil {
					close(answers)
					return
				}
				answers <- string(b)
			}
		}()
		for i := range 10 {
			f.send(request(i, "x", "null"))
		}
		synctest.Wait()
		busy := 0
		for len(answers) > 2 {
			if a := <-answers; strings.Contains(a, `"code":-32000`) {
				busy++
			} else {
				answers <- a // a call of the peer's, to be answered below
			}
		}
		if busy != 7 {
			t.Errorf("%d refused", busy)
		}
		for i := 1; i <= 3; i++ {
			synctest.Wait()
			f.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":"cb-%d","result":1}`, i))
		}
		synctest.Wait()
		results := 0
		for len(answers) > 0 {
			if strings.Contains(<-answers, `"result":1`) {
				results++
			}
		}
		if results != 3 {
			t.Errorf("%d answered", results)
		}
	})
}

// TestTheReaderIsFreedByACall holds the reader back with a full house; then a handler calls the peer, whose reply must get through.
func TestTheReaderIsFreedByACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		call := make(chan struct{})
		_, f := peer(t, &Options{
			Limits: Limits{Concurrent: 1, Waiting: 1},
			Handler: func(ctx context.Context, r *Request) (any, error) {
				<-call
				return nil, r.Conn.Call(ctx, r.Conn.NewID(), "ask", nil, nil)
			},
		})
		for i := range 3 {
			f.send(request(i, "x", "null"))
		}
		synctest.Wait() // the third is in the reader's hand
		close(call)
		var wg sync.WaitGroup
		for range 5 {
			switch got := f.recv(); {
			case strings.Contains(got, `"id":"cb-`):
				id := got[len(`{"jsonrpc":"2.0","id":`):strings.Index(got, `,"method"`)]
				wg.Go(func() { f.send(`{"jsonrpc":"2.0","id":` + id + `,"result":1}`) })
			case strings.Contains(got, `"id":2,"error":{"code":-32000`), strings.Contains(got, `"result":null`):
			default:
				t.Error(got)
			}
		}
		wg.Wait()
	})
}

func TestTheBucket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, f := peer(t, &Options{
			Limits:  Limits{Rate: 10, Burst: 5},
			Handler: echo,
		})
		time.Sleep(time.Second) // of the bubble: the bucket is full
		began := time.Now()
		go func() {
			for i := range 25 {
				f.send(request(i, "x", "null"))
			}
		}()
		for range 25 {
			f.recv()
		}
		if took := time.Since(began); took < 1900*time.Millisecond || took > 2*time.Second+slice { // what the last one owes nobody waits for
			t.Errorf("25 requests took %v", took)
		}
		// Replies cost nothing; nonsense does.
		time.Sleep(time.Second) // of the bubble: what is owed is paid, and the bucket full
		began = time.Now()
		for range 10 {
			f.send(`{"jsonrpc":"2.0","id":"cb-1","result":1}`)
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("10 replies took %v", took)
		}
		go func() {
			for range 10 {
				f.send(`nonsense`)
			}
		}()
		for range 10 {
			f.recv()
		}
		if took := time.Since(began); took < 400*time.Millisecond || took > 500*time.Millisecond+slice {
			t.Errorf("10 frames of nonsense took %v", took)
		}
	})
}

// TestTheBucketIsPaidByTheBytes of requests, of replies and by what handlers add.
func TestTheBucketIsPaidByTheBytes(t *testing.T) {
	for name, c := range map[string]struct {
		params  string
		handler Handler
	}{
		"request": {`{"x":"` + strings.Repeat("x", 5*TokenBytes) + `"}`, func(context.Context, *Request) (any, error) { return nil, nil }},
		"reply": {"null", func(context.Context, *Request) (any, error) {
			return json.RawMessage(`"` + strings.Repeat("x", 5*TokenBytes) + `"`), nil
		}},
		"handler": {"null", func(_ context.Context, r *Request) (any, error) { r.Cost = 5 * TokenBytes; return nil, nil }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, f := peer(t, &Options{Limits: Limits{Rate: 10, Burst: 5}, Handler: c.handler})
				began := time.Now()
				for i := range 6 { // each costs six tokens
					f.send(request(i, "x", c.params))
					f.recv()
				}
				if took := time.Since(began); took < 2*time.Second || took > 3500*time.Millisecond {
					t.Errorf("6 requests of 6 tokens took %v", took)
				}
			})
		})
	}
}

// TestNotificationsPayToo for what their handlers add, and nobody owes more than a second.
func TestNotificationsPayToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, f := peer(t, &Options{Limits: Limits{Rate: 10, Burst: 5}, Handler: func(_ context.Context, r *Request) (any, error) {
			r.Cost = 100 * TokenBytes
			return nil, nil
		}})
		began := time.Now()
		for range 5 {
			f.send(`{"jsonrpc":"2.0","method":"x"}`)
			synctest.Wait()
		}
		f.send(request(1, "x", "null"))
		f.recv()
		if took := time.Since(began); took < 3*time.Second || took > 6*time.Second {
			t.Errorf("took %v", took)
		}
	})
}

// TestAPeerThatIsTooFastIsReadInSlices: what it sent while it was not read is served at once.
func TestAPeerThatIsTooFastIsReadInSlices(t *testing.T) {
	b := newBucket(500, 1)
	waits := 0
	synctest.Test(t, func(t *testing.T) {
		b.at = time.Now()
		for range 1000 {
			b.take(1)
			if wait := b.owed(); wait > 0 {
				waits++
				time.Sleep(wait)
			}
		}
	})
	if waits > 101 {
		t.Errorf("1000 requests at 500 a second are waited for %d times", waits)
	}
}

// TestANewPeerHasSavedNothing: who connects again and again would otherwise pay for nothing.
func TestANewPeerHasSavedNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for idle, most := range map[time.Duration]int{0: 61, 10 * time.Second: 308} {
			_, f := peer(t, &Options{Limits: Limits{Rate: 500, Burst: 300}, Handler: echo})
			time.Sleep(idle)
			began := time.Now()
			go func() {
				for i := range 500 {
					f.send(request(i, "x", "null"))
				}
			}()
			atOnce := 0
			for range 500 {
				if f.recv(); time.Since(began) == 0 {
					atOnce++
				}
			}
			if atOnce > most || atOnce < most-11 {
				t.Errorf("after %v %d of 500 requests are answered at once, want %d", idle, atOnce, most)
			}
		}
	})
}

// TestAPeerThatDoesNotRead is dropped after WriteTimeout; notifications find no room before that, at once.
func TestAPeerThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, other := Pipe()
		c := New(near, &Options{Limits: Limits{Queue: 1000, WriteTimeout: time.Minute}, Handler: echo})
		done := make(chan error, 1)
		go func() { done <- c.Serve(context.Background()) }()
		began := time.Now()
		note := json.RawMessage(`["` + strings.Repeat("x", 160) + `"]`)
		queued := 0
		for ; ; queued++ {
			if err := c.Notify("runs.trace.event", note); errors.Is(err, ErrQueueFull) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
		if queued != 4 || time.Since(began) != 0 {
			t.Errorf("%d notifications of about 220 bytes found room in 1,000, in %v", queued, time.Since(began))
		}
		far{t, other}.send(request(1, "x", "null")) // its reply waits for room
		var closed *CloseError
		if err := <-done; !errors.As(err, &closed) || closed.Code != ClosePolicy {
			t.Errorf("got %v", err)
		}
		if took := time.Since(began); took != time.Minute {
			t.Errorf("dropped after %v", took)
		}
	})
}

// TestOneFrameAlwaysHasRoom sends a reply that is longer than the queue.
func TestOneFrameAlwaysHasRoom(t *testing.T) {
	_, f := peer(t, &Options{Limits: Limits{Queue: 10}, Handler: echo})
	long := `["` + strings.Repeat("x", 1000) + `"]`
	f.send(request(1, "x", long))
	if got := f.recv(); !strings.Contains(got, long) {
		t.Error(got)
	}
}

// TestMemoryOfAllConnections fills the budget from one connection: another still has its own allowance, beyond which it waits.
func TestMemoryOfAllConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		budget := NewBudget(1000)
		release := make(chan struct{})
		o := &Options{
			Limits:  Limits{Allowance: 500, Concurrent: 100},
			Budget:  budget,
			Handler: func(context.Context, *Request) (any, error) { <-release; return nil, nil },
		}
		frame := request(1, "x", `["`+strings.Repeat("x", 200)+`"]`) // 250 bytes or so
		var held [2]*Conn
		var sent [2]atomic.Int64
		var wg sync.WaitGroup
		for i := range held {
			c, f := peer(t, o)
			held[i] = c
			wg.Go(func() {
				for range 10 {
					f.send(frame)
					sent[i].Add(1)
				}
			})
			wg.Go(func() {
				for range 10 {
					f.recv()
				}
			})
			synctest.Wait()
		}
		n := len(frame)
		own, shared := 500/n, 1000/n
		if got := held[0].Stats().Running; got != own+shared {
			t.Errorf("the first has %d in flight, want %d", got, own+shared)
		}
		if got := held[1].Stats().Running; got != own {
			t.Errorf("the second has %d in flight, want %d", got, own)
		}
		if used, _ := budget.Used(); used != int64(shared*n) {
			t.Errorf("%d used", used)
		}
		close(release)
		wg.Wait()
		synctest.Wait()
		if used, _ := budget.Used(); used != 0 || held[0].held != 0 || held[1].held != 0 {
			t.Errorf("not given back: %d, %d, %d", used, held[0].held, held[1].held)
		}
	})
}

func TestBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(100)
		_, first := b.TryTake(60)
		if _, second := b.TryTake(60); !first || second {
			t.Error("it does not count")
		}
		soon, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, ok := b.Take(soon, 60); ok {
			t.Error("it gave what it had not")
		}
		ctx, done := context.WithCancel(t.Context())
		results := make(chan string, 3)
		go func() { results <- fmt.Sprintln(b.Take(t.Context(), 1000)) }() // all of it
		synctest.Wait()
		go func() { results <- fmt.Sprintln(b.Take(ctx, 10)) }() // though free, not before the one that waits
		synctest.Wait()
		select {
		case r := <-results:
			t.Error(r)
		default:
		}
		done()
		if r := <-results; r != "0 false\n" {
			t.Error(r)
		}
		b.Give(60)
		if r := <-results; r != "100 true\n" {
			t.Error(r)
		}
		b.Give(100)
		if used, total := b.Used(); used != 0 || total != 100 {
			t.Errorf("%d of %d", used, total)
		}
		if _, ok := (*Budget)(nil).TryTake(1); !ok {
			t.Error("nil bounds")
		}
	})
}

// TestCallsWithinCallsDoNotWaitForEachOther fills every place with handlers that call the peer, whose answer needs another
// request of its own.
func TestCallsWithinCallsDoNotWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := Pipe()
		server := New(ours, &Options{Limits: Limits{Concurrent: 2, Waiting: 100}, Handler: func(ctx context.Context, r *Request) (any, error) {
			if r.Method == "leaf" {
				return 1, nil
			}
			var out json.RawMessage
			err := r.Call(ctx, r.Conn.NewID(), "back", nil, &out)
			return out, err
		}})
		client := New(theirs, &Options{IDPrefix: "c-", Handler: func(ctx context.Context, r *Request) (any, error) {
			var out json.RawMessage
			err := r.Conn.Call(ctx, r.Conn.NewID(), "leaf", nil, &out)
			return out, err
		}})
		var all sync.WaitGroup
		for _, c := range []*Conn{server, client} {
			all.Go(func() { _ = c.Serve(context.Background()) })
		}
		var calls sync.WaitGroup
		for range 50 {
			calls.Go(func() {
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				var out json.RawMessage
				if err := client.Call(ctx, client.NewID(), "nest", nil, &out); err != nil || string(out) != "1" {
					t.Errorf("%s %v", out, err)
				}
			})
		}
		calls.Wait()
		synctest.Wait() // a handler's place is free once its answer is queued
		if s := server.Stats(); s.Running != 0 || s.Waiting != 0 {
			t.Errorf("%+v", s)
		}
		if err := server.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		all.Wait()
	})
}

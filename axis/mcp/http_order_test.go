package mcp

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// orderOfTest is that of two calls, of which the second was answered first, and a notification on a stream of its own.
func orderOfTest() *webOrder {
	return newWebOrder([]tapedLine{
		{place: 1, from: Client, counts: true, exchange: 1},
		{place: 2, from: Client, counts: true, exchange: 2, ms: 300},
		{place: 3, from: Server, answer: true, exchange: 2, ms: 310},
		{place: 4, from: Server, exchange: 9, ms: 400},
		{place: 5, from: Server, answer: true, exchange: 1, ms: 500},
	})
}

// waited is how long the line at place waits.
func waited(t *testing.T, o *webOrder, place, exchange uint64) time.Duration {
	t.Helper()
	begun := time.Now()
	if err := o.await(context.Background(), place, exchange); err != nil {
		t.Error(err)
	}
	return time.Since(begun)
}

// A line that does not come holds the others up once, for as long as it took then and a while.
func TestOrderGivesUpOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := orderOfTest()
		o.begin(1, &carried{client: []uint64{1}, server: []uint64{5}})
		if got, want := waited(t, o, 5, 1), 300*time.Millisecond+holdAsked; got != want {
			t.Errorf("it waited %v, want %v", got, want)
		}
		if got := waited(t, o, 5, 1); got != 0 {
			t.Errorf("then it waited %v", got)
		}
	})
}

// A line waits for what was said before on streams that are open, and an answer a little for who reads what came before it.
func TestOrderOfStreams(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := orderOfTest()
		o.begin(9, &carried{server: []uint64{4}})
		o.begin(1, &carried{client: []uint64{1}, server: []uint64{5}})
		o.begin(2, &carried{client: []uint64{2}, server: []uint64{3}})
		go func() {
			time.Sleep(time.Second)
			o.said(3)
			time.Sleep(time.Second / 2)
			o.said(4)
		}()
		if got, want := waited(t, o, 5, 1), 1500*time.Millisecond+reading; got != want {
			t.Errorf("it waited %v, want %v", got, want)
		}
	})
}

// The end of a stream waits for as long as it takes, and no longer than the program does.
func TestOrderOfEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := orderOfTest()
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		if err := o.awaitEnd(ctx, 5, 9); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it ended with %v", err)
		}
		for _, c := range []*carried{{client: []uint64{1}, server: []uint64{5}}, {client: []uint64{2}, server: []uint64{3}}} {
			o.begin(c.client[0], c)
			o.end(c.client[0], c)
		}
		if err := o.awaitEnd(context.Background(), 5, 9); err != nil {
			t.Error(err)
		}
	})
}

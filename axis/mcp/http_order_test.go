package mcp

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// orderOfTest is that of two calls, of which the second was answered first, and a notification on a stream of its own. Its lines are
// the calls 0 and 1, the answer 2 to the second, the notification 3 and the answer 4.
func orderOfTest() *webPlayer {
	t := &transcriptReader{note: -1, transcript: &transcript{Recorded: Recorded{Transport: HTTP}}}
	for i, ms := range []int64{0, 300} {
		c := &recordedCall{requestKey: requestKey{method: "tools/call"}}
		t.calls = append(t.calls, c)
		t.say(uint64(i+1), ms, true, &recordedLine{key: c.requestKey, call: c, via: uint64(i + 1)})
	}
	line := func(place, via uint64, ms int64, call *recordedCall) {
		t.written = append(t.written, &recordedLine{
			place: place, after: place - 1, at: ms, via: via, parts: []recordedPart{{call: call, answer: call != nil}},
		})
	}
	line(3, 2, 310, t.calls[1])
	line(4, 9, 400, nil)
	line(5, 1, 500, t.calls[0])
	t.sort()
	t.arrange()
	return newWebPlayer(t.transcript, holdAsked)
}

// waited is how long a line waits.
func waited(t *testing.T, o *webPlayer, line int, exchange uint64) time.Duration {
	t.Helper()
	begun := time.Now()
	if err := o.await(context.Background(), line, exchange); err != nil {
		t.Error(err)
	}
	return time.Since(begun)
}

// A line that does not come holds the others up once, for as long as it took then and a while.
func TestOrderGivesUpOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := orderOfTest()
		o.begin(1, o.transcript.carried[1])
		if got, want := waited(t, o, 4, 1), 300*time.Millisecond+holdAsked; got != want {
			t.Errorf("it waited %v, want %v", got, want)
		}
		if got := waited(t, o, 4, 1); got != 0 {
			t.Errorf("then it waited %v", got)
		}
	})
}

// A line waits for what was said before on streams that are open, and an answer a little for who reads what came before it.
func TestOrderOfStreams(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := orderOfTest()
		o.begin(9, o.transcript.carried[9])
		o.begin(1, o.transcript.carried[1])
		o.begin(2, o.transcript.carried[2])
		go func() {
			time.Sleep(time.Second)
			o.passed(2)
			time.Sleep(time.Second / 2)
			o.passed(3)
		}()
		if got, want := waited(t, o, 4, 1), 1500*time.Millisecond+reading; got != want {
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
		if err := o.AwaitAll(ctx, 5, 9); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it ended with %v", err)
		}
		for _, exchange := range []uint64{1, 2} {
			c := o.transcript.carried[exchange]
			o.begin(exchange, c)
			o.Close(exchange)
			o.Said(c.server...)
		}
		if err := o.AwaitAll(context.Background(), 5, 9); err != nil {
			t.Error(err)
		}
	})
}

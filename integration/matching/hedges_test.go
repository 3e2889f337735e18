package matching

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

// hedged asks the same twice, the second time after a wait unless there is an answer by then. The first whole answer wins, and
// the other request is cancelled.
func hedged(wait time.Duration, ask func(context.Context) (string, error)) (string, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	type result struct {
		text string
		err  error
	}
	results := make(chan result, 2)
	for _, after := range []time.Duration{0, wait} {
		go func() { // ends with its answer, or once cancelled
			timer := time.NewTimer(after)
			defer timer.Stop()
			select {
			case <-timer.C:
				text, err := ask(ctx)
				results <- result{text, err}
			case <-ctx.Done():
				results <- result{err: ctx.Err()}
			}
		}()
	}
	first := <-results
	cancel()
	second := <-results
	if first.err != nil {
		return "", first.err
	}
	if second.err != nil && !errors.Is(second.err, context.Canceled) {
		return "", second.err
	}
	return first.text, nil
}

// hedging runs conversations whose every question is hedged.
func hedging(wait time.Duration) func(p *program) {
	return func(p *program) {
		p.each(talks, func(i int) {
			c := p.talk(i, fmt.Sprintf("task %d", i))
			for turn := range turns() {
				text, err := hedged(wait, func(ctx context.Context) (string, error) {
					ask := c.call()
					ask.ctx = ctx
					return p.ask(ask)
				})
				if err != nil {
					p.run.t.Errorf("conversation %d, turn %d: %v", i, turn, err)
					return
				}
				c.messages = append(c.messages, message{"assistant", text}, said(fmt.Sprintf("turn %d", turn)))
			}
			p.close(c)
		})
	}
}

// times answers a request as first says when it comes for the first time, and as then when it comes again.
func times(first, then fault) func(string, int, int) fault {
	return func(_ string, _, times int) fault {
		if times == 0 {
			return first
		}
		return then
	}
}

// TestHedges asks everything twice at once. Whichever comes second to the upstream has no whole answer in time.
func TestHedges(t *testing.T) {
	for _, way := range []fault{slow, stall, hang} {
		t.Run(string(way), func(t *testing.T) {
			s := &scenario{upstream: &upstream{fault: times(none, way), twice: true}}
			s.program = hedging(0)
			s.prove(t)
		})
	}
}

// TestHedgesOfAHungRequest has an upstream that leaves the first of two equal requests without an answer, or stops in the
// middle of one, and a program that asks again after a while.
func TestHedgesOfAHungRequest(t *testing.T) {
	for _, way := range []fault{hang, stall} {
		t.Run(string(way), func(t *testing.T) {
			s := &scenario{upstream: &upstream{fault: times(way, none)}}
			s.program = hedging(5 * time.Millisecond)
			s.prove(t)
		})
	}
}

// TestHedgesThatCameLate has a program that asks again whatever takes longer than a moment. A replay at full speed answers
// sooner, so that it rarely comes to that.
func TestHedgesThatCameLate(t *testing.T) {
	s := &scenario{upstream: &upstream{fault: times(none, stall), twice: true}}
	s.program = hedging(time.Millisecond)
	s.prove(t)
}

// TestHedgedTools hedges plain requests.
func TestHedgedTools(t *testing.T) {
	s := &scenario{upstream: &upstream{fault: times(hang, none)}}
	s.program = func(p *program) {
		p.each(talks, func(i int) {
			for turn := range turns() {
				text, err := hedged(5*time.Millisecond, func(ctx context.Context) (string, error) {
					return p.tool(ctx, fmt.Sprintf("/tool/%d/%d", i, turn))
				})
				if err != nil {
					p.run.t.Errorf("tool %d, turn %d: %v", i, turn, err)
				}
				p.note("%s", text)
			}
		})
	}
	s.prove(t)
}

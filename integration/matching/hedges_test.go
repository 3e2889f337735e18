package matching

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

// A hedge asks the same twice, the second time after a wait unless there is an answer by then. The first whole answer wins, and
// the other request is cancelled.
type hedge struct {
	wait time.Duration
	// lets has the recording wait for the end of the other answer too, which a replay cancels as it comes.
	lets bool
}

func (h hedge) ask(p *program, ask func(context.Context) (string, error)) (string, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	type result struct {
		text string
		err  error
	}
	results := make(chan result, 2)
	for _, after := range []time.Duration{0, h.wait} {
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
	if !h.lets || p.seed != recording {
		cancel()
	}
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
func hedging(h hedge) func(p *program) { return hedgingTalks(talks, h) }

func hedgingTalks(n int, h hedge) func(p *program) {
	return func(p *program) {
		p.each(n, func(i int) {
			c := p.talk(i, fmt.Sprintf("task %d", i))
			for turn := range turns() {
				text, err := h.ask(p, func(ctx context.Context) (string, error) {
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
			s.program = hedging(hedge{})
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
			s.program = hedging(hedge{wait: 5 * time.Millisecond})
			s.prove(t)
		})
	}
}

// TestHedgesThatCameLate has a program that asks again whatever takes longer than a moment. A replay at full speed answers
// sooner, so that it rarely comes to that.
func TestHedgesThatCameLate(t *testing.T) {
	s := &scenario{upstream: &upstream{fault: times(none, stall), twice: true}}
	s.program = hedging(hedge{wait: time.Millisecond})
	s.prove(t)
}

// timed is how many conversations there are where the program goes by times, which a busy machine does not keep.
const timed = 3

// TestHedgesWhoseLoserCameWhole has an upstream that answers both of two equal requests, the one later than the other. A replay
// at full speed has the first answer before the program would ask again, and could give either first; in real time the times
// are the recording's.
func TestHedgesWhoseLoserCameWhole(t *testing.T) {
	for _, speed := range []float64{0, 1} {
		for _, wait := range []time.Duration{0, 3 * time.Millisecond} {
			t.Run(fmt.Sprintf("speed %v, after %v", speed, wait), func(t *testing.T) {
				s := &scenario{upstream: &upstream{fault: times(none, late), twice: true}, speed: speed}
				s.program = hedgingTalks(timed, hedge{wait: wait, lets: true})
				s.prove(t)
			})
		}
	}
}

// TestHedgesInRealTime has an upstream whose first answer takes long, and a program that goes by the times.
func TestHedgesInRealTime(t *testing.T) {
	s := &scenario{upstream: &upstream{fault: times(late, none)}, speed: 1}
	s.program = hedgingTalks(timed, hedge{wait: 10 * time.Millisecond})
	s.prove(t)
}

// TestHedgedTools hedges plain requests.
func TestHedgedTools(t *testing.T) {
	s := &scenario{upstream: &upstream{fault: times(hang, none)}}
	s.program = func(p *program) {
		p.each(talks, func(i int) {
			for turn := range turns() {
				text, err := hedge{wait: 5 * time.Millisecond}.ask(p, func(ctx context.Context) (string, error) {
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

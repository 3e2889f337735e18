package matching

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// TestCancels has a program that goes away in the middle of each answer: on replay after fewer events than in the recording.
func TestCancels(t *testing.T) {
	s := &scenario{upstream: new(upstream)}
	s.program = goingAway(func(c *call, seed uint64, rng *rand.Rand) context.CancelFunc {
		after := rng.IntN(6)
		if seed == recording {
			after += 6
		}
		c.stop = func(events int) bool { return events > after }
		return func() {}
	})
	s.prove(t)
}

// TestCancelsAtATime has a program that goes away a while after the answer began: on replay sooner or later than in the
// recording.
func TestCancelsAtATime(t *testing.T) {
	for _, way := range []fault{none, stall} {
		t.Run(string(way), func(t *testing.T) {
			s := &scenario{upstream: &upstream{fault: func(string, int, int) fault { return way }, pace: 4 * time.Millisecond}}
			s.program = goingAway(func(c *call, _ uint64, rng *rand.Rand) context.CancelFunc {
				ctx, cancel := context.WithCancel(c.ctx)
				c.ctx = ctx
				c.stop = func(int) bool {
					time.AfterFunc(time.Duration(rng.IntN(20))*time.Millisecond, cancel)
					return false
				}
				return cancel
			})
			s.prove(t)
		})
	}
}

// goingAway asks many things and has leave say of each when it goes away.
func goingAway(leave func(c *call, seed uint64, rng *rand.Rand) context.CancelFunc) func(p *program) {
	return func(p *program) {
		p.each(talks, func(i int) {
			rng := rand.New(rand.NewPCG(p.seed, uint64(i)))
			for turn := range turns() {
				c := p.talk(i, fmt.Sprintf("task %d of %d", turn, i)).call()
				cancel := leave(c, p.seed, rng)
				_, err := p.ask(c)
				cancel()
				if err != nil && !errors.Is(err, errStopped) && !errors.Is(err, context.Canceled) {
					p.run.t.Errorf("conversation %d, turn %d: %v", i, turn, err)
				}
			}
		})
	}
}

// TestReadersThatStopAtTheLastEvent has a program that closes each answer once it has seen what it needs, as SDKs do, and
// does not wait for its end.
func TestReadersThatStopAtTheLastEvent(t *testing.T) {
	s := &scenario{upstream: new(upstream)}
	s.program = func(p *program) {
		p.each(talks, func(i int) {
			c := p.talk(i, fmt.Sprintf("task %d", i%4))
			for turn := range turns() {
				ask := c.call()
				ask.atLast = true
				text, err := p.ask(ask)
				if err != nil {
					p.run.t.Errorf("conversation %d, turn %d: %v", i, turn, err)
					return
				}
				c.messages = append(c.messages, message{"assistant", text}, said(fmt.Sprintf("turn %d", turn)))
			}
			p.close(c)
		})
	}
	s.prove(t)
}

// TestTimeouts has a program that gives up every other first attempt, before the first byte or in the middle, and asks again.
func TestTimeouts(t *testing.T) {
	for _, way := range []fault{hang, stall} {
		t.Run(string(way), func(t *testing.T) {
			s := &scenario{upstream: &upstream{fault: func(body string, _, times int) fault {
				if times == 0 && strings.Contains(body, "slow") {
					return way
				}
				return none
			}}}
			s.program = func(p *program) {
				p.each(talks, func(i int) {
					c := p.talk(i, fmt.Sprintf("task %d", i))
					next := []string{"slow, please", "go on"}[i/2%2]
					if !p.turn(c, next) { // there is a connection from now on
						return
					}
					if next != "go on" {
						p.giveUp(c, way)
					}
					if p.turn(c, "thanks") {
						p.close(c)
					}
				})
			}
			s.prove(t)
		})
	}
}

// giveUp asks, and ends the request once it has arrived where it hangs, or when all has come that comes of an answer that
// stalls.
func (p *program) giveUp(t *talk, way fault) {
	c := t.call()
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	c.ctx = ctx
	c.stop = func(events int) bool {
		if events == stalled {
			cancel()
		}
		return false
	}
	if way == hang {
		go p.leave(ctx, cancel, body(t.messages), p.run.left(body(t.messages)))
	}
	if text, err := p.ask(c); !errors.Is(err, context.Canceled) {
		p.run.t.Errorf("got %q, %v for what never ends", text, err)
	}
}

// leave ends a request once nothing but its answer is missing: while recording when the upstream has it, on a replay when the tape's
// answer to it was taken, of which left were there before. It ends with ctx.
func (p *program) leave(ctx context.Context, cancel func(), body string, left int) {
	if p.run.book == nil {
		select {
		case <-p.run.held.wait(body):
			cancel()
		case <-ctx.Done():
		}
		return
	}
	for ; ctx.Err() == nil; time.Sleep(time.Millisecond) {
		if p.run.left(body) < left {
			cancel()
		}
	}
}

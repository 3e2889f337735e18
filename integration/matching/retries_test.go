package matching

import (
	"fmt"
	"strings"
	"testing"
)

// failures makes every third question fail once or twice in a way of its own before it is answered.
func failures(ways ...fault) func(string, int, int) fault {
	return func(body string, attempt, _ int) fault {
		sum := 0
		for _, c := range digest(body) {
			sum += int(c)
		}
		if attempt < sum%3 {
			return ways[(sum+attempt)%len(ways)]
		}
		return none
	}
}

// talkOn runs conversations side by side, four openings among them, each with attempts for every question.
func talkOn(attempts int) func(p *program) {
	return func(p *program) {
		p.each(talks, func(i int) {
			c := p.talk(i, fmt.Sprintf("task %d", i%4))
			c.attempts = attempts
			for turn := range turns() {
				if !p.turn(c, fmt.Sprintf("turn %d", turn)) {
					return
				}
			}
			p.close(c)
		})
	}
}

// TestRetries has an upstream that is limited, broken and overloaded, and programs that ask again.
func TestRetries(t *testing.T) {
	s := &scenario{upstream: &upstream{fault: failures(limited, broken, overload)}}
	s.program = talkOn(10)
	s.prove(t)
}

// TestRetriesOfEqualConversations gives each of many equal conversations as many attempts as the recording took at most:
// one that got the failures of another would give up.
func TestRetriesOfEqualConversations(t *testing.T) {
	const equal = 8
	s := &scenario{upstream: &upstream{
		same: true,
		// The first attempts of half of them fail, and so do the second ones of a quarter.
		fault: func(_ string, attempt, times int) fault {
			if attempt == 0 && times < equal/2 || attempt == 1 && times < equal/4 {
				return overload
			}
			return none
		},
	}}
	s.program = func(p *program) {
		for round := range turns() {
			p.each(equal, func(i int) {
				c := p.talk(i, fmt.Sprintf("task %d", round))
				c.attempts = 3
				if p.turn(c, "thanks") {
					p.close(c)
				}
			})
		}
	}
	s.prove(t)
}

// TestCuts has an upstream whose connections end in each of the ways in which they can, and programs that ask again.
func TestCuts(t *testing.T) {
	for _, way := range []fault{noHeader, inHeader, reset, inChunked, resetBody, inLength} {
		t.Run(strings.ReplaceAll(string(way), " ", "_"), func(t *testing.T) {
			s := &scenario{upstream: &upstream{fault: failures(way)}}
			s.program = talkOn(10)
			s.prove(t)
		})
	}
}

// TestCutForGood has questions that are never answered: the program sees each cut where the recording did.
func TestCutForGood(t *testing.T) {
	ways := []fault{noHeader, inHeader, reset, inChunked, resetBody, inLength, broken}
	s := &scenario{upstream: &upstream{fault: func(body string, _, _ int) fault {
		for i, way := range ways {
			if strings.Contains(body, fmt.Sprintf("way %d.", i)) {
				return way
			}
		}
		return none
	}}}
	s.program = func(p *program) {
		p.each(talks, func(i int) {
			for way := range ways {
				c := p.talk(i, fmt.Sprintf("way %d.", way))
				text, err := p.ask(c.call())
				if err == nil {
					p.run.t.Errorf("%s was answered", ways[way])
				}
				if ways[way] == broken { // each answer has a number: equal callers get them in any order
					text = err.Error()
				}
				p.note("%s: %q", ways[way], text)
			}
		})
	}
	s.prove(t)
}

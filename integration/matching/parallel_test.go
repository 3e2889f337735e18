package matching

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestHundredStreams sends 100 requests at once over one HTTP/2 connection, again and again, some of them equal.
func TestHundredStreams(t *testing.T) {
	const streams = 100
	s := &scenario{upstream: new(upstream)}
	s.program = func(p *program) {
		p.turn(p.talk(1, "hello"), "") // else the client, which knows of no HTTP/2 yet, dials for each of the first requests
		for round := range sized(1, 10) {
			p.each(streams, func(i int) {
				c := p.talk(1, fmt.Sprintf("task %d, round %d", i%60, round)) // over HTTP/2
				if p.turn(c, "go on") && p.turn(c, "thanks") {
					p.close(c)
				}
			})
		}
		if n := p.run.connections(model, 443); n != 1 {
			p.run.t.Errorf("%d connections", n)
		}
	}
	s.prove(t)
}

// TestShuffledTools has a program that calls five tools at once after each turn, in another order in each run, some of them
// twice, and gives the results to the model in the order of their names.
func TestShuffledTools(t *testing.T) {
	s := &scenario{upstream: new(upstream)}
	s.program = func(p *program) {
		for turn, c := 0, p.talk(0, "task"); turn < turns(); turn++ {
			names := []string{"ls", "cat", "dice", "dice", "date"}
			p.free.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
			results := make([]string, len(names))
			p.each(len(names), func(i int) {
				text, err := p.tool(t.Context(), fmt.Sprintf("/tool/%s/%d", names[i], turn/2))
				if err != nil {
					p.run.t.Errorf("tool %s: %v", names[i], err)
				}
				results[i] = names[i] + " " + text
			})
			slices.Sort(results)
			if !p.turn(c, strings.Join(results, "\n")) {
				return
			}
			if turn == turns()-1 {
				p.close(c)
			}
		}
	}
	s.prove(t)
}

// TestShuffledAgents has a program that sends five agents off at once, in another order in each run. They share their
// opening and differ in what comes behind it.
func TestShuffledAgents(t *testing.T) {
	s := &scenario{upstream: new(upstream)}
	s.program = func(p *program) {
		for round := range sized(2, 10) {
			order := p.free.Perm(5)
			p.each(len(order), func(i int) {
				c := p.talk(order[i], "you are an agent")
				c.messages = append(c.messages, message{"assistant", "yes"}, said(fmt.Sprintf("find %d in round %d", order[i], round)))
				for turn := range 3 {
					if !p.turn(c, fmt.Sprintf("turn %d", turn)) {
						return
					}
				}
				p.close(c)
			})
		}
	}
	s.prove(t)
}

package exchange_test

import (
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/cas"
)

// talk is the identity of a call with these turns, in the conversation that the first opens.
func talk(turns ...string) *exchange.Identity {
	said := exchange.Talk{Opening: cas.Sum([]byte("opening " + turns[0]))}
	for _, turn := range turns {
		said.Turns = append(said.Turns, cas.Sum([]byte(turn)))
	}
	return &exchange.Identity{Key: exchange.Key{Kind: exchange.LLM}, Talk: func() exchange.Talk { return said }}
}

func TestLanes(t *testing.T) {
	first := "llm:" + talk("u1").Talk().Opening.Short()
	type step struct {
		id     *exchange.Identity
		lane   string
		failed bool
		open   bool // the answer does not end
	}
	for name, steps := range map[string][]step{
		"grows":               {{id: talk("u1"), lane: first}, {id: talk("u1", "a1", "u2"), lane: first}},
		"another opening":     {{id: talk("u1"), lane: first}, {id: talk("v1"), lane: "llm:" + talk("v1").Talk().Opening.Short()}},
		"retry of a failure":  {{id: talk("u1"), lane: first, failed: true}, {id: talk("u1"), lane: first}},
		"equal and no retry":  {{id: talk("u1"), lane: first}, {id: talk("u1"), lane: first + "#2"}},
		"equal side by side":  {{id: talk("u1"), lane: first, open: true}, {id: talk("u1"), lane: first + "#2", open: true}},
		"continues before it": {{id: talk("u1"), lane: first, open: true}, {id: talk("u1", "a1", "u2"), lane: first}},
		"idle one continues": {
			{id: talk("u1"), lane: first, open: true}, {id: talk("u1"), lane: first + "#2"},
			{id: talk("u1", "a", "u2"), lane: first + "#2"},
		},
		"each grows its own": {
			{id: talk("u1"), lane: first}, {id: talk("u1"), lane: first + "#2"},
			{id: talk("u1", "a", "u2"), lane: first}, {id: talk("u1", "b", "u2"), lane: first + "#2"},
			{id: talk("u1", "b", "u2", "c", "u3"), lane: first + "#2"}, {id: talk("u1", "a", "u2", "c", "u3"), lane: first},
		},
		"started over":    {{id: talk("u1", "a", "u2"), lane: first}, {id: talk("u1"), lane: first + "#2"}},
		"compacted":       {{id: talk("u1", "a", "u2"), lane: first}, {id: talk("u1", "summary"), lane: first}},
		"after compacted": {{id: talk("u1", "a", "u2"), lane: first}, {id: talk("u1", "s"), lane: first}, {id: talk("u1", "s", "b", "u3"), lane: first}},
	} {
		t.Run(name, func(t *testing.T) {
			var lanes exchange.Lanes
			for i, s := range steps {
				got := lanes.Begin(s.id, "https://api.example.com/v1/messages")
				if got != s.lane {
					t.Errorf("step %d: %s, want %s", i, got, s.lane)
				}
				if !s.open {
					lanes.Done(got, s.failed)
				}
			}
		})
	}
}

func TestLanesOfHTTP(t *testing.T) {
	var lanes exchange.Lanes
	for url, want := range map[string]string{
		"https://Example.com/a?b":     "http:example.com",
		"http://example.com:8080/":    "http:example.com:8080",
		"http://[::1]:8080/x":         "http:[::1]:8080",
		"https://example.com/%zz?key": "http:",
	} {
		if got := lanes.Begin(new(exchange.Identity), url); got != want {
			t.Errorf("%s: %s", url, got)
		}
		lanes.Done(want, false)
	}
}

// TestLanesFork sees a live request continue the lane of the recorded ones before it.
func TestLanesFork(t *testing.T) {
	var lanes exchange.Lanes
	first := "llm:" + talk("u1").Talk().Opening.Short()
	lanes.Adopt(first+"#2", talk("u1", "b", "u2"), false)
	lanes.Adopt(first, talk("u1"), false)
	if got := lanes.Begin(talk("u1", "b", "u2", "c", "u3"), ""); got != first+"#2" {
		t.Error(got)
	}
	if got := lanes.Begin(talk("u1"), ""); got != first+"#3" {
		t.Error(got)
	}
}

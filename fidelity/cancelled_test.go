package fidelity

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// ended is a call that the program itself ended after it had got some of the answer.
func ended(c *tape.LLMCall, some string) *tape.LLMCall {
	c.Error, c.Response = tape.Cancelled, inline(some)
	return c
}

// placedAt is a call that was asked for at an ordinal.
func placedAt(c *tape.LLMCall, at uint64) *tape.LLMCall {
	c.Extra = append(c.Extra, tape.NumberField(tape.PlaceKey, at)...)
	return c
}

func failed(c *tape.LLMCall, why string) *tape.LLMCall {
	c.Error = why
	return c
}

func TestWithdrawnExchanges(t *testing.T) {
	whole := func() *tape.LLMCall { return call("llm:a", 1, "q", "answer") }
	part := func(some string) *tape.LLMCall { return ended(call("llm:a", 1, "q", "answer"), some) }
	second := func(some string) *tape.LLMCall { return ended(call("llm:a#2", 2, "q", "answer"), some) }
	dead := get("http://h/x", 1, 0)
	dead.Error = tape.Cancelled
	missed := []code{{"llm:a#2", MissingInReplay}}
	tests := []struct {
		name     string
		recorded []tape.Kind
		replay   []tape.Kind
		want     []code
		notes    int
	}{
		{"ended sooner", []tape.Kind{part("answ")}, []tape.Kind{part("a")}, nil, 1},
		{"ended on replay alone", []tape.Kind{whole()}, []tape.Kind{part("a")}, nil, 1},
		{"ended while recording alone", []tape.Kind{part("a")}, []tape.Kind{whole()}, nil, 1},
		{"ended alike", []tape.Kind{part("a")}, []tape.Kind{part("a")}, nil, 0},
		{"cut on replay in its stead", []tape.Kind{failed(whole(), "connection reset")}, []tape.Kind{part("a")}, nil, 1},
		{"held on", []tape.Kind{part("a")}, []tape.Kind{failed(part("a"), tape.HeldOn)}, []code{{"llm:a", "llm_error"}}, 0},
		{"another request", []tape.Kind{part("a")}, []tape.Kind{ended(call("llm:a", 1, "r", "answer"), "a")}, []code{{"llm:a", LLMRequestDigest}}, 0},
		{"never asked for, another was", []tape.Kind{whole(), second("a")}, []tape.Kind{whole()}, nil, 1},
		{"never asked for, nothing came", []tape.Kind{second("")}, nil, missed, 0},
		{"never asked for, another was before it", []tape.Kind{placedAt(whole(), 1), placedAt(second("a"), 15)}, []tape.Kind{whole()}, missed, 0},
		{"never asked for, some came", []tape.Kind{second("a")}, nil, missed, 0},
		{"never asked for, whole", []tape.Kind{whole(), call("llm:a#2", 2, "q", "answer")}, []tape.Kind{whole()}, missed, 0},
		{"plain, ended on replay before it began", []tape.Kind{get("http://h/x", 1, 200), get("http://h/x", 2, 200)},
			[]tape.Kind{get("http://h/x", 1, 200), dead}, nil, 1},
		{"plain, ended twice where it was ended once", []tape.Kind{dead, get("http://h/x", 2, 200)}, []tape.Kind{dead, dead}, nil, 2},
		{"plain, never asked for", []tape.Kind{get("http://h/x", 1, 200), get("http://h/x", 2, 200)},
			[]tape.Kind{get("http://h/x", 1, 200)}, []code{{"http:h", MissingInReplay}}, 0},
		{"plain, once ended and once answered", []tape.Kind{dead, get("http://h/x", 2, 200)}, []tape.Kind{dead, get("http://h/x", 2, 200)}, nil, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := compareLanes(t, Semantic, tt.recorded, tt.replay, nil)
			if diff := cmp.Diff(tt.want, codes(r)); diff != "" || len(r.Notes) != tt.notes {
				t.Errorf("%s\nnotes %q", diff, r.Notes)
			}
		})
	}
	if r := compareLanes(t, ByteIdentical, []tape.Kind{whole()}, []tape.Kind{part("a")}, nil); r.Faithful() {
		t.Error("byte by byte an answer that was ended sooner is the same")
	}
}

// TestEqualRequests has requests that are equal and get answers that are not, among others, in any order.
func TestEqualRequests(t *testing.T) {
	q := func(arrival uint64, answer string) tape.Kind { return call("llm:a", arrival, "q", answer) }
	r := func(arrival uint64) tape.Kind { return call("llm:a", arrival, "r", "") }
	recorded := []tape.Kind{q(1, "one"), r(2), q(3, "two"), q(4, "three")}
	for name, tt := range map[string]struct {
		replay []tape.Kind
		want   []code
	}{
		"another between":    {[]tape.Kind{r(1), q(2, "one"), q(3, "two"), q(4, "three")}, nil},
		"in another order":   {[]tape.Kind{q(1, "three"), q(2, "two"), r(3), q(4, "one")}, nil},
		"one is another one": {[]tape.Kind{q(1, "two"), q(2, "three"), r(3), q(4, "four")}, []code{{"llm:a", LLMResponseHash}}},
	} {
		t.Run(name, func(t *testing.T) {
			report := compareLanes(t, Semantic, recorded, tt.replay, nil)
			if diff := cmp.Diff(tt.want, codes(report)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

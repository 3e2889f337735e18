package fidelity

import (
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// TestUnlikeFacts says what masks hid in requests that compare as equal, once for each mask, and lets them compare.
func TestUnlikeFacts(t *testing.T) {
	digits := regexp.MustCompile(`[0-9]+`)
	facts := func(ex *tape.Exchange, body []byte) []MaskedFact {
		var out []MaskedFact
		for _, n := range digits.FindAllString(ex.URL+string(body), -1) {
			out = append(out, MaskedFact{"number", n})
		}
		return out
	}
	ask := func(arrival uint64, body string) tape.Kind {
		k := call("llm:a", arrival, body, "yes")
		k.RequestDigest = sum(digits.ReplaceAllString(body, "<number>"))
		return k
	}
	for name, tt := range map[string]struct {
		was, now []string
		want     []string
	}{
		"the same":     {[]string{"in 5 s"}, []string{"in 5 s"}, nil},
		"another":      {[]string{"in 5 s"}, []string{"in 50 s"}, []string{"the mask number hides a difference in 1 request: recorded 5, replay 50"}},
		"twice in one": {[]string{"5 and 6"}, []string{"7 and 8"}, []string{"the mask number hides a difference in 1 request: recorded 5, replay 7"}},
		"in two":       {[]string{"a 5", "b 6"}, []string{"a 5", "b 8"}, []string{"the mask number hides a difference in 1 request: recorded 6, replay 8"}},
		"in both":      {[]string{"a 5", "b 6"}, []string{"a 7", "b 8"}, []string{"the mask number hides a difference in 2 requests: recorded 5, replay 7"}},
	} {
		t.Run(name, func(t *testing.T) {
			var a, b []tape.Kind
			for i := range tt.was {
				a, b = append(a, ask(uint64(i+1), tt.was[i])), append(b, ask(uint64(i+1), tt.now[i]))
			}
			r := compareLanes(t, Semantic, a, b, &LaneOptions{Facts: facts})
			if !r.Faithful() {
				t.Errorf("%v", r.Divergences)
			}
			if d := cmp.Diff(tt.want, r.Notes, cmpopts.EquateEmpty()); d != "" {
				t.Error(d)
			}
		})
	}
}

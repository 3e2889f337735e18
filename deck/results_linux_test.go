package deck_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/deck"
)

// TestResultsInAnotherOrder: a program that appends the results of two calls as they come gets the recorded answers in either order,
// which is a note; the result of one given for the other's is a divergence.
func TestResultsInAnotherOrder(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	srv := b.upstream("api.openai.com", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, `{"choices":[{"message":{"role":"assistant","content":"answer %d"}}]}`, strings.Count(string(body), `"role"`))
	})
	res, out := b.record("results", "a=1", "b=2")
	if res.Exit.Code != 0 {
		t.Fatalf("exit %d: %s", res.Exit.Code, out)
	}
	srv.Close()
	for _, tt := range []struct {
		results []string
		notes   int
		red     bool
	}{
		{[]string{"a=1", "b=2"}, 0, false},
		{[]string{"b=2", "a=1"}, 1, false},
		{[]string{"b=1", "a=2"}, 0, true},
	} {
		argv, _ := b.self("results", tt.results...)
		v, out := b.replay(res.Recording, &deck.ReplayOptions{Argv: argv})
		notes := 0
		for _, n := range v.Notes {
			if strings.Contains(n, "came in another order, which does not gate (2 requests, from arrival 2 on)") {
				notes++
			}
		}
		if v.Faithful() == tt.red || notes != tt.notes || *v.Crossed != 0 {
			t.Errorf("%q: faithful %t, crossed %d, notes %q\n%+v\n%s", tt.results, v.Faithful(), *v.Crossed, v.Notes, v.Divergences, out)
		}
	}
}

func init() { programs["results"] = playResults }

// playResults asks a model for calls a and b, tells it the results in the order of its arguments, and then goes on.
func playResults(args []string) int {
	messages := `{"role":"user","content":"go"}`
	for range 3 {
		res, err := http.Post("https://api.openai.com/v1/chat/completions", "application/json", strings.NewReader(`{"model":"m","messages":[`+messages+`]}`))
		if err != nil {
			return fail(err)
		}
		answer, err := io.ReadAll(res.Body)
		if res.Body.Close(); err != nil || res.StatusCode != http.StatusOK {
			return fail(fmt.Errorf("%d %s: %w", res.StatusCode, answer, err))
		}
		fmt.Printf("%s\n", answer)
		if strings.Contains(messages, "tool_calls") {
			messages += `,{"role":"assistant","content":"so"},{"role":"user","content":"on"}`
			continue
		}
		messages += `,{"role":"assistant","tool_calls":[{"id":"call_a","type":"function","function":{"name":"x"}},{"id":"call_b","type":"function","function":{"name":"x"}}]}`
		for _, r := range args {
			id, text, _ := strings.Cut(r, "=")
			messages += fmt.Sprintf(`,{"role":"tool","tool_call_id":"call_%s","content":%q}`, id, text)
		}
	}
	return 0
}

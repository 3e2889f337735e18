package fidelity

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

func TestUncovered(t *testing.T) {
	usual := map[string]string{"files outside (a replay reads them)": "files outside", "clock": "clock"}
	for want, gaps := range map[string][]string{
		"":        nil,
		"a.py, b": {"a.py", "b"},
		"as always clock, files outside (tapedeck show REC --coverage)":              {"clock", "files outside (a replay reads them)"},
		"a.py, b; and as always clock, files outside (tapedeck show REC --coverage)": {"clock", "a.py", "files outside (a replay reads them)", "b"},
	} {
		if got := Uncovered(gaps, usual); got != want {
			t.Errorf("%q: %q, want %q", gaps, got, want)
		}
	}
}

// TestUncoveredInAVerdict: the text says what is usual in short, the JSON holds every item whole.
func TestUncoveredInAVerdict(t *testing.T) {
	gaps := []string{"clock and random numbers", "files outside (a replay reads them)", "a.py (holds a secret)"}
	r := compareLanes(t, Semantic, nil, nil, &LaneOptions{NotCovered: gaps, Usual: map[string]string{gaps[0]: "clock", gaps[1]: "files outside"}})
	var b strings.Builder
	if err := r.WriteText(&b, nil); err != nil {
		t.Fatal(err)
	}
	want := "not covered: a.py (holds a secret); and as always clock, files outside (tapedeck show REC --coverage)\n"
	if !strings.Contains(b.String(), want) {
		t.Errorf("want %q in:\n%s", want, &b)
	}
	line, err := json.Marshal(r)
	var back struct {
		NotCovered []string `json:"not_covered"`
	}
	if err != nil || json.Unmarshal(line, &back) != nil || !slices.Equal(back.NotCovered, gaps) {
		t.Errorf("%s, %v", line, err)
	}
}

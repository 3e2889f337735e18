package fidelity

import (
	"strings"
	"testing"
)

// The list of masks is cut between two of them.
func TestMasksToTheWidth(t *testing.T) {
	r := &Report{Masked: map[string]int{"date": 5, "home": 7, "timestamp": 57, "uuid": 13}}
	for width, want := range map[int]string{
		0:  "masked: date 5, home 7, timestamp 57, uuid 13",
		45: "masked: date 5, home 7, timestamp 57, uuid 13",
		44: "masked: date 5, home 7 and 2 more",
		36: "masked: date 5, home 7 and 2 more",
		10: "masked: date 5 and 3 more",
	} {
		var b strings.Builder
		if err := r.WriteText(&b, &TextOptions{Width: width}); err != nil {
			t.Fatal(err)
		}
		if _, rest, _ := strings.Cut(b.String(), "\n"); rest != want+"\n" {
			t.Errorf("width %d:\n%swant:\n%s", width, rest, want)
		}
	}
}

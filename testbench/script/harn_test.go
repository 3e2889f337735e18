package script_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/testbench"
	"github.com/tapedeck-dev/tapedeck/testbench/script"
)

// A tape of the Harn project's testbench, replayed by a script that asks for the same: what depends on how its producer writes a
// request and an answer differs, and nothing else.
func TestATapeOfAnotherProducerIsReplayed(t *testing.T) {
	sample := filepath.Join("..", "..", "..", "shared", "samples", "harn", "replay_fidelity.testbench-tape")
	if _, err := os.Stat(sample); err != nil {
		t.Skip("the sample of the Harn project is not here:", err)
	}
	b, err := testbench.Replay(sample, &testbench.Config{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := script.Run(t.Context(), b, filepath.Join("testdata", "harn.star"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.Text != "fidelity-response" {
		t.Errorf("it returned %q", r.Text)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	report, err := b.Verdict(fidelity.PhaseAware)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range report.Divergences {
		got = append(got, fmt.Sprint(d.Category))
	}
	slices.Sort(got)
	if want := []string{"llm_request_digest"}; !slices.Equal(got, want) {
		t.Errorf("phase-aware says %v: want %v\n%+v", got, want, report.Divergences)
	}
}

package testbench_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/llm/fixture"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/testbench"
)

// TestReplayOfAnotherProducer runs on the sample of the Harn project what its script did. What differs depends on how its producer
// writes requests; the answer stands as it wrote it.
func TestReplayOfAnotherProducer(t *testing.T) {
	ctx := context.Background()
	b, err := testbench.Replay(sample(t, "replay_fidelity.testbench-tape"), nil)
	if err != nil {
		t.Fatal(err)
	}
	c := b.Clock()
	c.Now()
	c.Now()
	res, err := b.Model().Complete(ctx, &fixture.Request{Messages: "any"})
	if err != nil || res.Text != "fidelity-response" || res.Usage.InputTokens != 5 {
		t.Fatalf("%+v, %v", res, err)
	}
	if err := c.Sleep(ctx, time.Second); err != nil {
		t.Fatal(err)
	}
	c.Now()
	c.Now()
	if err := b.Finish(ctx); err != nil {
		t.Fatal(err)
	}
	report, err := b.Verdict(fidelity.PhaseAware)
	if err != nil {
		t.Fatal(err)
	}
	want := []fidelity.Category{fidelity.LLMRequestDigest}
	if got := categories(report); !slices.Equal(got, want) {
		t.Errorf("%v, want %v: %s", got, want, report)
	}
}

func categories(r *fidelity.Report) []fidelity.Category {
	out := []fidelity.Category{}
	for i := range r.Divergences {
		out = append(out, r.Divergences[i].Category)
	}
	return out
}

func sample(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join("..", "..", "shared", "samples", "harn", name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("no sample of another producer at %s", path)
	}
	return path
}

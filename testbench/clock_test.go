package testbench_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/testbench"
)

// TestReplayOfARealClock gives again what a real clock said, and does not wait.
func TestReplayOfARealClock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "real.tape")
	var first, second [2]time.Time
	run := func(b *testbench.Bench, seen *[2]time.Time) error {
		seen[0] = b.Clock().Now()
		err := b.Clock().Sleep(context.Background(), time.Hour)
		seen[1] = b.Clock().Now()
		b.Clock().Monotonic()
		return err
	}
	synctest.Test(t, func(t *testing.T) {
		b := testbench.New(t, &testbench.Config{Emit: path, Clock: testbench.Clock{Real: true}})
		if err := run(b, &first); err != nil {
			t.Fatal(err)
		}
	})
	if !strings.Contains(readAll(t, path), `"started_at_unix_ms":null`) {
		t.Error("the header says where a real clock began")
	}
	b := testbench.NewReplay(t, path, nil)
	if err := run(b, &second); err != nil {
		t.Fatal(err)
	}
	testbench.Check(t, b, fidelity.Semantic)
	if first != second {
		t.Errorf("read %v, and %v on the replay", first, second)
	}

	b, err := testbench.Replay(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := run(b, &second); err != nil {
		t.Fatal(err)
	}
	b.Clock().Now() // once more than was recorded
	report, err := b.Verdict(fidelity.Semantic)
	if err != nil {
		t.Fatal(err)
	}
	if got := categorySet(report); got != string(fidelity.MissingInRecorded) || len(report.Refused) != 1 {
		t.Errorf("categories %s, refused %+v", got, report.Refused)
	}
}

// TestReplayOfATornTape replays what a killed run left, and says so.
func TestReplayOfATornTape(t *testing.T) {
	path := recordTwoCalls(t)
	whole := readAll(t, path)
	if err := os.WriteFile(path, []byte(whole[:len(whole)-20]), 0o644); err != nil {
		t.Fatal(err)
	}
	b, err := testbench.Replay(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := twoCalls(b, "second"); err != nil {
		t.Fatal(err)
	}
	report, err := b.Verdict(fidelity.Semantic)
	if err != nil {
		t.Fatal(err)
	}
	if got := categorySet(report); got != string(fidelity.MissingInRecorded) || len(report.NotCompared) != 1 || !strings.Contains(report.NotCompared[0], "killed") {
		t.Errorf("categories %s, not compared %q", got, report.NotCompared)
	}
}

// TestNoTapeCostsNothing has the bench's own inputs make nothing where nobody records.
func TestNoTapeCostsNothing(t *testing.T) {
	b, err := testbench.Open(&testbench.Config{Env: map[string]string{"A": "b"}})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for name, f := range map[string]func(){
		"env":   func() { b.Getenv("A") },
		"clock": func() { b.Clock().Now() },
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

package testbench_test

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/llm/fixture"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/testbench"
)

// twoCalls asks a model twice, an hour apart, and goes on whatever comes.
func twoCalls(b *testbench.Bench, second string) error {
	ctx := context.Background()
	_, first := b.Model().Complete(ctx, &fixture.Request{Messages: "first"})
	_ = b.Clock().Sleep(ctx, time.Hour)
	_, err := b.Model().Complete(ctx, &fixture.Request{Messages: second})
	_, after := b.Random().Int(1, 2)
	return errors.Join(first, err, after, b.Clock().Sleep(ctx, time.Hour))
}

func recordTwoCalls(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "run.tape")
	b := testbench.New(t, &testbench.Config{Emit: path, LLM: testbench.LLM{Rules: []fixture.Rule{
		{Match: fixture.Match{Any: true}, Times: 2, Response: &fixture.Response{Text: "hi"}},
	}}})
	if err := twoCalls(b, "second"); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestReplayEndsWithWhatTheTapeLacks has the report say what was asked, what is nearest and what differs, and no call after it
// answered.
func TestReplayEndsWithWhatTheTapeLacks(t *testing.T) {
	b, err := testbench.Replay(recordTwoCalls(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	err = twoCalls(b, "another")
	var unmatched *fixture.UnmatchedError
	if !errors.As(err, &unmatched) || strings.Count(err.Error(), "not on the tape") != 2 { // of the call, and of the one after it
		t.Errorf("%v", err)
	}
	report, err := b.Verdict(fidelity.Semantic)
	if err != nil {
		t.Fatal(err)
	}
	if got := categorySet(report); got != "llm_request_digest" {
		t.Errorf("categories %s", got)
	}
	if len(report.Refused) != 1 || !strings.Contains(report.Refused[0].Cause, "another") || report.Refused[0].Method != "llm_call" {
		t.Errorf("refused %+v", report.Refused)
	}
	if report.RecordedRecords != 5 || report.Score != 1-1.0/5 || len(report.Notes) != 1 || !strings.Contains(report.Notes[0], "2 recorded records") {
		t.Errorf("%d records, notes %q", report.RecordedRecords, report.Notes)
	}
	var text strings.Builder
	if err := report.WriteText(&text, nil); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"1 refused", `"second"`, `"another"`} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is not in the report:\n%s", want, &text)
		}
	}
	t.Log(text.String())
	j, _ := json.Marshal(report)
	t.Logf("%s", j)
}

// TestReplayThatAsksOnceMore asks for what the tape holds, once more than it does.
func TestReplayThatAsksOnceMore(t *testing.T) {
	path := recordTwoCalls(t)
	for _, mode := range modes {
		b, err := testbench.Replay(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := twoCalls(b, "second"); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Model().Complete(context.Background(), &fixture.Request{Messages: "first"}); err == nil {
			t.Error("it was answered")
		}
		report, err := b.Verdict(mode)
		if err != nil {
			t.Fatal(err)
		}
		if got := categorySet(report); got != string(fidelity.MissingInRecorded) || report.Faithful() || report.Score == 1 {
			t.Errorf("%s: categories %s, score %v", mode, got, report.Score)
		}
	}
}

// TestCheck fails a test with what differs, and passes a faithful replay.
func TestCheck(t *testing.T) {
	path := recordTwoCalls(t)
	b := testbench.NewReplay(t, path, nil)
	if err := twoCalls(b, "second"); err != nil {
		t.Fatal(err)
	}
	testbench.Check(t, b, fidelity.ByteIdentical)

	f := newFakeT(t)
	b = testbench.NewReplay(f, path, nil)
	_ = twoCalls(b, "another")
	testbench.Check(f, b, fidelity.ByteIdentical)
	said := f.end()
	for _, want := range []string{"is not on the tape", path, "1 refused", `"another"`, "record the run again"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is not in what it said: %s", want, said)
		}
	}
	t.Log(said)
}

// TestReplayThatAsksForLess leaves out the last call.
func TestReplayThatAsksForLess(t *testing.T) {
	b, err := testbench.Replay(recordTwoCalls(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Model().Complete(context.Background(), &fixture.Request{Messages: "first"}); err != nil {
		t.Fatal(err)
	}
	report, err := b.Verdict(fidelity.Semantic)
	if err != nil {
		t.Fatal(err)
	}
	if got := categorySet(report); got != string(fidelity.MissingInReplay) || report.Total() != 4 {
		t.Errorf("%d times %s", report.Total(), got)
	}
}

// TestReplayOverItsOwnTape is refused before anything is lost.
func TestReplayOverItsOwnTape(t *testing.T) {
	path := recordTwoCalls(t)
	before := readAll(t, path)
	if _, err := testbench.Replay(path, &testbench.Config{Emit: filepath.Join(filepath.Dir(path), ".", "run.tape")}); err == nil {
		t.Error("it began")
	}
	if readAll(t, path) != before {
		t.Error("the tape was changed")
	}
}

// TestReplayTellsARefusedCallThatIsNotTheFirstDivergence asks for a random number that the tape lacks, behind another divergence.
func TestReplayTellsARefusedCallThatIsNotTheFirstDivergence(t *testing.T) {
	path := recordTwoCalls(t)
	for _, mode := range []fidelity.Mode{fidelity.Semantic, fidelity.Outcome} {
		b, err := testbench.Replay(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		b.Clock().Monotonic()
		if _, err := b.Random().Bytes(3); err == nil {
			t.Error("it was answered")
		}
		report, err := b.Verdict(mode)
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		if err := report.WriteText(&text, nil); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(text.String(), "a reading of 3 bytes is not what comes next on the tape"); n != 1 {
			t.Errorf("%s: what was asked stands there %d times:\n%s", mode, n, &text)
		}
	}
}

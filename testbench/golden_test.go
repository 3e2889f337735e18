package testbench_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/llm/fixture"
	"github.com/tapedeck-dev/tapedeck/testbench"
)

var _ = testbench.UpdateFlag()

// asks makes one call of a model between two sleeps, on a bench that answers it with a text too long for a record.
func asks(t testing.TB, question string) *testbench.Bench {
	t.Helper()
	b := testbench.New(t, &testbench.Config{
		Name: "agent", Args: []string{"--fast"},
		LLM: testbench.LLM{Rules: []fixture.Rule{{Match: fixture.Match{Any: true}, Response: &fixture.Response{Text: strings.Repeat("long ", 2000)}}}},
	})
	ctx := context.Background()
	for _, f := range []func() error{
		func() error { return b.Clock().Sleep(ctx, time.Minute) },
		func() error {
			_, err := b.Model().Complete(ctx, &fixture.Request{Messages: question})
			return err
		},
		func() error { return b.Clock().Sleep(ctx, time.Hour) },
	} {
		if err := f(); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

func TestGolden(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deep", "agent.tape")
	t.Setenv(testbench.UpdateEnv, "")

	f := newFakeT(t)
	testbench.Golden(f, asks(f, "who?"), path)
	if said := f.end(); !strings.Contains(said, "there is no golden tape") || !strings.Contains(said, testbench.UpdateEnv+"=1") {
		t.Errorf("without a golden tape it said %q", said)
	}

	t.Setenv(testbench.UpdateEnv, "1")
	testbench.Golden(t, asks(t, "who?"), path)
	first := readAll(t, path)
	blobs, err := os.ReadDir(path + ".cas")
	if err != nil || len(blobs) != 1 {
		t.Fatalf("%d blobs, %v", len(blobs), err)
	}

	t.Setenv(testbench.UpdateEnv, "")
	testbench.Golden(t, asks(t, "who?"), path)

	gone := filepath.Join(path+".cas", blobs[0].Name())
	if err := os.Rename(gone, path+".kept"); err != nil {
		t.Fatal(err)
	}
	f = newFakeT(t)
	testbench.Golden(f, asks(f, "who?"), path)
	if said := f.end(); !strings.Contains(said, "blob "+blobs[0].Name()+" is missing") {
		t.Errorf("without a blob of the golden tape it said %q", said)
	}
	if err := os.Rename(path+".kept", gone); err != nil {
		t.Fatal(err)
	}

	f = newFakeT(t)
	testbench.Golden(f, asks(f, "what?"), path)
	said := f.end()
	for _, want := range []string{path, testbench.UpdateEnv + "=1", "the request to the model changed", `"who?"`, `"what?"`} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is not in what it said: %s", want, said)
		}
	}
	t.Log(said)
	if readAll(t, path) != first {
		t.Error("the golden tape was written without being asked")
	}
}

// TestGoldenLeavesWhatSaysTheSame writes nothing, for the version of the producer is no difference.
func TestGoldenLeavesWhatSaysTheSame(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agent.tape")
	t.Setenv(testbench.UpdateEnv, "1")
	testbench.Golden(t, asks(t, "who?"), path)
	old := strings.Replace(readAll(t, path), `"harn_version":"tapedeck `, `"harn_version":"tapedeck 0.0.0-old+`, 1)
	if err := os.WriteFile(path, []byte(old), 0o644); err != nil {
		t.Fatal(err)
	}
	testbench.Golden(t, asks(t, "who?"), path)
	if readAll(t, path) != old {
		t.Error("a golden tape that says the same was written anew")
	}
	t.Setenv(testbench.UpdateEnv, "")
	testbench.Golden(t, asks(t, "who?"), path)
}

// TestGoldenHoldsTheArguments has two runs that differ in nothing else.
func TestGoldenHoldsTheArguments(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agent.tape")
	run := func(tb testing.TB, args ...string) {
		testbench.Golden(tb, testbench.New(tb, &testbench.Config{Name: "agent", Args: args}), path)
	}
	t.Setenv(testbench.UpdateEnv, "1")
	run(t, "--daily")
	t.Setenv(testbench.UpdateEnv, "")
	run(t, "--daily")
	f := newFakeT(t)
	run(f, "--weekly")
	if said := f.end(); !strings.Contains(said, "argv") || !strings.Contains(said, "--weekly") {
		t.Errorf("it said %q", said)
	}
}

func readAll(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

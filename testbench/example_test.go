package testbench_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/llm/fixture"
	"github.com/tapedeck-dev/tapedeck/axis/process"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/testbench"
)

// standup is an agent: it asks a model what to do, does it, and writes down what came of it a day later.
func standup(ctx context.Context, b *testbench.Bench, question string) error {
	res, err := b.Model().Complete(ctx, &fixture.Request{Messages: question})
	if err != nil {
		return err
	}
	out, err := b.Processes().Command(ctx, "git", strings.Fields(res.Text)...).Output()
	if err != nil {
		return err
	}
	if err := b.Clock().Sleep(ctx, 24*time.Hour); err != nil {
		return err
	}
	note := fmt.Sprintf("%s: %s", b.Clock().Now().Format(time.DateOnly), out)
	return b.Files().WriteFile("standup.txt", []byte(note), 0o644)
}

// world is what standup runs on: a model that gives one answer, and a process tape of one command.
func world(path string) *testbench.Config {
	return &testbench.Config{
		Name: "standup", Emit: path,
		LLM: testbench.LLM{Rules: []fixture.Rule{
			{Match: fixture.Match{Contains: "What changed"}, Response: &fixture.Response{Text: "log -1 --format=%s"}},
		}},
		Processes: testbench.Processes{Calls: []process.Call{
			{Program: "git", Args: []string{"log", "-1", "--format=%s"}, Stdout: "fix the parser\n", DurationMS: 12},
		}},
	}
}

// A day passes at once, and what the agent wrote is looked at.
func ExampleOpen() {
	b, err := testbench.Open(world(""))
	check(err)
	defer b.Close()
	check(standup(context.Background(), b, "What changed yesterday?"))
	note, _ := b.Files().ReadFile("standup.txt")
	fmt.Print(string(note))
	// Output: 2026-01-02: fix the parser
}

// The agent is changed after its run was recorded: the replay says what it asks for now.
func ExampleReplay() {
	dir, err := os.MkdirTemp("", "standup")
	check(err)
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "standup.tape")
	ctx := context.Background()

	b, err := testbench.Open(world(path))
	check(err)
	check(standup(ctx, b, "What changed yesterday?"))
	check(b.Close())

	for _, question := range []string{"What changed yesterday?", "What changed today?"} {
		b, err := testbench.Replay(path, nil)
		check(err)
		_ = standup(ctx, b, question) // the verdict says why it failed
		report, err := b.Verdict(fidelity.Semantic)
		check(err)
		fmt.Println(report)
		for _, d := range report.Divergences[:min(1, len(report.Divergences))] {
			fmt.Println(d.Category)
			fmt.Println(d.Cause)
		}
	}
	// Output:
	// FAITHFUL (semantic, 5 records recorded, 5 on replay)
	// DIVERGED: 1 divergence, 1 refused (semantic, 5 records recorded, 1 on replay)
	// llm_request_digest
	// messages[0].content (user)
	//   - "What changed yesterday?"
	//   + "What changed today?"
}

// Two branches wait side by side on a clock that stands still: the one that is due first goes on first, in every run.
func ExampleBench_Parallel() {
	b, err := testbench.Open(nil)
	check(err)
	defer b.Close()
	wait := func(name string, d time.Duration) func(ctx context.Context) error {
		return func(ctx context.Context) error {
			defer func() { fmt.Println(name, b.Clock().Now().Format(time.TimeOnly)) }()
			return b.Clock().Sleep(ctx, d)
		}
	}
	check(b.Parallel(context.Background(), wait("slow", 2*time.Hour), wait("fast", time.Hour)))
	// Output:
	// fast 01:00:00
	// slow 02:00:00
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

package testbench_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/llm/fixture"
	"github.com/tapedeck-dev/tapedeck/testbench"
)

// TestParallelLeavesTheSameTape has 64 branches that sleep, ask, draw and write, again and again: the bytes are the same.
func TestParallelLeavesTheSameTape(t *testing.T) {
	var first []byte
	for i := range 50 {
		var tape bytes.Buffer
		b := testbench.New(t, &testbench.Config{EmitTo: &tape, LLM: testbench.LLM{Rules: []fixture.Rule{
			{Match: fixture.Match{Any: true}, Times: 64, Stream: []fixture.Piece{{Text: "yes", DelayMS: 30}}},
		}}})
		branches := make([]func(ctx context.Context) error, 64)
		for n := range branches {
			branches[n] = func(ctx context.Context) error { return branch(ctx, b, n) }
		}
		if err := b.Parallel(context.Background(), branches...); err != nil {
			t.Fatal(err)
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = tape.Bytes()
		} else if !bytes.Equal(first, tape.Bytes()) {
			t.Fatalf("run %d writes another tape", i)
		}
	}
	if lines := bytes.Count(first, []byte{10}); lines != 1+64*4 {
		t.Errorf("%d lines", lines)
	}
}

func branch(ctx context.Context, b *testbench.Bench, n int) error {
	if err := b.Clock().Sleep(ctx, time.Duration(n%7)*time.Second); err != nil {
		return err
	}
	if _, err := b.Model().Complete(ctx, &fixture.Request{Messages: fmt.Sprint("branch ", n)}); err != nil {
		return err
	}
	if _, err := b.Random().Int(1, 1000); err != nil {
		return err
	}
	return b.Files().WriteFile(fmt.Sprintf("%d.txt", n), []byte("done"), 0o644)
}

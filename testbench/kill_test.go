package testbench_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/llm/fixture"
	"github.com/tapedeck-dev/tapedeck/tape"
	"github.com/tapedeck-dev/tapedeck/testbench"
)

// killedEnv has the test binary run until it is killed, its tape at the path that this variable holds.
const killedEnv = "TAPEDECK_TEST_KILLED_TAPE"

func TestMain(m *testing.M) {
	if path := os.Getenv(killedEnv); path != "" {
		runUntilKilled(path)
	}
	os.Exit(m.Run())
}

// runUntilKilled makes calls whose answers are too long for a record, each another one, and says every hundredth.
func runUntilKilled(path string) {
	n := 0
	source := sourceFunc(func(*fixture.Request) *fixture.Answer {
		n++
		return &fixture.Answer{Response: &fixture.Response{Text: fmt.Sprint(n, strings.Repeat("x", tape.InlineLimit))}}
	})
	b, err := testbench.Open(&testbench.Config{Emit: path, LLM: testbench.LLM{Source: source}})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	for i := 0; ; i++ {
		if _, err := b.Model().Complete(context.Background(), &fixture.Request{Messages: fmt.Sprint(i)}); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		if i%100 == 99 {
			fmt.Println("made", i+1)
		}
	}
}

type sourceFunc func(r *fixture.Request) *fixture.Answer

func (f sourceFunc) Complete(_ context.Context, r *fixture.Request) (*fixture.Answer, error) {
	return f(r), nil
}

// TestKilledRunLeavesATape kills a run in the middle: its tape loads, with every payload that it names.
func TestKilledRunLeavesATape(t *testing.T) {
	path := filepath.Join(t.TempDir(), "killed.tape")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), killedEnv+"="+path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	lines := bufio.NewScanner(out)
	for said := 0; said < 5 && lines.Scan(); said++ {
		if !strings.HasPrefix(lines.Text(), "made") {
			t.Errorf("it said %q", lines.Text())
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	f, err := tape.Open(path, &tape.ReaderOptions{Tolerant: true})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	records := 0
	for rec, err := range f.Records() {
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range tape.Payloads(rec.Kind) {
			if _, err := p.Bytes(f.Store); err != nil {
				t.Errorf("record %d: %v", rec.Seq, err)
			}
		}
		records++
	}
	if records < 100 {
		t.Errorf("%d records are left of 500 or more", records)
	}
}

// TestAWaitingRunIsOnTheDisk: who kills a run while it really waits finds what came before.
func TestAWaitingRunIsOnTheDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "waiting.tape")
	b, err := testbench.Open(&testbench.Config{Emit: path, Clock: testbench.Clock{Real: true}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	slept := make(chan error)
	b.Clock().Now()
	go func() { slept <- b.Clock().Sleep(ctx, time.Hour) }()
	for deadline := time.Now().Add(10 * time.Second); len(load(t, path)) == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("nothing is on the disk")
		}
	}
	cancel()
	<-slept
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
}

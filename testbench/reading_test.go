package testbench_test

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/testbench"
)

// drawn is a run that draws 8 random bytes and writes a file; with extra it reads more of what no outcome shows.
func drawn(b *testbench.Bench, extra bool) (all [][]byte, times []int64, err error) {
	sizes := []int{8}
	if extra {
		sizes = []int{32, 8, 8} // what a runtime reads first, what the tape has, what it has no more
	}
	for _, n := range sizes {
		p, err := b.Random().Bytes(n)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, p)
	}
	for range len(sizes) {
		now, err := b.Clock().ReadWall()
		if err != nil {
			return nil, nil, err
		}
		times = append(times, now.UnixMilli())
	}
	return all, times, b.Files().WriteFile("out.txt", []byte("done"), 0o644)
}

// TestOwnReadings replays another program with the same outcome, whose runtime reads what the tape does not hold.
func TestOwnReadings(t *testing.T) {
	for name, c := range map[string]testbench.Clock{"paused": {}, "real": {Real: true}} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "t.tape")
			b := testbench.New(t, &testbench.Config{Emit: path, Seed: 7, Clock: c})
			recorded, at, err := drawn(b, false)
			if err != nil {
				t.Fatal(err)
			}
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}

			strict, err := testbench.Replay(path, nil)
			if err != nil {
				t.Fatal(err)
			}
			var refused *testbench.RefusedError
			if _, _, err := drawn(strict, true); !errors.As(err, &refused) {
				t.Errorf("without OwnReadings: %v", err)
			}
			if r, err := strict.Verdict(fidelity.Outcome); err != nil || r.Faithful() {
				t.Errorf("without OwnReadings: %v, %v", r, err)
			}

			var draws [2][][]byte
			for i := range draws {
				var times []int64
				own := testbench.NewReplay(t, path, &testbench.Config{OwnReadings: true, Seed: 3})
				if draws[i], times, err = drawn(own, true); err != nil {
					t.Fatal(err)
				}
				if !slices.IsSorted(times) || times[0] != at[0] {
					t.Errorf("the clock went back: %v, recorded %v", times, at)
				}
				checkOwn(t, own, name == "real")
			}
			if !slices.EqualFunc(draws[0], draws[1], slices.Equal) {
				t.Errorf("two replays drew %x", draws)
			}
			if !slices.Equal(draws[0][1], recorded[0]) {
				t.Errorf("what the tape holds is not what was given: %x, recorded %x", draws[0], recorded)
			}
		})
	}
}

// checkOwn looks whether the report says what did not come from the tape.
func checkOwn(t *testing.T, b *testbench.Bench, realClock bool) {
	t.Helper()
	r, err := b.Verdict(fidelity.Outcome)
	if err != nil {
		t.Fatal(err)
	}
	notes := strings.Join(r.Notes, "\n")
	if !r.Faithful() || !strings.Contains(notes, "seed 3: 2 readings of random numbers") || strings.Contains(notes, "2 readings of the clock") != realClock {
		t.Errorf("%v, notes %q", r, notes)
	}
	if r, err := b.Verdict(fidelity.Semantic); err != nil || r.Faithful() {
		t.Errorf("semantic: %v, %v", r, err)
	}
}

// TestOwnReadingsAskForNothingElse: a call of a model, say, ends a replay as ever.
func TestOwnReadingsAskForNothingElse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.tape")
	b := testbench.New(t, &testbench.Config{Emit: path})
	if err := b.Clock().Sleep(t.Context(), time.Second); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	replay, err := testbench.Replay(path, &testbench.Config{OwnReadings: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := replay.Processes().Command(t.Context(), "git", "status").Run(); err == nil {
		t.Error("a command was answered")
	}
	if r, err := replay.Verdict(fidelity.Outcome); err != nil || r.Faithful() || len(r.Refused) != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

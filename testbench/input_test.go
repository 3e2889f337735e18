package testbench_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/testbench"
)

// readStdin reads one path so often, of which each reading gives the next text.
func readStdin(b *testbench.Bench, times int) (all []string, err error) {
	texts := []string{"first", "second", "third"}
	for range times {
		content, err := b.Input("/dev/stdin", func() ([]byte, error) {
			text := texts[0]
			texts = texts[1:]
			return []byte(text), nil
		})
		if err != nil {
			return all, err
		}
		all = append(all, string(content))
	}
	return all, nil
}

// TestInputsOfOnePathComeInTheirOrder replays two readings of one path, then one more than there were.
func TestInputsOfOnePathComeInTheirOrder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.tape")
	b := testbench.New(t, &testbench.Config{Emit: path})
	if _, err := readStdin(b, 2); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	replay := testbench.NewReplay(t, path, nil)
	if got, err := readStdin(replay, 2); err != nil || len(got) != 2 || got[1] != "second" {
		t.Errorf("%q, %v", got, err)
	}
	testbench.Check(t, replay, fidelity.ByteIdentical)

	more, err := testbench.Replay(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	var refused *testbench.RefusedError
	if got, err := readStdin(more, 3); len(got) != 2 || !errors.As(err, &refused) {
		t.Errorf("%q, %v", got, err)
	}
	if err := more.Close(); err != nil {
		t.Error(err)
	}
}

// TestCloseWithinOnFinish has a hook end the run that waits for it: by Close, and by Finish.
func TestCloseWithinOnFinish(t *testing.T) {
	for name, end := range map[string]func(b *testbench.Bench) error{
		"Close":  (*testbench.Bench).Close,
		"Finish": func(b *testbench.Bench) error { return b.Finish(context.Background()) },
	} {
		b, err := testbench.Open(nil)
		if err != nil {
			t.Fatal(err)
		}
		b.OnFinish(func(context.Context) error { return b.Close() })
		later := false
		b.OnFinish(func(context.Context) error { later = true; return nil })
		if err := end(b); !errors.Is(err, testbench.ErrFinishing) {
			t.Errorf("%s: %v", name, err)
		}
		if !later {
			t.Errorf("%s: what was to run later did not", name)
		}
		if err := b.Close(); name == "Finish" && err != nil {
			t.Errorf("the end itself: %v", err)
		}
	}
}

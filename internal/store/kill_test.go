package store_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/store"
	"github.com/tapedeck-dev/tapedeck/runtrace"
)

// childEnv makes this program the child that TestKilled kills: its value is the store's directory, a space, and its life.
const childEnv = "TAPEDECK_STORE_CHILD"

func TestMain(m *testing.M) {
	if job := os.Getenv(childEnv); job != "" {
		dir, life, _ := strings.Cut(job, " ")
		if err := writeUntilKilled(dir, life); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

const sessions = 200

// writeUntilKilled says on stdout what is acknowledged: "ready", then lines of run and number of turns, or "end" for it.
func writeUntilKilled(dir, life string) error {
	s, err := store.Open(context.Background(), dir, &store.Options{Segment: 256 << 10, IndexEvery: 20 * time.Millisecond, Descriptors: 100})
	if err != nil {
		return err
	}
	var mu sync.Mutex
	tell := func(format string, args ...any) {
		line := fmt.Appendf(nil, format+"\n", args...)
		mu.Lock()
		defer mu.Unlock()
		os.Stdout.Write(line) // one write a line: what was said was said
	}
	tell("ready")
	var group sync.WaitGroup
	for i := range sessions {
		group.Go(func() {
			for k := 0; ; k++ {
				if err := session(s, fmt.Sprintf("life%s-%d-%d", life, i, k), tell); err != nil {
					fmt.Fprintln(os.Stderr, err)
					os.Exit(1)
				}
			}
		})
	}
	group.Wait()
	return nil
}

// session writes one run.
func session(s store.Store, run string, tell func(string, ...any)) error {
	ctx := context.Background()
	id := runtrace.ID{Agent: "agent" + run[len(run)-1:], Run: run}
	if _, err := s.Start(ctx, &runtrace.Started{RunID: id.Run, AgentID: id.Agent, Intent: "live"}); err != nil {
		return err
	}
	tell("%s %s 0", id.Agent, run)
	for n := 0; n < 30; {
		texts := make([]string, 1+rand.IntN(3))
		for k := range texts {
			texts[k] = fmt.Sprint(run, "/", n+k, strings.Repeat("x", rand.IntN(400)))
		}
		if err := s.Verdict(ctx, id, []byte(`{}`)); err != nil {
			return err
		}
		base, err := say(s, id, texts...)
		if err != nil || base != n {
			return fmt.Errorf("%s: base %d, want %d: %w", run, base, n, err)
		}
		n += len(texts)
		tell("%s %s %d", id.Agent, run, n)
	}
	if err := s.End(ctx, id, &runtrace.Ended{}); err != nil {
		return err
	}
	tell("%s %s end", id.Agent, run)
	return nil
}

// promised is what was acknowledged of a run.
type promised struct {
	turns int
	ended bool
}

// TestKilled kills a process that writes under many sessions at a random moment, again and again in the same directory, and looks
// each time for everything that was ever acknowledged.
func TestKilled(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	acked := map[runtrace.ID]promised{}
	turns := 0
	for life := range pick(2, 200) {
		fresh := map[runtrace.ID]promised{}
		live(t, dir, life, fresh)
		s, err := store.Open(t.Context(), dir, nil)
		if err != nil {
			t.Fatalf("life %d: %v", life, err)
		}
		for id, p := range fresh {
			acked[id] = p
			turns += p.turns
		}
		look := fresh
		if life%20 == 9 || life == pick(2, 200)-1 {
			look = acked // the old ones must still be as they were
		}
		checkPromised(t, s, dir, look)
		if list, err := s.List(t.Context(), ""); err != nil || len(list) < len(acked) {
			t.Errorf("%d runs listed, %d were acknowledged, %v", len(list), len(acked), err)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if t.Failed() {
			t.Fatalf("life %d", life)
		}
	}
	t.Logf("%d runs with %d acknowledged turns", len(acked), turns)
}

// live is one life of the child, which ends when it is killed.
func live(t *testing.T, dir string, life int, acked map[runtrace.ID]promised) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprint(childEnv, "=", dir, " ", life))
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if lines.Text() == "ready" {
			time.AfterFunc(time.Duration(20+rand.IntN(300))*time.Millisecond, func() { cmd.Process.Kill() })
			continue
		}
		var id runtrace.ID
		var what string
		if _, err := fmt.Sscanf(lines.Text(), "%s %s %s", &id.Agent, &id.Run, &what); err != nil {
			continue // a line that was cut
		}
		p := acked[id]
		if what == "end" {
			p.ended = true
		} else if n := 0; true {
			fmt.Sscan(what, &n)
			p.turns = max(p.turns, n)
		}
		acked[id] = p
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != -1 {
		t.Fatalf("it was not killed: %v\n%s", err, stderr.String())
	}
}

// checkPromised looks for what was acknowledged: in the store and in the files.
func checkPromised(t *testing.T, s *store.Disk, dir string, acked map[runtrace.ID]promised) {
	t.Helper()
	repaired := s.Stats().Repairs
	for id, p := range acked {
		got := prompts(t, s, id)
		if len(got) < p.turns {
			t.Errorf("%s has %d turns, %d were acknowledged", id, len(got), p.turns)
		}
		for k, text := range got {
			if want := fmt.Sprint(id.Run, "/", k); strings.TrimRight(text, "x") != want {
				t.Errorf("turn %d of %s is %q", k, id, text)
			}
		}
		sum, err := s.Find(t.Context(), id.Run)
		if err != nil || sum.Turns != len(got) || sum.Status == runtrace.InProgress || p.ended && sum.Status != runtrace.Completed {
			t.Errorf("%+v, %v; want %d turns, ended %t", sum, err, len(got), p.ended)
		}
		tr, err := s.Trace(t.Context(), id, nil)
		if err != nil {
			t.Fatal(err)
		}
		var want strings.Builder
		for _, r := range tr.Records {
			want.Write(append(r, '\n'))
		}
		if b, err := os.ReadFile(filepath.Join(dir, "runs", id.Agent, id.Run+".jsonl")); err != nil || string(b) != want.String() {
			t.Errorf("the file of %s has %d bytes, want %d, %v", id, len(b), want.Len(), err)
		}
	}
	if n := s.Stats().Repairs; n != repaired {
		t.Errorf("%d files were not repaired before they were read", n-repaired)
	}
}

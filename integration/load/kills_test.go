//go:build load && linux

package load

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// kills ends a daemon with SIGKILL at random moments while sessions write turns, starts it again over the same directory each
// time, and holds every run's file to what was acknowledged.
func kills(ctx context.Context, st *stage) error {
	times, n := of(st, 5, 200), of(st, 50, 200)
	data := filepath.Join(st.dir, "kills")
	defer os.RemoveAll(data)
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 0))
	w := &witness{acked: map[string]int{}, agents: map[string]string{}}
	var turns, lost int
	for i := range times {
		d, err := st.serve(ctx, data)
		if err != nil {
			return fmt.Errorf("seed %d, start %d: %w", seed, i, err)
		}
		if err := w.examine(data); err != nil {
			d.kill()
			return fmt.Errorf("seed %d, after kill %d: %w", seed, i, err)
		}
		w.forget()
		killAfter(ctx, d, w, n, i, time.Duration(r.Int64N(int64(1500*time.Millisecond))))
		turns += w.total()
		lost += w.unanswered
	}
	d, err := st.serve(ctx, data)
	if err != nil {
		return err
	}
	defer d.kill()
	if err := w.examine(data); err != nil {
		return fmt.Errorf("seed %d, after the last kill: %w", seed, err)
	}
	st.note(fmt.Sprintf("%d kills, %d sessions", times, n),
		"%d acknowledged turns, each there once, in order, in its own run's file; %d calls were under way and answered by nobody; runs left open read as incomplete", turns, lost)
	return nil
}

// A witness knows what was acknowledged since the last examination.
type witness struct {
	mu         sync.Mutex
	acked      map[string]int    // turns by run
	agents     map[string]string // by run
	unanswered int
}

func (w *witness) total() (sum int) {
	for _, n := range w.acked {
		sum += n
	}
	return sum
}

func (w *witness) forget() {
	clear(w.acked)
	clear(w.agents)
	w.unanswered = 0
}

// killAfter has n sessions write turns and kills the daemon under them.
func killAfter(ctx context.Context, d *daemon, w *witness, n, round int, after time.Duration) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { w.write(ctx, d, fmt.Sprintf("k%d-%d", round, i)) })
	}
	time.Sleep(after)
	d.kill()
	wg.Wait()
}

// write records turns of random batches until the daemon is gone. Each turn carries its run and number.
func (w *witness) write(ctx context.Context, d *daemon, agent string) {
	s, err := d.dial(ctx, agent)
	if err != nil {
		return
	}
	defer s.close()
	run := "run-" + agent
	if err := s.start(ctx, run); err != nil {
		return
	}
	w.mu.Lock()
	w.acked[run], w.agents[run] = 0, agent
	w.mu.Unlock()
	for kept := 0; kept < 1900; {
		size := 1 + rand.IntN(4)
		marks := make([]string, size)
		for i := range marks {
			marks[i] = turn(fmt.Sprintf("%s/%d", run, kept+i))
		}
		base, err := s.record(ctx, "["+strings.Join(marks, ",")+"]")
		w.mu.Lock()
		if err != nil {
			w.unanswered++
			w.mu.Unlock()
			return
		}
		if base == kept {
			kept += size
			w.acked[run] = kept
		} else {
			w.acked[run] = -1 // a gap or a repeat: examine tells
		}
		w.mu.Unlock()
	}
}

// examine holds the files of all runs to what was acknowledged. More may be there than was: an acknowledgement may have been
// under way.
func (w *witness) examine(data string) error {
	var all []error
	for run, acked := range w.acked {
		if acked < 0 {
			all = append(all, fmt.Errorf("%s: an index was acknowledged that is not the next one", run))
			continue
		}
		if err := examineRun(filepath.Join(data, "runs", w.agents[run], run+".jsonl"), run, acked); err != nil {
			all = append(all, err)
		}
	}
	return errors.Join(all...)
}

func examineRun(path, run string, acked int) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(bytes.NewReader(b))
	lines.Buffer(nil, 1<<20)
	turns, last := 0, ""
	for n := 0; lines.Scan(); n++ {
		var r struct {
			Record     string
			Index      int
			Status     string
			RunID      string `json:"run_id"`
			Parameters struct{ Mark string }
		}
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return fmt.Errorf("%s:%d: %w", path, n+1, err)
		}
		switch {
		case (n == 0) != (r.Record == "started"):
			return fmt.Errorf("%s:%d is %q", path, n+1, r.Record)
		case r.Record == "turn" && (r.Index != turns || r.Parameters.Mark != fmt.Sprintf("%s/%d", run, turns)):
			return fmt.Errorf("%s:%d: turn %d of %q, want turn %d of %q", path, n+1, r.Index, r.Parameters.Mark, turns, run)
		case r.Record == "turn":
			turns++
		}
		last = r.Record + " " + r.Status
	}
	switch {
	case len(b) > 0 && b[len(b)-1] != '\n':
		return fmt.Errorf("%s: its last line is torn", path)
	case turns < acked:
		return fmt.Errorf("%s: %d turns, %d were acknowledged", path, turns, acked)
	case last != "ended incomplete":
		return fmt.Errorf("%s: its last record is %q, want one that says incomplete", path, last)
	}
	return nil
}

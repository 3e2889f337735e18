package sessionlog

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// victimEnv names the log that this test binary is to write, in place of running tests, until it is killed; producerEnv one
// that it appends to as the producers from a number on.
const (
	victimEnv   = "SESSIONLOG_TEST_VICTIM"
	producerEnv = "SESSIONLOG_TEST_PRODUCER"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(victimEnv); path != "" {
		fmt.Fprintln(os.Stderr, "victim:", appendForever(path))
		os.Exit(1)
	}
	if job := os.Getenv(producerEnv); job != "" {
		if err := appendTurns(job); err != nil {
			fmt.Fprintln(os.Stderr, "producer:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// appendForever appends with four producers, and tells on stdout every seq that was given.
func appendForever(path string) error {
	w, err := OpenWriter(path, nil)
	if err != nil {
		return err
	}
	failed := make(chan error)
	for p := range 4 {
		go func() {
			for i := 1; ; i++ {
				text := strings.Repeat(fmt.Sprint(i, " of ", p, "\n"), rand.IntN(3000))
				seq, err := w.Append(&Unknown{EventKind: Kind(text)}, &Stamp{G: uint64(p + 1)})
				if err != nil {
					failed <- err
					return
				}
				fmt.Println(seq)
			}
		}()
	}
	return <-failed
}

// appendTurns is one process of TestProcessesAppend.
func appendTurns(job string) error {
	first, path, _ := strings.Cut(job, " ")
	from, err := strconv.Atoi(first)
	if err != nil {
		return err
	}
	w, err := OpenWriter(path, nil)
	if err != nil {
		return err
	}
	errs := make([]error, 4)
	var wg sync.WaitGroup
	for p := range errs {
		wg.Go(func() {
			for i := range 200 {
				e := &Unknown{EventKind: Kind(strings.Repeat("x", (i*p)%5000)), Common: Common{Turn: i + 1}}
				if _, errs[p] = w.Append(e, &Stamp{G: uint64(from + p)}); errs[p] != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return w.Close()
}

// A process that is killed at any moment leaves a log that holds all that was acknowledged; the next one goes on behind it.
func TestKilledWriter(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts many processes")
	}
	path := filepath.Join(t.TempDir(), "session.jsonl")
	acknowledged := -1
	kills := 4
	if os.Getenv("TAPEDECK_LONG") != "" {
		kills = 50
	}
	for range kills {
		acknowledged = max(acknowledged, killAfter(t, path, 1+rand.IntN(150)))
		l, err := LoadFile(path, &ReaderOptions{Tolerant: true})
		if err != nil {
			t.Fatal(err)
		}
		if !l.Order.Sound() || len(l.Entries) < acknowledged+1 {
			t.Fatalf("%d entries, %d acknowledged, %v", len(l.Entries), acknowledged+1, l.Order.First)
		}
	}
	w, err := OpenWriter(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if seq, err := w.Append(&PageIn{}, nil); err != nil || int(seq) <= acknowledged {
		t.Errorf("seq %d behind %d, %v", seq, acknowledged, err)
	}
	if l, err := LoadFile(path, nil); err != nil || !l.Order.Sound() {
		t.Errorf("%v, %v", l.Order.First, err)
	}
}

// killAfter starts a victim, kills it after so many acknowledgements, and returns the highest seq that it gave.
func killAfter(t *testing.T, path string, acks int) int {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), victimEnv+"="+path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	last := -1
	lines := bufio.NewScanner(out)
	for n := 0; lines.Scan(); n++ {
		if n == acks {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
		seq, err := strconv.Atoi(lines.Text())
		if err == nil {
			last = max(last, seq)
		}
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() == 1 {
		t.Fatalf("the victim ended by itself: %v", err)
	}
	return last
}

func TestProcessesAppend(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts processes")
	}
	path := filepath.Join(t.TempDir(), "session.jsonl")
	var wg sync.WaitGroup
	for p := range 3 {
		wg.Go(func() {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d %s", producerEnv, 1+4*p, path))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	wg.Wait()
	checkProducers(t, path, 12, 200)
}

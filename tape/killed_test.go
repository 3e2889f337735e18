package tape_test

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// victimEnv names the tape that this test binary is to write, in place of running tests, until it is killed.
const victimEnv = "TAPE_TEST_VICTIM"

func TestMain(m *testing.M) {
	if path := os.Getenv(victimEnv); path != "" {
		fmt.Fprintln(os.Stderr, "victim:", recordForever(path))
		os.Exit(1)
	}
	if job := os.Getenv(jobEnv); job != "" {
		doJob(job)
	}
	os.Exit(m.Run())
}

// recordForever records with four producers, and tells on stdout how many records are behind the barrier.
func recordForever(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	store, err := cas.OpenDir(path+tape.StoreSuffix, nil)
	if err != nil {
		return err
	}
	w, err := tape.NewWriter(f, &tape.Header{Producer: "victim"})
	if err != nil {
		return err
	}
	rec := tape.NewRecorder(w, &tape.RecorderOptions{Store: store})
	failed := make(chan error)
	var mu sync.Mutex // over stdout, so that the numbers only rise
	for p := range 4 {
		go func() {
			for i := 0; ; i++ {
				if err := recordOne(rec, p, i); err != nil {
					failed <- err
					return
				}
				mu.Lock()
				n := rec.Count()
				if err := rec.Flush(); err == nil {
					fmt.Println(n)
				}
				mu.Unlock()
			}
		}()
	}
	return <-failed
}

// recordOne records a payload of its own, of any length and in either form.
func recordOne(rec *tape.Recorder, producer, i int) error {
	body := bytes.Repeat(fmt.Appendf(nil, "%d of %d\xff", i, producer), rand.IntN(3000))
	if i%2 == 0 {
		body = bytes.ToValidUTF8(body, nil)
	}
	p, err := rec.Payload(body)
	if err != nil {
		return err
	}
	return rec.Record(&tape.RandomRead{Length: p.Len, Payload: p})
}

func TestAKilledRecorderLeavesEverythingUpToItsLastWholeRecord(t *testing.T) {
	t.Parallel()
	kills := 5
	if long() {
		kills = 100
	}
	for i := range kills {
		path := filepath.Join(t.TempDir(), "run.tape")
		promised := runVictim(t, path, rand.IntN(10*i+1))
		records, store := loadFile(t, path)
		if len(records) < promised {
			t.Errorf("%d records behind the barrier, %d on the tape", promised, len(records))
		}
		checkBlobs(t, records, store, "whole")
	}
}

// loadFile reads a tape on disk as far as it is whole.
func loadFile(t *testing.T, path string) ([]*tape.Record, cas.Store) {
	t.Helper()
	f, err := tape.Open(path, &tape.ReaderOptions{Tolerant: true})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []*tape.Record
	for rec, err := range f.Records() {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, rec)
	}
	return all, f.Store
}

// runVictim kills a victim as soon as it has told a number of records n times, and returns the last such number.
func runVictim(t *testing.T, path string, n int) (promised int) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), victimEnv+"="+path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	for range n + 1 {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if promised, err = strconv.Atoi(strings.TrimSpace(line)); err != nil {
			t.Fatal(err)
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait() // its error is that it was killed
	return promised
}

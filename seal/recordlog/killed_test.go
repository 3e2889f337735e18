package recordlog_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/seal/recordlog"
	"golang.org/x/mod/sumdb/note"
)

// adderEnv has this test's own program add entries, from a number on, until it is killed: "DIR FROM SIGNER VERIFIER".
const adderEnv = "RECORDLOG_TEST_ADDER"

func TestMain(m *testing.M) {
	if spec := os.Getenv(adderEnv); spec != "" {
		addForEver(strings.Split(spec, "\n"))
		return
	}
	os.Exit(m.Run())
}

// addForEver says of each entry when it is in the log.
func addForEver(spec []string) {
	from, _ := strconv.Atoi(spec[1])
	s, errS := note.NewSigner(spec[2])
	v, errV := note.NewVerifier(spec[3])
	if errS != nil || errV != nil {
		fmt.Println("keys", errS, errV)
		return
	}
	for i := from; ; i++ {
		n := 1 + i%3*100 // several at once, so that tiles become full within an Add
		if _, err := recordlog.Add(context.Background(), spec[0], s, v, nil, entries(i*1000, i*1000+n)...); err != nil {
			fmt.Println("add", err)
			return
		}
		fmt.Println("added", i)
	}
}

// TestKilled kills adders at random moments: the log verifies every time, what was said to be in it is in it, and adding goes on.
func TestKilled(t *testing.T) {
	rounds := 6
	if os.Getenv("TAPEDECK_LONG") != "" {
		rounds = 100
	}
	sk, vk, err := note.GenerateKey(rand.Reader, "tester")
	if err != nil {
		t.Fatal(err)
	}
	v, err := note.NewVerifier(vk)
	if err != nil {
		t.Fatal(err)
	}
	k := key{nil, v}
	dir := filepath.Join(t.TempDir(), "log")
	next, said := 0, -1
	var kept []byte
	for range rounds {
		said = max(said, adderUntilKilled(t, strings.Join([]string{dir, strconv.Itoa(next), sk, vk}, "\n")))
		log, err := recordlog.Open(dir, v)
		if err != nil {
			if kept == nil {
				continue // killed before the log began
			}
			t.Fatal(err)
		}
		if got := verify(t, dir, k, kept); len(got.Problems) > 0 {
			t.Fatal(got.Problems)
		}
		kept = checkpoint(t, dir)
		if said >= 0 {
			if _, e, err := log.Find(entry(said * 1000).ID); e == nil || err != nil {
				t.Fatalf("entry %d was added, and is not there: %v", said, err)
			}
		}
		next = said + 1
	}
	if said < 0 {
		t.Error("nothing was ever added")
	}
}

// adderUntilKilled returns the last number of which an adder said that it was in the log, -1 for none.
func adderUntilKilled(t *testing.T, spec string) int {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), adderEnv+"="+spec)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	after, err := rand.Int(rand.Reader, big.NewInt(60))
	if err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(20*time.Millisecond+time.Duration(after.Int64())*time.Millisecond, func() { cmd.Process.Kill() })
	defer timer.Stop()
	last := -1
	for lines := bufio.NewScanner(out); lines.Scan(); {
		n, ok := strings.CutPrefix(lines.Text(), "added ")
		if !ok {
			t.Error(lines.Text())
			continue
		}
		if i, err := strconv.Atoi(n); err == nil {
			last = i
		}
	}
	cmd.Wait()
	return last
}

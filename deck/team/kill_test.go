package team_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/tapedeck-dev/tapedeck/deck/library"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/deck/team"
)

// What a pusher that is to be killed is told by its environment.
const runsVar, blobsVar, recordingVar = "TEAM_TEST_RUNS", "TEAM_TEST_BLOBS", "TEAM_TEST_RECORDING"

// inChild is what a process of a test does that is told so by a variable.
var inChild = map[string]func(string) error{}

func TestMain(m *testing.M) {
	for name, f := range inChild {
		if told := os.Getenv(name); told != "" {
			if err := f(told); err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
			os.Exit(0)
		}
	}
	if runs := os.Getenv(runsVar); runs != "" {
		at, dir := place{runs: runs, blobs: os.Getenv(blobsVar)}, os.Getenv(recordingVar)
		if dir == "" {
			fmt.Println(sweepOn(at))
		} else {
			fmt.Println(pushOn(at, dir))
		}
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// sweepOn sweeps without end.
func sweepOn(at place) error {
	s, err := team.Open(context.Background(), at.runs, at.blobs)
	for err == nil || errors.Is(err, team.ErrRead) {
		_, err = s.Sweep(context.Background())
	}
	return err
}

// pushOn pushes a recording under one id after the other, and says which it was told are there. Before, each was in another project and was let go
// there: no run has its blob when it comes.
func pushOn(at place, dir string) error {
	ctx := context.Background()
	s, err := team.Open(ctx, at.runs, at.blobs)
	if err != nil {
		return err
	}
	skey, _, err := note.GenerateKey(nil, "test")
	if err != nil {
		return err
	}
	signer, err := note.NewSigner(skey)
	if err != nil {
		return err
	}
	gone := fmt.Sprintf("gone%d", os.Getpid())
	for n := 0; ; n++ {
		rec, err := recording.Open(dir)
		if err != nil {
			return err
		}
		rec.Manifest.ID = fmt.Sprintf("run%d-%d", os.Getpid(), n)
		if err := rec.Manifest.Write(dir, false); err != nil {
			return err
		}
		if _, _, err := s.Push(ctx, rec, &team.PushOptions{Project: gone}); err != nil {
			return err
		}
		if _, err := s.Prune(ctx, gone, &team.Rule{MaxSize: 1}, signer); err != nil {
			return err
		}
		if _, _, err := s.Push(ctx, rec, nil); err != nil {
			return err
		}
		fmt.Println(rec.Manifest.ID)
	}
}

// TestKilled: whenever a pusher is killed, and a sweeper beside it, each run that was acknowledged can be pulled, each that is listed too, and a
// sweep takes away what they left, and the next command their temporary files.
func TestKilled(t *testing.T) {
	eachPair(t, func(t *testing.T, at place) {
		s := at.open(t)
		rec := made(t, "one", "alpha", "beta", nil)
		var told []string
		var sweepers []*exec.Cmd
		temp := t.TempDir()
		for range 8 {
			sweeper := exec.CommandContext(t.Context(), os.Args[0])
			sweeper.Env = append(os.Environ(), runsVar+"="+at.runs, blobsVar+"="+at.blobs)
			must(t, sweeper.Start())
			sweepers = append(sweepers, sweeper)
			t.Cleanup(func() { _ = sweeper.Process.Kill() })
			time.AfterFunc(time.Duration(rand.IntN(300))*time.Millisecond, func() { _ = sweeper.Process.Kill() })
			told = append(told, killedPusher(t, at, rec.Dir, temp)...)
		}
		listed, err := s.Runs(t.Context(), &team.Query{Limit: 1 << 20})
		must(t, err)
		have := make(map[string]bool)
		for i := range listed {
			have[listed[i].ID] = true
			_, err := s.Pull(t.Context(), "", listed[i].ID, filepath.Join(t.TempDir(), fmt.Sprint(i)), nil)
			must(t, err)
		}
		for _, id := range told {
			if !have[id] {
				t.Errorf("%s was acknowledged and is gone", id)
			}
		}
		recording.RemoveStale(recording.StaleTemps(temp, library.OpenPrefix)) // as the next command does
		if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
			t.Errorf("temporary files are left: %v %v", left, err)
		}
		for _, sweeper := range sweepers { // one that lives reads what this one empties
			_ = sweeper.Process.Kill()
			_ = sweeper.Wait()
		}
		_, err = s.Sweep(t.Context())
		must(t, err)
		orphans := -len(listed)
		if dir, ok := strings.CutPrefix(at.blobs, "file://"); ok {
			blobs, err := filepath.Glob(filepath.Join(dir, "*", "[0-9a-f]*"))
			must(t, err)
			orphans += len(blobs)
		}
		if t.Logf("%d acknowledged, %d listed", len(told), len(listed)); orphans > 8 { // whose claims have not died yet
			t.Errorf("%d blobs that no run has are left", orphans)
		}
	})
}

const stuckFor = 3 * time.Second

// killedPusher kills a pusher at some moment, and returns what it was told is there.
func killedPusher(t *testing.T, at place, dir, temp string) (told []string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), runsVar+"="+at.runs, blobsVar+"="+at.blobs, recordingVar+"="+dir, "TMPDIR="+temp)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	var killed atomic.Bool
	end := func() { killed.Store(true); _ = cmd.Process.Kill() }
	kill := time.Duration(rand.IntN(15)) * time.Millisecond
	stuck := time.AfterFunc(stuckFor, end) // it may be waiting for a sweeper that was killed with its blob's claim, for ClaimAge
	for lines := bufio.NewScanner(out); lines.Scan(); {
		stuck.Reset(stuckFor)
		if told = append(told, lines.Text()); len(told) == 3 { // it is at work: from here on the moment is chance
			time.AfterFunc(kill, end)
		}
	}
	if err := cmd.Wait(); err == nil || !killed.Load() {
		t.Fatalf("the pusher ended by itself: %v %q", err, told)
	}
	return told
}

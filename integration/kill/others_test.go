//go:build kill

package kill

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/integration/run"
)

// made records the agent once for the commands that take a recording.
func (s *stage) made() *recording.Recording {
	s.t.Helper()
	r := s.start(s.recordArgs()...)
	<-r.ended
	rec := s.fresh()
	if rec == nil || !rec.Finished() {
		s.t.Fatalf("nothing was recorded: %s", &r.stderr)
	}
	return rec
}

// killed runs a command and kills it after d, where it has not ended by then. It returns what runs a second later.
func (s *stage) killed(d time.Duration, args ...string) (left []string) {
	s.t.Helper()
	cmd := s.b.Command(args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	time.AfterFunc(d, func() { cmd.Process.Signal(syscall.SIGKILL) })
	time.Sleep(d * 9 / 10)
	seen := below(cmd.Process.Pid)
	cmd.Wait() // its error is that it was killed
	return nothingRuns(seen, s.mark)
}

// took is how long a command takes, and fails the test where its status is not one of those given.
func (s *stage) took(statuses string, args ...string) time.Duration {
	s.t.Helper()
	begun := time.Now()
	if res := s.b.Tapedeck(args...); !strings.Contains(statuses, fmt.Sprint(res.Status)) {
		s.t.Fatalf("%v: %v", args, res)
	}
	return time.Since(begun)
}

// holds fails the test unless the recording at path verifies.
func (s *stage) holds(path string) {
	s.t.Helper()
	if res := s.b.Tapedeck("verify", path); res.Status != 0 {
		s.t.Errorf("%v", res)
	}
}

// A replay that dies leaves the recording as it was, and nothing else.
func TestReplay(t *testing.T) {
	run.Each(t, func(t *testing.T, b *run.Box) {
		s := newStage(t, b)
		rec := s.made()
		most := s.took("0 2", "replay", rec.Dir) // what the agent asks for depends on the time that it has
		for i := range moments(t) {
			d := time.Duration(s.rng.Int64N(int64(most)))
			if left := s.killed(d, "replay", rec.Dir); len(left) > 0 {
				t.Fatalf("round %d, %v: still running: %v", i, d, left)
			}
			s.holds(rec.Dir)
			if left := s.scratches(rec); len(left) > 0 {
				t.Fatalf("round %d, %v: left over: %v", i, d, left)
			}
		}
	})
}

// What packs or unpacks and dies leaves the whole or nothing, and once it has come to its end nothing beside.
func TestPack(t *testing.T) {
	run.Each(t, func(t *testing.T, b *run.Box) {
		s := newStage(t, b)
		rec := s.made()
		dir := filepath.Join(b.Home, "packed")
		b.WriteFile(filepath.Join(dir, "there"), "")
		file, out := filepath.Join(dir, "run.rec.tar.zst"), filepath.Join(dir, "run.rec")
		packs := s.took("0", "pack", rec.Dir, file)
		unpacks := s.took("0", "unpack", "-o", out, file)
		looks := s.took("0", "verify", file)
		for i := range moments(t) {
			os.Remove(file)
			s.killed(time.Duration(s.rng.Int64N(int64(packs))), "pack", rec.Dir, file)
			if _, err := os.Stat(file); err == nil {
				s.holds(file)
			} else {
				s.took("0", "pack", rec.Dir, file)
			}
			if err := os.RemoveAll(out); err != nil {
				t.Fatal(err)
			}
			s.killed(time.Duration(s.rng.Int64N(int64(unpacks))), "unpack", "-o", out, file)
			if _, err := os.Stat(out); err == nil {
				s.holds(out)
			} else {
				s.took("0", "unpack", "-o", out, file)
			}
			s.killed(time.Duration(s.rng.Int64N(int64(looks))), "verify", file)
			s.took("0", "list")
			left, _ := filepath.Glob(filepath.Join(s.top, "tmp", "tapedeck-*"))
			beside, _ := filepath.Glob(filepath.Join(dir, ".tmp-unpack-*"))
			halves, _ := filepath.Glob(filepath.Join(dir, ".tmp-pack-*", "*"))
			if left = slices.Concat(left, beside, halves); len(left) > 0 {
				t.Fatalf("round %d: left over: %v", i, left)
			}
		}
	})
}

// Where a restore dies, it is done again in another directory; where an apply dies, the work tree is the one or the other at each
// path, and neither touches the recording.
func TestRestore(t *testing.T) {
	run.Each(t, func(t *testing.T, b *run.Box) {
		s := newStage(t, b)
		rec := s.made()
		most := s.took("0", "restore", rec.Dir, filepath.Join(b.Home, "whole"))
		for i := range moments(t) {
			dir := filepath.Join(b.Home, fmt.Sprint("restored-", i))
			s.killed(time.Duration(s.rng.Int64N(int64(most))), "restore", rec.Dir, dir)
			s.holds(rec.Dir)
			s.took("0", "restore", rec.Dir, dir+"-again")
		}
	})
}

// The layers of a replay lie in /var/tmp. Where that is full the replay ends without a verdict and says what was not written.
func TestReplayOnAFullDisk(t *testing.T) {
	run.Each(t, func(t *testing.T, b *run.Box) {
		s := newStage(t, b)
		rec := s.made()
		for _, size := range []string{"40k", "400k"} {
			script := fmt.Sprintf("mount -t tmpfs -o size=%s tmpfs /var/tmp; exec %s replay %s", size, b.Binary(), rec.Dir)
			res := b.Run("unshare", "-Urm", "sh", "-ec", script)
			if strings.Contains(res.Stderr, "unshare:") {
				t.Skipf("nothing can be mounted in a namespace here: %v", res)
			}
			if res.Status != 1 || !strings.Contains(res.Stderr, "no space left on device") {
				t.Errorf("%s: status %d, stderr: %s", size, res.Status, res.Stderr)
			}
			if left := nothingRuns(nil, s.mark); len(left) > 0 {
				t.Errorf("still running: %v", left)
			}
		}
		s.holds(rec.Dir)
	})
}

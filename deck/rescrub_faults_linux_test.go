package deck_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/deck"
	"github.com/tapedeck-dev/tapedeck/deck/library"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/deck/rescrub"
	"github.com/tapedeck-dev/tapedeck/deck/verify"
)

func init() { programs["late recorder"] = playLateRecorder }

// playLateRecorder records "late" against the upstream args[0] into args[1] with the configuration args[2], and kills itself
// args[3] microseconds after it has begun to look for what became known late; never where that is negative.
func playLateRecorder(args []string) int {
	exe, err := os.Executable()
	if err != nil {
		return fail(err)
	}
	after, err := strconv.Atoi(args[3])
	if err != nil {
		return fail(err)
	}
	var begun sync.Once
	os.Setenv(programVar, "late")
	_, err = deck.Record(context.Background(), &deck.RecordOptions{
		Argv: []string{exe, "http://api.example.com", "file", "plain"}, Output: args[1], ConfigDir: args[2],
		Upstreams: map[string]string{"api.example.com": args[0]},
		Hiding: func(int, int64, bool) {
			begun.Do(func() {
				fmt.Println("begun")
				if after >= 0 {
					time.AfterFunc(time.Duration(after)*time.Microsecond, func() { syscall.Kill(os.Getpid(), syscall.SIGKILL) })
				}
			})
		},
	})
	if err != nil {
		return fail(err)
	}
	fmt.Println("ended")
	return 0
}

// TestKilledWhileHiding kills the recorder at random moments while it takes out what became known late. What it leaves loads
// with every blob, and once gc has been there nothing is left of what the recorder was about to put in place.
func TestKilledWhileHiding(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	srv := b.upstream("api.example.com", serveLate(lateSecret, "plain"))
	b.manyFiles(600)
	lib := filepath.Join(b.dir, ".tapedeck")
	whole, _ := b.hide(srv.URL, filepath.Join(lib, "whole.rec"), -1)
	whole = min(whole, 30*time.Millisecond) // where the machine was busy, most would come to their end
	rounds := 4
	if long {
		rounds = 16
	}
	states := make(map[string]int)
	for i := range rounds {
		rec := filepath.Join(lib, killedName(i))
		_, ended := b.hide(srv.URL, rec, rand.IntN(int(whole.Microseconds())))
		v, err := verified(rec)
		if err != nil || len(v.Problems) > 0 {
			t.Errorf("round %d: %v, %v", i, err, v.Problems)
			continue
		}
		states[v.State]++
		if ended && v.State != verify.StateSealed {
			t.Errorf("round %d: the recorder ended, the state is %s", i, v.State)
		}
		if v.State == verify.StateSealed { // its last step is to say so
			lookFor(t, rec, lateSecret)
		}
	}
	t.Logf("it takes %v; killed in it: %v", whole, states)
	if states[recording.StateRecording] == 0 {
		t.Error("no recorder was killed before its end: the test has tried nothing")
	}
	report, err := library.Of(b.dir).GC(context.Background(), &library.GCOptions{Grace: -1})
	if err != nil || len(report.Kept) > 0 {
		t.Fatalf("%v, kept: %v", err, report.Kept)
	}
	for i := range rounds {
		b.sound(filepath.Join(lib, killedName(i)))
	}
	left, _ := filepath.Glob(filepath.Join(lib, "*", ".tmp-*"))
	if len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
}

func killedName(i int) string { return fmt.Sprintf("killed-%d.rec", i) }

// manyFiles fills the work tree, in which some files hold the value.
func (b *bench) manyFiles(n int) {
	b.t.Helper()
	b.putNote(lateSecret)
	for i := range n {
		text := fmt.Sprintf("file %d\n%s", i, strings.Repeat("some text\n", i%50))
		if i%20 == 0 {
			text += lateSecret + "\n"
		}
		b.put(fmt.Sprintf("f%d.txt", i), text)
	}
}

// hide runs a late recorder, and returns how long it looked, and whether it came to its end.
func (b *bench) hide(upstream, rec string, after int) (took time.Duration, ended bool) {
	b.t.Helper()
	argv, env := b.self("late recorder", upstream, rec, b.config, strconv.Itoa(after))
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env, cmd.Dir = env, b.dir
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	r := bufio.NewReader(out)
	if line, err := r.ReadString('\n'); err != nil || line != "begun\n" {
		b.t.Fatalf("nothing became known late: %q, %v\n%s", line, err, &errs)
	}
	begun := time.Now()
	rest, err := io.ReadAll(r)
	if err != nil {
		b.t.Fatal(err)
	}
	cmd.Wait() // it was killed, or not
	return time.Since(begun), string(rest) == "ended\n"
}

// TestLateSecretsThatStay: where a secret cannot be taken out, Record fails, and the recording says so and stays unfinished.
func TestLateSecretsThatStay(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	rec := filepath.Join(t.TempDir(), "stays.rec")
	serve := serveLate(lateSecret, "plain")
	b.upstream("api.example.com", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/named" {
			damageBlobs(t, rec)
		}
		serve(w, r)
	})
	b.putNote(lateSecret)
	argv, env := b.self("late", "https://api.example.com", "file", "plain", "--note="+lateSecret)
	_, err := deck.Record(context.Background(), &deck.RecordOptions{
		Argv: argv, Env: env, Dir: b.dir, Tree: b.dir, ConfigDir: b.config, Upstreams: b.hosts, Output: rec,
	})
	late, ok := errors.AsType[*rescrub.Error](err)
	if !ok || late.Dir != rec || len(late.Holds) == 0 {
		t.Fatalf("got %v", err)
	}
	r, err := recording.Open(rec)
	if err != nil {
		t.Fatal(err)
	}
	said := strings.Join(r.Manifest.Axes["secrets"].NotCovered, "\n")
	if r.Finished() || !strings.Contains(said, "tree.json") || !strings.Contains(said, "run.tape") {
		t.Errorf("the recording is finished: %t, and says %q", r.Finished(), said)
	}
	if strings.Contains(strings.Join(r.Manifest.Argv, " "), lateSecret) {
		t.Errorf("argv is %q", r.Manifest.Argv)
	}
}

// damageBlobs changes the blobs that hold the value.
func damageBlobs(t *testing.T, rec string) {
	blobs, _ := filepath.Glob(filepath.Join(rec, "run.tape.cas", "*"))
	damaged := 0
	for _, path := range blobs {
		if b, err := os.ReadFile(path); err == nil && bytes.Contains(b, []byte(lateSecret)) {
			damaged++
			if err := os.WriteFile(path, append(b, "damaged"...), 0o600); err != nil {
				t.Error(err)
			}
		}
	}
	if damaged == 0 {
		t.Error("no blob holds the value yet")
	}
}

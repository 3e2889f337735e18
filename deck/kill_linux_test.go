package deck_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/deck"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
)

func init() { programs["recorder"] = playRecorder }

// playRecorder is a recorder to be killed: it records the program "forever" against the upstream args[0].
func playRecorder(args []string) int {
	exe, err := os.Executable()
	if err != nil {
		return fail(err)
	}
	os.Setenv(programVar, "forever")
	_, err = deck.Record(context.Background(), &deck.RecordOptions{
		Argv: []string{exe, "http://api.example.com/" + filepath.Base(args[1])}, Output: args[1], ConfigDir: args[2],
		Upstreams: map[string]string{"api.example.com": args[0]},
		Streams:   deck.Streams{Stdout: os.Stdout, Stderr: os.Stderr},
	})
	return fail(err)
}

// TestKilledRecorder kills the recorder at random moments. What it leaves must load up to its last whole record with every
// blob, verify must say that it is unfinished, and nothing may be left running.
func TestKilledRecorder(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	srv := b.upstream("api.example.com", func(w http.ResponseWriter, r *http.Request) {
		for i := range 5 {
			fmt.Fprintf(w, "%s %d %s\n", r.URL.Path, i, strings.Repeat("body ", rand.IntN(3000)))
			w.(http.Flusher).Flush()
		}
	})
	rounds := 3
	if long {
		rounds = 20
	}
	for i := range rounds {
		rec := filepath.Join(t.TempDir(), fmt.Sprintf("killed-%d-%d.rec", os.Getpid(), i))
		b.killRecorder(srv.URL, rec, time.Duration(rand.IntN(150))*time.Millisecond)
		v, err := verified(rec)
		if err != nil {
			t.Fatal(err)
		}
		if v.State != recording.StateRecording || len(v.Problems) > 0 {
			t.Errorf("round %d: state %q, problems %v", i, v.State, v.Problems)
		}
		t.Logf("round %d: %d records, %d blobs, %v", i, v.Records, v.Blobs, v.Notes)
	}
}

// killRecorder starts a recorder, waits until its program is at work, waits a while more and kills it. It returns when
// everything that held the recorder's output is gone.
func (b *bench) killRecorder(upstream, rec string, after time.Duration) {
	b.t.Helper()
	argv, env := b.self("recorder", upstream, rec, b.config)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env, cmd.Dir = env, b.dir
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	r := bufio.NewReader(out)
	if _, err := r.ReadString('\n'); err != nil {
		b.t.Fatalf("the program never started: %v", err)
	}
	time.Sleep(after) // the moment of death is what the test varies
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		b.t.Fatal(err)
	}
	io.Copy(io.Discard, r)
	cmd.Wait()
	b.nothingRuns("http://api.example.com/" + filepath.Base(rec))
}

// nothingRuns fails the test where a process with arg on its command line is still there a second later.
func (b *bench) nothingRuns(arg string) {
	b.t.Helper()
	var left []string
	for deadline := time.Now().Add(time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if left = runningWith(arg); len(left) == 0 {
			return
		}
	}
	b.t.Errorf("still running a second after the recorder was killed: %v", left)
}

func runningWith(arg string) []string {
	var out []string
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range files {
		line, err := os.ReadFile(f)
		if err == nil && strings.Contains(string(line), "\x00"+arg) && !strings.Contains(string(line), "recorder") {
			out = append(out, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return out
}

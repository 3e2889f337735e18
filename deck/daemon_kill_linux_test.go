package deck_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/deck"
	"github.com/tapedeck-dev/tapedeck/deck/daemon"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
)

func init() { programs["told recorder"] = playToldRecorder }

// playToldRecorder is a recorder to be killed: it records the program "rounds" and tells its run to the daemon at args[0].
func playToldRecorder(args []string) int {
	exe, err := os.Executable()
	if err != nil {
		return fail(err)
	}
	os.Setenv(programVar, "rounds")
	_, err = deck.Record(context.Background(), &deck.RecordOptions{
		Argv: []string{exe}, Output: args[2], ConfigDir: args[3], Upstreams: map[string]string{"api.anthropic.com": args[1]},
		Daemon: &daemon.Options{URL: args[0], Intent: "be killed"},
	})
	return fail(err)
}

// TestKilledRecorderOfADaemon: what was told stays, the daemon ends the run as incomplete, and the recording names it.
func TestKilledRecorderOfADaemon(t *testing.T) {
	r := newRealDaemon(t)
	r.stop()
	r.o.Grace = 50 * time.Millisecond
	r.start()
	b := newBench(t)
	host := r.host()
	told := make(chan error, 1)
	srv := b.upstream("api.anthropic.com", func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		n := bytes.Count(body, []byte("tool_result"))
		if n == 2 {
			told <- firstTurn(q.Context(), host)
			<-q.Context().Done()
			return
		}
		fmt.Fprintf(w, `{"type":"message","content":[{"type":"tool_use","id":"t%d","name":"read","input":{"n":%d}}],"stop_reason":"tool_use"}`, n, n)
	})
	dir := filepath.Join(t.TempDir(), "killed.rec")
	argv, env := b.self("told recorder", r.url(), srv.URL, dir, b.config)
	cmd := exec.Command(argv[0], argv[1:]...)
	env = append(env, "XDG_RUNTIME_DIR="+os.Getenv("XDG_RUNTIME_DIR"))
	cmd.Dir, cmd.Env = b.dir, env
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-told:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(30 * time.Second):
		t.Error("nothing was told")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	rec, err := recording.Open(dir)
	if err != nil || rec.Finished() || rec.Manifest.Daemon == nil {
		t.Fatalf("%+v, %v", rec, err)
	}
	ended := ""
	for record, err := range host.Subscribe(t.Context(), rec.Manifest.Daemon.RunID, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if record.Kind == "ended" {
			ended = string(record.JSON)
		}
	}
	if turns, _ := r.turnsOf(rec.Manifest.Daemon.RunID); !strings.Contains(ended, `"status":"incomplete"`) || len(turns) == 0 {
		t.Errorf("%d turns, ended with %s", len(turns), ended)
	}
}

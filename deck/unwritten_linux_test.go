package deck_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tapedeck-dev/tapedeck/deck"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/deck/verify"
)

// forever is what the endless program gets: long enough for a blob, and for a part.
func forever(w http.ResponseWriter, r *http.Request) {
	fmt.Fprintf(w, "%s %s", r.URL.Path, strings.Repeat("body ", 2000))
}

// What cannot be written for a limit of the recorder's ends the run, with the reason and what is kept.
func TestARunThatCannotBeWrittenIsEnded(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	srv := b.upstream("api.example.com", forever)
	rec := filepath.Join(t.TempDir(), fmt.Sprintf("limited-%d.rec", os.Getpid()))
	argv, env := b.self("recorder", srv.URL, rec, b.config)
	cmd := exec.Command(argv[0], argv[1:]...)
	var said strings.Builder
	cmd.Env, cmd.Dir, cmd.Stderr = env, b.dir, &said
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(out)
	r.ReadString('\n')    // the program is at work
	const most = 64 << 10 // bytes of a file
	if err := unix.Prlimit(cmd.Process.Pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: most, Max: most}, nil); err != nil {
		t.Error(err)
	}
	io.Copy(io.Discard, r)
	if err := cmd.Wait(); err == nil {
		t.Error("the run ended as if it had been recorded")
	}
	v := b.unfinished(rec)
	for _, part := range []string{
		"recording cannot be written", filepath.Join(rec, "run.tape"), syscall.EFBIG.Error(), "the program was ended",
		fmt.Sprintf("keeps %d records", v.Records), "ulimit -f",
	} {
		if !strings.Contains(said.String(), part) {
			t.Errorf("%q is not said in %q", part, said.String())
		}
	}
	b.nothingRuns("http://api.example.com/" + filepath.Base(rec))
}

// unfinished fails the test unless the recording in dir holds and is unfinished.
func (b *bench) unfinished(dir string) *verify.Verification {
	b.t.Helper()
	v, err := verified(dir)
	if err != nil {
		b.t.Fatal(err)
	}
	if v.State != recording.StateRecording || len(v.Problems) > 0 || v.Records == 0 {
		b.t.Errorf("%+v", v)
	}
	return v
}

// recordForever records the endless program into rec while the handler does something to the recording at the third request.
func (b *bench) recordForever(rec string, do func() error) (*deck.Result, error) {
	b.t.Helper()
	asked := 0
	b.upstream("api.example.com", func(w http.ResponseWriter, r *http.Request) {
		if asked++; asked == 3 {
			if err := do(); err != nil {
				b.t.Error(err)
			}
		}
		forever(w, r)
	})
	argv, env := b.self("forever", "http://api.example.com/"+filepath.Base(rec))
	return deck.Record(context.Background(), &deck.RecordOptions{
		Argv: argv, Env: env, Dir: b.dir, Tree: b.dir, ConfigDir: b.config, Upstreams: b.hosts, Output: rec,
	})
}

// A recording whose directory is removed in the run ends it.
func TestARecordingThatIsRemovedEndsTheRun(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	rec := filepath.Join(t.TempDir(), fmt.Sprintf("removed-%d.rec", os.Getpid()))
	_, err := b.recordForever(rec, func() error { return os.RemoveAll(rec) })
	var we *deck.WriteError
	if !errors.As(err, &we) || !errors.Is(err, fs.ErrNotExist) || we.Records >= 0 || !strings.Contains(err.Error(), rec) {
		t.Errorf("%v", err)
	}
	b.nothingRuns("http://api.example.com/" + filepath.Base(rec))
}

// What takes the place of a part, or makes the store no directory, ends the run; what is on the tape stays.
func TestAPartOrABlobThatCannotBeWrittenEndsTheRun(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"run.tape.part", "run.tape.cas"} {
		b := newBench(t)
		rec := filepath.Join(t.TempDir(), fmt.Sprintf("blocked-%d.rec", os.Getpid()))
		_, err := b.recordForever(rec, func() error {
			if err := os.Rename(filepath.Join(rec, name), filepath.Join(rec, "aside")); err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(rec, name), nil, 0o600)
		})
		var we *deck.WriteError
		if !errors.As(err, &we) || !errors.Is(err, syscall.ENOTDIR) || we.Records < 2 || we.Program != "was ended" {
			t.Errorf("%s: %v", name, err)
		}
		b.nothingRuns("http://api.example.com/" + filepath.Base(rec))
		if err := errors.Join(os.Remove(filepath.Join(rec, name)), os.Rename(filepath.Join(rec, "aside"), filepath.Join(rec, name))); err != nil {
			t.Fatal(err)
		}
		b.unfinished(rec)
	}
}

// A recording that is renamed in the run goes on where it is then.
func TestARecordingThatIsRenamed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	dir := t.TempDir()
	rec, moved := filepath.Join(dir, "run.rec"), filepath.Join(dir, "moved.rec")
	b.upstream("api.example.com", func(w http.ResponseWriter, r *http.Request) {
		if err := os.Rename(rec, moved); err != nil {
			t.Error(err)
		}
		forever(w, r)
	})
	argv, env := b.self("get", "http://api.example.com/")
	res, err := deck.Record(context.Background(), &deck.RecordOptions{
		Argv: argv, Env: env, Dir: b.dir, Tree: b.dir, ConfigDir: b.config, Upstreams: b.hosts, Output: rec,
	})
	if err != nil {
		t.Fatal(err)
	}
	if res.Recording.Dir != moved || res.Exit.Code != 0 {
		t.Errorf("%s, %+v", res.Recording.Dir, res.Exit)
	}
	b.holds(moved)
}

package deck_test

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/tapedeck-dev/tapedeck/deck/library"
)

// What is held stays, what nobody holds goes, and what is another's is left alone.
func TestSweep(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	for _, name := range []string{"tapedeck-proxy-held", "tapedeck-proxy-left", "tapedeck-open-left", "tapedeck-else"} {
		if err := os.MkdirAll(filepath.Join(temp, name, "below"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	held, err := os.Open(filepath.Join(temp, "tapedeck-proxy-held"))
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if err := syscall.Flock(int(held.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	library.Sweep()
	names, err := filepath.Glob(filepath.Join(temp, "*"))
	if err != nil || len(names) != 2 || filepath.Base(names[0]) != "tapedeck-else" || filepath.Base(names[1]) != "tapedeck-proxy-held" {
		t.Errorf("%v, %v", names, err)
	}
}

func init() {
	programs["looker"] = func(args []string) int { // unpacks to look, says so, and waits to be killed
		_, _, err := library.UnpackTemp(context.Background(), args[0], func(int64, int64) {
			os.Stdout.WriteString("unpacking\n")
			select {}
		})
		return fail(err)
	}
}

// Who is killed while it looks at a packed recording leaves what the next command removes.
func TestSweepOfALookAtAPackedRecording(t *testing.T) {
	b := newBench(t)
	res, _ := b.record("errand")
	file := filepath.Join(b.home, "packed.tar.zst")
	if _, err := library.Pack(t.Context(), res.Recording, file, nil); err != nil {
		t.Fatal(err)
	}
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	argv, env := b.self("looker", file)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = slices.Concat(env, []string{"TMPDIR=" + temp})
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	said := make([]byte, len("unpacking"))
	if _, err := io.ReadFull(out, said); err != nil || string(said) != "unpacking" {
		t.Fatalf("%q, %v", said, err)
	}
	left := func() []string {
		names, _ := filepath.Glob(filepath.Join(temp, "*"))
		return names
	}
	library.Sweep()
	if len(left()) != 1 {
		t.Errorf("while it is at work: %v", left())
	}
	cmd.Process.Kill()
	cmd.Wait()
	if library.Sweep(); len(left()) != 0 {
		t.Errorf("after it was killed: %v", left())
	}
}

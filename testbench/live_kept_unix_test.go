//go:build unix

package testbench_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/process"
	"github.com/tapedeck-dev/tapedeck/testbench"
)

// freshly runs each command in a directory that is made for it alone.
type freshly struct{ b *testbench.Bench }

func (f *freshly) Run(ctx context.Context, c *process.Command) (*process.Result, error) {
	h := process.NewHost(&process.HostOptions{Fill: f.b.Files().Copy, Changes: func(dir string) (all []process.Change, err error) {
		changes, err := f.b.Files().Changed(dir)
		for _, c := range changes {
			all = append(all, process.Change(c))
		}
		return all, err
	}})
	res, err := h.Run(ctx, c)
	return res, errors.Join(err, h.Close())
}

// steps are what commands do to files: content, rights, times, links, directories, kinds; and a look at all of it.
var steps = []string{
	"echo more >>a", "printf x >d/b", "cp -p a d/kept", "touch -d 2001-01-01 a", "chmod +x a", "chmod 600 a", "rm -f a", "rm -rf d", "mkdir -p d/e/f",
	"ln -sf a link", "ln -f a hard", "rm -f link && mkdir link", "rm -rf link", "chmod 700 d", "mv d moved && mkdir d", "mv moved/* d", "echo same >same",
	"touch same", "printf 'SAME\\n' >same; touch -d @1767225600 same", "true", "exit 3", "mkfifo fifo; rm fifo", "rmdir d/e/f", "echo y >d/e",
}

const lookAround = `find . | sort; find . -type f | sort | while read -r f; do echo "$f $(stat -c '%a %Y %h' "$f")"; cat "$f"; done; find . -type l -exec readlink {} \;`

// TestKeptDirectoriesAreLikeFreshOnes does the same, by chance, in directories that are kept from command to command and in ones that are made for
// each: what commands see and what they change is the same, record by record.
func TestKeptDirectoriesAreLikeFreshOnes(t *testing.T) {
	seeds := uint64(1)
	if os.Getenv("TAPEDECK_LONG") != "" {
		seeds = 10
	}
	for seed := range seeds {
		dir := t.TempDir()
		for name, content := range map[string]string{"a": "a\n", "same": "same\n", "d/b": "b\n", "d/deep/c": "c\n"} {
			path := filepath.Join(dir, filepath.FromSlash(name))
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644)); err != nil {
				t.Fatal(err)
			}
		}
		kept := atRandom(t, seed, &testbench.Config{Files: testbench.Files{Dir: dir}, Processes: testbench.Processes{Live: true}})
		fresh := &freshly{}
		made := atRandom(t, seed, &testbench.Config{Files: testbench.Files{Dir: dir}, Processes: testbench.Processes{Runner: fresh}}, fresh)
		if !bytes.Equal(kept, made) {
			t.Fatalf("seed %d: kept\n%s\nfresh\n%s", seed, kept, made)
		}
	}
}

// atRandom returns the tape of steps by chance, with what the program itself does in between.
func atRandom(t *testing.T, seed uint64, c *testbench.Config, fresh ...*freshly) []byte {
	t.Helper()
	var tape bytes.Buffer
	c.Name, c.EmitTo = "agent", &tape
	b, err := testbench.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range fresh {
		f.b = b
	}
	r := rand.New(rand.NewPCG(seed, 1))
	for i := range 20 {
		if r.IntN(3) == 0 {
			own := []string{"a", "same", "d/b", "own"}[r.IntN(4)]
			if r.IntN(3) == 0 {
				_ = b.Files().Remove(own) // it need not be there
			} else {
				_ = b.Files().WriteFile(own, fmt.Append(nil, "own ", i%2, "\n"), 0o644) // a directory may stand there
			}
		}
		for _, line := range []string{steps[r.IntN(len(steps))], lookAround} {
			if _, err := b.Processes().Run(t.Context(), &process.Command{Program: "sh", Args: []string{"-c", line + " 2>&1"}}); err != nil {
				t.Fatalf("seed %d: %s: %v", seed, line, err)
			}
		}
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	return tape.Bytes()
}

// TestAFileOfTheHostThatChangesIsSeen has somebody else change the directory between two commands.
func TestAFileOfTheHostThatChangesIsSeen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	b := testbench.New(t, &testbench.Config{Files: testbench.Files{Dir: filepath.Dir(path)}, Processes: testbench.Processes{Live: true}})
	for i := range 20 {
		want := fmt.Sprint(i % 10)
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		if got, err := b.Processes().Command(t.Context(), "cat", "a").Output(); err != nil || string(got) != want {
			t.Fatalf("%q, want %q, %v", got, want, err)
		}
	}
}

//go:build unix

package process_test

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/process"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/stopread"
)

// closedReader is a caller that stops reading after some bytes.
type closedReader struct{ left int }

func (c *closedReader) Write(p []byte) (int, error) {
	if c.left -= len(p); c.left < 0 {
		return 0, syscall.EPIPE
	}
	return len(p), nil
}

// TestProgramDiesOfSIGPIPE has a program that prints without end to a caller that stops reading, as `yes | head` does.
func TestProgramDiesOfSIGPIPE(t *testing.T) {
	yes, err := exec.LookPath("yes")
	if err != nil {
		t.Skip(err)
	}
	r, w := pipe(t)
	cmd := exec.Command(yes)
	cmd.Stdout = w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	store := cas.NewMemory()
	s := newStream(store)
	if err := process.RelayOutput(&closedReader{1 << 20}, r, s); err != nil {
		t.Error(err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGPIPE {
		t.Errorf("the program ended with %v", err)
	}
	if _, b := finish(t, s, store); len(b) < 1<<20 {
		t.Errorf("kept %d bytes", len(b))
	}
}

// TestWaitingInput ends an Input that waits for the caller's next bytes, and sees that these are there for the next reader.
func TestWaitingInput(t *testing.T) {
	for _, test := range []struct {
		name string
		end  func(in *stopread.Reader, program *os.File)
	}{
		{"stopped", func(in *stopread.Reader, _ *os.File) { in.Stop() }},
		{"program closed its stdin", func(_ *stopread.Reader, program *os.File) { program.Close() }},
	} {
		t.Run(test.name, func(t *testing.T) {
			store := cas.NewMemory()
			s := newStream(store)
			stdin, caller := pipe(t)
			program, to := pipe(t)
			in := newInput(t, stdin)
			done := make(chan error, 1)
			go func() { done <- process.RelayInput(to, in, s) }()
			io.WriteString(caller, "first\n")
			buf := make([]byte, 100)
			if n, err := program.Read(buf); string(buf[:n]) != "first\n" || err != nil {
				t.Errorf("the program read %q, %v", buf[:n], err)
			}
			test.end(in, program)
			if err := <-done; err != nil {
				t.Error(err)
			}
			io.WriteString(caller, "next\n")
			if n, err := stdin.Read(buf); string(buf[:n]) != "next\n" || err != nil {
				t.Errorf("the next reader got %q, %v", buf[:n], err)
			}
			if _, b := finish(t, s, store); string(b) != "first\n" {
				t.Errorf("kept %q", b)
			}
		})
	}
}

// TestInputEnds reads files to their end: a pipe that is closed, a regular file, and one that is closed under the Input.
func TestInputEnds(t *testing.T) {
	stdin, caller := pipe(t)
	caller.Close()
	if b, err := io.ReadAll(newInput(t, stdin)); len(b) != 0 || err != nil {
		t.Errorf("pipe: %q, %v", b, err)
	}
	file, err := os.Open("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	in := newInput(t, file)
	if b, err := io.ReadAll(in); len(b) == 0 || err != nil {
		t.Errorf("file: %q, %v", b, err)
	}
	file.Close()
	if _, err := in.Read(make([]byte, 1)); !errors.Is(err, os.ErrClosed) {
		t.Errorf("closed file: %v", err)
	}
}

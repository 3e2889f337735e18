//go:build unix

package mcp_test

import (
	"bytes"
	"io"
	"os"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/mcp"
)

// A heardJob is a Relay between a test that plays a program, and what it started.
type heardJob struct {
	toJob, fromJob, errOfJob *os.File // the program's
	in, out, err             *os.File // the job's
	got                      [3]bytes.Buffer
	heard                    mcp.Heard
	done                     chan error
}

func newHeardJob(t *testing.T, o *mcp.RelayOptions, merged bool) *heardJob {
	j := &heardJob{done: make(chan error, 1)}
	o.ClientIn, j.toJob = pipe(t)
	j.in, o.ServerIn = pipe(t)
	j.fromJob, o.ClientOut = pipe(t)
	o.ServerOut, j.out = pipe(t)
	if merged {
		o.ClientErr, o.ServerErr = o.ClientOut, o.ServerOut
	} else {
		j.errOfJob, o.ClientErr = pipe(t)
		o.ServerErr, j.err = pipe(t)
	}
	for i := range j.got {
		j.heard.To[i] = &j.got[i]
	}
	o.Heard = &j.heard
	go func() {
		_, err := mcp.Relay(t.Context(), o)
		j.done <- err
	}()
	return j
}

func (j *heardJob) want(t *testing.T, whole [3]bool, texts ...string) {
	t.Helper()
	if err := <-j.done; err != nil {
		t.Fatal(err)
	}
	for i, want := range texts {
		if got := j.got[i].String(); got != want || j.heard.Whole[i] != whole[i] {
			t.Errorf("stream %d: %q, whole %t; want %q, %t", i, got, j.heard.Whole[i], want, whole[i])
		}
	}
}

func tell(t *testing.T, f *os.File, text string) {
	t.Helper()
	if _, err := io.WriteString(f, text); err != nil {
		t.Fatal(err)
	}
}

func listen(t *testing.T, f *os.File, want string) {
	t.Helper()
	b, err := io.ReadAll(f)
	if err != nil || string(b) != want {
		t.Fatalf("read %q, %v; want %q", b, err, want)
	}
}

// TestHeard: all that passes is given, whatever came before it was known to be no conversation.
func TestHeard(t *testing.T) {
	t.Parallel()
	j := newHeardJob(t, &mcp.RelayOptions{Log: newRig(t).log, Opened: &mcp.Opened{}}, false)
	tell(t, j.out, "early\n")
	b := make([]byte, 6)
	if _, err := io.ReadFull(j.fromJob, b); err != nil {
		t.Fatal(err)
	}
	tell(t, j.toJob, "\nno json")
	tell(t, j.toJob, " at all\nmore")
	j.toJob.Close()
	listen(t, j.in, "\nno json at all\nmore")
	tell(t, j.err, "oops")
	tell(t, j.out, "late")
	j.in.Close()
	j.err.Close()
	j.out.Close()
	listen(t, j.fromJob, "late")
	listen(t, j.errOfJob, "oops")
	j.want(t, [3]bool{true, true, true}, "\nno json at all\nmore", "early\nlate", "oops")
}

// TestHeardCut: what one side left is not whole, on whichever way it is.
func TestHeardCut(t *testing.T) {
	t.Parallel()
	j := newHeardJob(t, &mcp.RelayOptions{Log: newRig(t).log, Opened: &mcp.Opened{}}, true)
	tell(t, j.toJob, "x")
	b := make([]byte, 1)
	if _, err := io.ReadFull(j.in, b); err != nil {
		t.Fatal(err)
	}
	j.in.Close() // the job ends, and its output is whole
	tell(t, j.out, "both")
	j.out.Close()
	listen(t, j.fromJob, "both")
	j.want(t, [3]bool{false, true, false}, "x", "both", "")
}

// TestHeardConversation: of a conversation nothing is given.
func TestHeardConversation(t *testing.T) {
	t.Parallel()
	j := newHeardJob(t, &mcp.RelayOptions{Log: newRig(t).log, Opened: &mcp.Opened{Transport: mcp.Stdio, Program: "server"}}, false)
	tell(t, j.out, "early\n")
	tell(t, j.toJob, askInit+"\n")
	j.toJob.Close()
	listen(t, j.in, askInit+"\n")
	for _, f := range []*os.File{j.in, j.out, j.err} {
		f.Close()
	}
	j.want(t, [3]bool{}, "", "", "")
}

// TestHeardInput passes input alone.
func TestHeardInput(t *testing.T) {
	t.Parallel()
	var got bytes.Buffer
	heard := mcp.Heard{To: [3]io.Writer{&got}}
	o := &mcp.RelayOptions{Heard: &heard}
	var in, out *os.File
	o.ClientIn, out = pipe(t)
	in, o.ServerIn = pipe(t)
	done := make(chan error, 1)
	go func() {
		_, err := mcp.Relay(t.Context(), o)
		done <- err
	}()
	tell(t, out, `{"jsonrpc":"2.0"}`)
	out.Close()
	listen(t, in, `{"jsonrpc":"2.0"}`)
	if err := <-done; err != nil || got.String() != `{"jsonrpc":"2.0"}` || !heard.Whole[0] {
		t.Errorf("%q, %v, %v", got.String(), heard.Whole, err)
	}
}

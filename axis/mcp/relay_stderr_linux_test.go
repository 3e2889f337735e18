package mcp

import (
	"bytes"
	"io"
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// Who has read what a server wrote to its stdout finds what it wrote to its stderr before that, whether or not anybody else got round to
// passing that on.
func TestStderrComesFirst(t *testing.T) {
	for name, said := range map[string]string{"a line": "a line\n", "the end": ""} {
		t.Run(name, func(t *testing.T) {
			p := newStderrPlug(t)
			if _, err := io.WriteString(p.serverErr, "before\n"); err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(p.serverOut, said); err != nil {
				t.Fatal(err)
			}
			p.serverOut.Close()
			p.relay.copy(p.relay.serverOut, p.relay.clientOut, Server, p.relay.fromServer, p.relay.serverEnded) // errs.copy does not run
			p.clientErrFar.Close()
			p.relay.clientErr.close()
			if b, err := io.ReadAll(p.clientErr); string(b) != "before\n" || err != nil {
				t.Errorf("stderr has %q, %v", b, err)
			}
		})
	}
}

// A client that reads its server's stderr last is given its stdout all the same.
func TestStderrThatNobodyReads(t *testing.T) {
	p := newStderrPlug(t)
	full := bytes.Repeat([]byte("x"), relayBuffer)
	for _, f := range []*os.File{p.clientErrFar, p.serverErr} {
		if _, err := f.Write(full); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan struct{})
	go func() { // ends with both files
		defer close(done)
		p.relay.errs.copy(p.relay)
	}()
	go p.relay.copy(p.relay.serverOut, p.relay.clientOut, Server, p.relay.fromServer, p.relay.serverEnded)
	if _, err := io.WriteString(p.serverOut, "a line\n"); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 16)
	if n, err := p.clientOut.Read(b); string(b[:n]) != "a line\n" {
		t.Errorf("read %q, %v", b[:n], err)
	}
	p.serverErr.Close()
	p.clientErrFar.Close()
	if b, err := io.ReadAll(p.clientErr); len(b) != 2*relayBuffer || err != nil {
		t.Errorf("%d bytes on stderr, %v", len(b), err)
	}
	<-done
}

// Where another fills the stderr that both write to while a piece is taken, nobody waits for it, and the piece comes later.
func TestStderrThatAnotherFills(t *testing.T) {
	p := newStderrPlug(t)
	if _, err := io.WriteString(p.serverErr, "before\n"); err != nil {
		t.Fatal(err)
	}
	p.relay.mu.Lock() // the piece waits for it between the look at the client's stderr and the write
	moved := make(chan bool)
	go func() { moved <- p.relay.errs.move(p.relay) }()
	for p.relay.serverErr.ready(unix.POLLIN) {
		runtime.Gosched()
	}
	full := bytes.Repeat([]byte("x"), relayBuffer)
	_, err := p.clientErrFar.Write(full)
	p.relay.mu.Unlock()
	if err != nil || !<-moved {
		t.Fatalf("there is no more to move, %v", err)
	}
	p.serverErr.Close()
	p.clientErrFar.Close()
	go p.relay.errs.copy(p.relay)
	if b, err := io.ReadAll(p.clientErr); string(b) != string(full)+"before\n" || err != nil {
		t.Errorf("%d bytes on stderr, %v", len(b), err)
	}
}

// A stderrPlug is a relay, none of whose goroutines run, and the far ends of its files.
type stderrPlug struct {
	relay                *relay
	serverOut, serverErr *os.File // written
	clientOut, clientErr *os.File // read
	clientErrFar         *os.File // another end of clientErr that is written
	clientIn, serverIn   *os.File // the other far ends
}

func newStderrPlug(t *testing.T) *stderrPlug {
	var p stderrPlug
	var o RelayOptions
	o.ClientIn, p.clientIn = newPipe(t)
	p.clientOut, o.ClientOut = newPipe(t)
	p.clientErr, o.ClientErr = newPipe(t)
	p.serverIn, o.ServerIn = newPipe(t)
	o.ServerOut, p.serverOut = newPipe(t)
	o.ServerErr, p.serverErr = newPipe(t)
	fd, err := duplicateFile(o.ClientErr)
	if err != nil {
		t.Fatal(err)
	}
	p.clientErrFar = fd
	t.Cleanup(func() { fd.Close() })
	if p.relay, err = newRelay(&o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.relay.close)
	return &p
}

// duplicateFile opens a pipe's end anew.
func duplicateFile(f *os.File) (own *os.File, err error) {
	conn, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	errControl := conn.Control(func(fd uintptr) {
		var again int
		if again, err = reopened(int(fd)); err == nil {
			own = os.NewFile(uintptr(again), f.Name())
		}
	})
	if err == nil {
		err = errControl
	}
	return own, err
}

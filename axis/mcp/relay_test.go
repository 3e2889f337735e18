package mcp_test

import (
	"bufio"
	"context"
	"io"
	"os"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/mcp"
)

// A plug is a Relay between a client and a server, which the test plays both.
type plug struct {
	t                         testing.TB
	toServer                  *os.File // what the client writes
	fromServer                *bufio.Reader
	fromServerFile, clientErr *os.File
	in                        *bufio.Reader // the server's stdin
	inFile, out, serverErr    *os.File
	done                      chan struct{}
	conversation              *mcp.Conversation
	err                       error
	cancel                    context.CancelFunc
}

func newPlug(t testing.TB, r *rig) *plug {
	p := &plug{t: t, done: make(chan struct{})}
	o := &mcp.RelayOptions{Log: r.log, Opened: &mcp.Opened{Transport: mcp.Stdio, Program: "server"}}
	o.ClientIn, p.toServer = pipe(t)
	p.fromServerFile, o.ClientOut = pipe(t)
	p.clientErr, o.ClientErr = pipe(t)
	p.inFile, o.ServerIn = pipe(t)
	o.ServerOut, p.out = pipe(t)
	o.ServerErr, p.serverErr = pipe(t)
	p.in, p.fromServer = bufio.NewReader(p.inFile), bufio.NewReader(p.fromServerFile)
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	t.Cleanup(cancel)
	go func() {
		defer close(p.done)
		p.conversation, p.err = mcp.Relay(ctx, o)
	}()
	return p
}

func (p *plug) write(f *os.File, text string) {
	p.t.Helper()
	if _, err := io.WriteString(f, text); err != nil {
		p.t.Fatal(err)
	}
}

func (p *plug) read(r io.Reader, want string) {
	p.t.Helper()
	b := make([]byte, len(want))
	if _, err := io.ReadFull(r, b); err != nil || string(b) != want {
		p.t.Fatalf("read %q, %v; want %q", b, err, want)
	}
}

func TestRelay(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := newPlug(t, r)
	p.write(p.out, "starting\n")
	p.read(p.fromServer, "starting\n")
	p.write(p.serverErr, "warn\n")
	p.read(p.clientErr, "warn\n")
	p.write(p.toServer, askInit[:20])
	p.read(p.in, askInit[:20])
	p.write(p.toServer, askInit[20:]+"\r\n")
	p.read(p.in, askInit[20:]+"\r\n")
	p.write(p.out, ansInit+"\n")
	p.read(p.fromServer, ansInit+"\n")
	r.want(
		`open files 1 stdio program=server args=[] url= 2025-06-18`,
		`files server text 1 "starting\n"`,
		`files stderr text 1 "warn\n"`,
		`files client initialize 2-3 `+askInit+"\r > "+ansInit, // what ends a line but for \n is kept
	)
	p.toServer.Close()
	p.read(p.in, "")
	if _, err := p.in.ReadByte(); err != io.EOF {
		t.Error(err)
	}
	p.inFile.Close()
	p.out.Close()
	p.serverErr.Close()
	if _, err := p.fromServer.ReadByte(); err != io.EOF {
		t.Error(err)
	}
	<-p.done
	if p.err != nil {
		t.Error(p.err)
	}
}

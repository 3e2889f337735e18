package mcp_test

import (
	"context"
	"errors"
	"io"
	"os/exec"
	"sync"
	"syscall"
	"testing"
)

// TestServerThatEndedIsAskedNothing: a client that has seen the end of its server cannot ask it any more, as without a Relay, also while
// programs are started beside it, which have every file until their exec.
func TestServerThatEndedIsAskedNothing(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	var starts sync.WaitGroup
	starts.Go(func() {
		for ctx.Err() == nil {
			_ = exec.CommandContext(ctx, "true").Run() // of which nothing is wanted but the fork
		}
	})
	defer starts.Wait()
	defer stop()
	for range 200 { // it was a race
		p := newPlug(t, newRig(t))
		p.write(p.toServer, askInit+"\n")
		p.read(p.in, askInit+"\n")
		p.inFile.Close() // in the order in which a process that ends closes them
		p.out.Close()
		if _, err := p.fromServer.ReadByte(); err != io.EOF {
			t.Fatal(err)
		}
		if _, err := io.WriteString(p.toServer, askInit+"\n"); !errors.Is(err, syscall.EPIPE) {
			t.Fatalf("asked a server that has ended: %v", err)
		}
		p.toServer.Close()
		p.serverErr.Close()
		<-p.done
	}
}

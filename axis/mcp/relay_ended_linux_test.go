package mcp_test

import (
	"errors"
	"io"
	"syscall"
	"testing"
)

// TestServerThatEndedIsAskedNothing: a client that has seen the end of its server cannot ask it any more, as without a Relay.
func TestServerThatEndedIsAskedNothing(t *testing.T) {
	for range 100 { // it was a race
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

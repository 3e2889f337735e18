package mcp_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/mcp"
)

// TestUnreadIsTheNext has two programs read one pipe, one after the other: what the first leaves is the second's, as without a relay,
// whether or not somebody reads what they write.
func TestUnreadIsTheNext(t *testing.T) {
	t.Parallel()
	for name, inputOnly := range map[string]bool{"input alone": true, "both": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, w := pipe(t)
			first := relayedFrom(t, r, inputOnly)
			tell(t, w, "hello")
			var b [2]byte
			if _, err := io.ReadFull(first.in, b[:]); err != nil {
				t.Fatal(err)
			}
			first.end(t, "he")
			second := relayedFrom(t, r, inputOnly)
			w.Close()
			listen(t, second.in, "llo")
			second.end(t, "llo")
		})
	}
}

// A reading is a program behind a Relay of its own.
type reading struct {
	in, out *os.File
	got     bytes.Buffer // what the relay says that it read
	done    chan error
}

// relayedFrom has a program read a pipe, whose reading end stays open here.
func relayedFrom(t *testing.T, from *os.File, inputOnly bool) *reading {
	t.Helper()
	p := &reading{done: make(chan error, 1)}
	o := &mcp.RelayOptions{Heard: &mcp.Heard{To: [3]io.Writer{&p.got, io.Discard, io.Discard}}}
	var err error
	if o.ClientIn, err = os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", from.Fd()), os.O_RDONLY, 0); err != nil {
		t.Fatal(err)
	}
	p.in, o.ServerIn = pipe(t)
	if !inputOnly {
		o.Log, o.Opened = newRig(t).log, &mcp.Opened{}
		_, o.ClientOut = pipe(t)
		o.ServerOut, p.out = pipe(t)
	}
	go func() {
		_, err := mcp.Relay(t.Context(), o)
		p.done <- err
	}()
	return p
}

func (p *reading) end(t *testing.T, read string) {
	t.Helper()
	p.in.Close()
	if p.out != nil {
		p.out.Close()
	}
	if err := <-p.done; err != nil || p.got.String() != read {
		t.Errorf("heard %q, %v; want %q", p.got.String(), err, read)
	}
}

package exchange_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	neturl "net/url"
	"os"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// TestErrorText holds that the same failure reads the same in every run.
func TestErrorText(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	_, refused := net.Dial("tcp", l.Addr().String())
	for want, err := range map[string]error{
		tape.Cancelled:                    fmt.Errorf("read: %w", context.Canceled),
		exchange.Refused:                  &neturl.Error{Op: "Get", URL: "x", Err: refused},
		exchange.CutShort:                 io.ErrUnexpectedEOF,
		exchange.NoAnswer:                 &neturl.Error{Op: "Get", URL: "x", Err: io.EOF},
		exchange.Timeout:                  &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded},
		exchange.NoSuchHost + "h.example": &net.OpError{Op: "dial", Err: &net.DNSError{Name: "h.example", IsNotFound: true}},
		"dial: no route":                  &net.OpError{Op: "dial", Source: l.Addr(), Err: errors.New("no route")},
		"what came":                       &neturl.Error{Op: "Get", URL: "x", Err: errors.New("what came")},
	} {
		if got := exchange.ErrorText(err); got != want {
			t.Errorf("%v reads %q, want %q", err, got, want)
		}
	}
}

func TestErrorBodyReadsAsItIs(t *testing.T) {
	const message = `tapedeck: a <b> & "c"`
	got := exchange.ErrorBody(nil, 400, "kind", message)
	if want := fmt.Sprintf("{\"error\":{\"type\":\"kind\",\"message\":%q}}\n", message); string(got) != want {
		t.Errorf("%s, want %s", got, want)
	}
}

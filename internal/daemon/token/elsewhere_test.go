package token

import (
	"errors"
	"io/fs"
	"testing"
)

// The token of a daemon that listens on every address of this machine is not sent to another machine.
func TestTokenOfAnyAddressStaysHere(t *testing.T) {
	base := t.TempDir()
	p := New()
	kept, err := Write(base, p, "0.0.0.0:9100")
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Remove()
	for _, addr := range []string{"ws://127.0.0.1:9100", "ws://localhost:9100/", "[::1]:9100", "127.3.2.1:9100"} {
		if got, err := Read(base, addr, false); err != nil || got != p.Agent {
			t.Errorf("%s: got %v, want the token", addr, err)
		}
	}
	for _, addr := range []string{"ws://192.0.2.7:9100", "wss://example.org:9100", "[2001:db8::1]:9100", "127.0.0.1.example.org:9100"} {
		if got, err := Read(base, addr, false); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: got a token of %d characters and error %v, want none", addr, len(got), err)
		}
	}
}

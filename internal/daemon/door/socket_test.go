//go:build unix

package door

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/jsonrpc"
)

func TestTheSocketsFile(t *testing.T) {
	listen := func(path string) error {
		d, err := Open(t.Context(), &Options{Socket: path, Converse: echo})
		if err == nil {
			d.Stop()
		}
		return err
	}
	t.Run("mode", func(t *testing.T) {
		path := t.TempDir() + "/s"
		open(t, &Options{Socket: path})
		info, err := os.Lstat(path)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info.Mode(), err)
		}
	})
	t.Run("stale", func(t *testing.T) {
		path := t.TempDir() + "/s"
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
		if err != nil {
			t.Fatal(err)
		}
		l.SetUnlinkOnClose(false)
		_ = l.Close()
		if err := listen(path); err != nil {
			t.Error(err)
		}
	})
	t.Run("alive", func(t *testing.T) {
		path := t.TempDir() + "/s"
		open(t, &Options{Socket: path})
		if err := listen(path); err == nil || !strings.Contains(err.Error(), "another daemon") {
			t.Errorf("got %v", err)
		}
		if c, err := net.Dial("unix", path); err != nil {
			t.Errorf("the first is not reached any more: %v", err)
		} else {
			_ = c.Close()
		}
	})
	t.Run("no socket", func(t *testing.T) {
		path := t.TempDir() + "/s"
		if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := listen(path); err == nil {
			t.Error("no error")
		}
		if b, _ := os.ReadFile(path); string(b) != "precious" {
			t.Error("the file was replaced")
		}
	})
	t.Run("another's by now", func(t *testing.T) {
		path := t.TempDir() + "/s"
		d, err := Open(t.Context(), &Options{Socket: path, Converse: echo})
		if err != nil {
			t.Fatal(err)
		}
		_ = os.Remove(path)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		d.Stop()
		if _, err := os.Lstat(path); err != nil {
			t.Error("it removed what is not its own")
		}
	})
	t.Run("no directory", func(t *testing.T) {
		if err := listen(t.TempDir() + "/no/s"); err == nil {
			t.Error("no error")
		}
	})
}

func TestAPeerIsKnown(t *testing.T) {
	path := t.TempDir() + "/s"
	peers := make(chan Peer, 1)
	open(t, &Options{Socket: path, Converse: func(_ context.Context, _ jsonrpc.Stream, p Peer) { peers <- p }})
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = io.WriteString(c, "{")
	if p := <-peers; !p.Unix || p.UID != os.Geteuid() || p.Transport != "lines" {
		t.Errorf("got %+v", p)
	}
}

// TestTheFirstByte decides; whoever says none is cut off when the door closes, at the latest.
func TestTheFirstByte(t *testing.T) {
	path := t.TempDir() + "/s"
	d, err := Open(t.Context(), &Options{Socket: path, Converse: echo})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- d.Serve(ctx) }()
	for said, want := range map[string]string{
		`{"jsonrpc":"2.0","id":1,"method":"echo"}` + "\n":            `{"jsonrpc":"2.0","id":1,"result":null}`,
		"  \n\n" + `{"jsonrpc":"2.0","id":1,"method":"echo"}` + "\n": `{"jsonrpc":"2.0","id":1,"result":null}`,
		"hello\n":                            `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,`,
		"[]\n":                               `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,`,
		"\x16\x03\x01\n":                     `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,`,
		"GET / HTTP/1.1\r\n\r\n":             "HTTP/1.1 400 Bad Request",
		"GET / HTTP/1.1\r\nHost: x\r\n\r\n":  "HTTP/1.1 426 Upgrade Required",
		"POST / HTTP/1.1\r\nHost: x\r\n\r\n": "HTTP/1.1 426 Upgrade Required",
	} {
		c, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(10 * time.Second))
		_, _ = io.WriteString(c, said)
		b := make([]byte, len(want))
		if _, err := io.ReadFull(c, b); err != nil || string(b) != want {
			t.Errorf("%q: got %q, %v", said, b, err)
		}
		_ = c.Close()
	}
	mute, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	_ = mute.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := mute.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

package door

import (
	"context"
	"encoding/json"
	"net"
	"path/filepath"
	"testing"

	"github.com/tapedeck-dev/tapedeck/internal/jsonrpc"
	"github.com/tapedeck-dev/tapedeck/internal/jsonrpc/websock"
)

// open serves a door whose conversations echo params, until the test is over.
func open(t testing.TB, o *Options) *Door {
	t.Helper()
	if o.Converse == nil {
		o.Converse = echo
	}
	d, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- d.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return d
}

func echo(ctx context.Context, s jsonrpc.Stream, _ Peer) {
	c := jsonrpc.New(s, &jsonrpc.Options{Handler: func(_ context.Context, r *jsonrpc.Request) (any, error) {
		return r.Params, nil
	}})
	_ = c.Serve(ctx)
}

// talk asks one thing over s.
func talk(t testing.TB, s jsonrpc.Stream) {
	t.Helper()
	c := jsonrpc.New(s, nil)
	done := make(chan error, 1)
	go func() { done <- c.Serve(context.Background()) }()
	var got json.RawMessage
	if err := c.Call(t.Context(), c.NewID(), "echo", json.RawMessage(`{"n":1}`), &got); err != nil || string(got) != `{"n":1}` {
		t.Errorf("got %s, %v", got, err)
	}
	c.Close(jsonrpc.CloseNormal, "")
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestEveryWayIn(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	d := open(t, &Options{Listen: "127.0.0.1:0", Socket: socket})
	t.Run("tcp", func(t *testing.T) {
		s, err := websock.Dial(t.Context(), d.URL(), nil)
		if err != nil {
			t.Fatal(err)
		}
		talk(t, s)
	})
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}
	t.Run("websocket over the socket", func(t *testing.T) {
		s, err := websock.Dial(t.Context(), "ws://daemon/", &websock.DialOptions{DialContext: dial})
		if err != nil {
			t.Fatal(err)
		}
		talk(t, s)
	})
	t.Run("lines", func(t *testing.T) {
		c, err := dial(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		talk(t, jsonrpc.NewLines(c, 0, nil))
	})
}

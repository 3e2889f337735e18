package door

import (
	"context"
	"encoding/json"
	"net"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/jsonrpc"
	"github.com/tapedeck-dev/tapedeck/internal/jsonrpc/websock"
)

// open serves a door whose conversations echo params, until the test is over.
func open(t testing.TB, o *Options) *Door {
	t.Helper()
	noLeak(t)
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

// noLeak fails the test when, after all that it cleans up, goroutines of connections are left.
func noLeak(t testing.TB) {
	t.Helper()
	t.Cleanup(func() {
		var left []string
		for range 400 {
			if left = connections(); len(left) == 0 {
				return
			}
			time.Sleep(5 * time.Millisecond) // a goroutine that has nothing left to do may not have ended
		}
		t.Errorf("goroutines are left:\n%s", strings.Join(left, "\n\n"))
	})
}

func connections() (left []string) {
	buf := make([]byte, 4<<20)
	for g := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		for _, of := range []string{"door.(*Door)", "jsonrpc.(*Conn)", "websock.(*Stream)", "websocket.(*Conn)", "http.(*conn)"} {
			if strings.Contains(g, of) {
				left = append(left, g)
				break
			}
		}
	}
	return left
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
		s, err := websock.Dial(t.Context(), "ws://daemon/", &websock.Options{DialContext: dial})
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

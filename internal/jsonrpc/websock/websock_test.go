package websock

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/internal/jsonrpc"
)

// hangUp closes a stream of which Read returned err.
func hangUp(s *Stream, err error) {
	var ours *jsonrpc.CloseError
	if errors.As(err, &ours) && ours.Ours {
		_ = s.Close(ours.Code, ours.Reason)
	}
}

// serve starts a server whose connections are given to peer.
func serve(t testing.TB, o *Options, peer func(*Stream)) (url string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		stream, err := Accept(w, r, o)
		if err != nil {
			return
		}
		defer stream.Close(0, "")
		peer(stream)
	}))
	t.Cleanup(s.Close)
	return "ws" + strings.TrimPrefix(s.URL, "http")
}

func TestCallsBothWays(t *testing.T) {
	url := serve(t, nil, func(s *Stream) {
		c := jsonrpc.New(s, &jsonrpc.Options{Handler: func(ctx context.Context, r *jsonrpc.Request) (any, error) {
			var back json.RawMessage
			err := r.Conn.Call(ctx, r.Conn.NewID(), "tools.execute", r.Params, &back)
			return back, err
		}})
		_ = c.Serve(context.Background())
	})
	s, err := Dial(t.Context(), url, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := jsonrpc.New(s, &jsonrpc.Options{IDPrefix: "c-", Handler: func(_ context.Context, r *jsonrpc.Request) (any, error) {
		return r.Params, nil
	}})
	served := make(chan error, 1)
	go func() { served <- c.Serve(context.Background()) }()
	var got json.RawMessage
	if err := c.Call(t.Context(), c.NewID(), "ask", json.RawMessage(`{"n":1}`), &got); err != nil || string(got) != `{"n":1}` {
		t.Errorf("got %s, %v", got, err)
	}
	c.Close(jsonrpc.CloseNormal, "")
	if err := <-served; err != nil {
		t.Error(err)
	}
}

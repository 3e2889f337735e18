package websock

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/coder/websocket"

	"github.com/tapedeck-dev/tapedeck/internal/jsonrpc"
)

const benchParams = `{"run_id":"run-0123456789","turns":[{"tool":"drive_cli","parameters":{"prompt":"list the files of this directory and say what each of them is for","cwd":"/work/project"},"output":{"exit_code":0,"stdout":"main.go\nmain_test.go\ngo.mod\ngo.sum\n","stderr":""},"verifier_verdict":"not_run"}]}`

// BenchmarkCall is one call over loopback, on n connections at once, at times with 16 calls on each; beside it the echo that
// github.com/coder/websocket is by itself, of frames of the same length.
func BenchmarkCall(b *testing.B) {
	for _, n := range []int{1, 50} {
		for _, each := range []int{1, 16} {
			b.Run(fmt.Sprintf("peers-%d-at-once-%d", n, each), func(b *testing.B) {
				url := serve(b, nil, func(s *Stream) {
					_ = jsonrpc.New(s, &jsonrpc.Options{Handler: func(context.Context, *jsonrpc.Request) (any, error) {
						return json.RawMessage(`{"run_id":"run-0123456789","base_index":0,"count":1,"ok":true}`), nil
					}}).Serve(context.Background())
				})
				var conns []*jsonrpc.Conn
				for range n {
					s, err := Dial(b.Context(), url, nil)
					if err != nil {
						b.Fatal(err)
					}
					c := jsonrpc.New(s, nil)
					go c.Serve(context.Background())
					defer c.Close(jsonrpc.CloseNormal, "")
					conns = append(conns, c)
				}
				spread(b, n*each, func(i int) error {
					c := conns[i%n]
					return c.Call(context.Background(), c.NewID(), "runs.record_turns", json.RawMessage(benchParams), nil)
				})
			})
		}
		b.Run(fmt.Sprintf("bare-%d", n), func(b *testing.B) {
			s := httptest.NewServer(http.HandlerFunc(bareEcho))
			defer s.Close()
			frame := []byte(`{"jsonrpc":"2.0","id":17,"method":"runs.record_turns","params":` + benchParams + `}`)
			var conns []*websocket.Conn
			for range n {
				c, _, err := websocket.Dial(b.Context(), "ws"+strings.TrimPrefix(s.URL, "http"), nil)
				if err != nil {
					b.Fatal(err)
				}
				defer c.CloseNow()
				conns = append(conns, c)
			}
			spread(b, n, func(i int) error {
				if err := conns[i].Write(context.Background(), websocket.MessageText, frame); err != nil {
					return err
				}
				_, _, err := conns[i].Read(context.Background())
				return err
			})
		})
	}
}

func bareEcho(w http.ResponseWriter, r *http.Request) {
	c, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer c.CloseNow()
	for {
		kind, p, err := c.Read(context.Background())
		if err != nil || c.Write(context.Background(), kind, p) != nil {
			return
		}
	}
}

// spread makes b.N calls by n goroutines.
func spread(b *testing.B, n int, call func(i int) error) {
	b.ReportAllocs()
	b.ResetTimer()
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			for range (b.N + i) / n {
				if err := call(i); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
	b.StopTimer()
}

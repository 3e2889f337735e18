package jsonrpc

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// What a turn costs on the wire: 300 bytes of params.
const benchParams = `{"run_id":"run-0123456789","turns":[{"tool":"drive_cli","parameters":{"prompt":"list the files of this directory and say what each of them is for","cwd":"/work/project"},"output":{"exit_code":0,"stdout":"main.go\nmain_test.go\ngo.mod\ngo.sum\n","stderr":""},"verifier_verdict":"not_run"}]}`

// BenchmarkCall is one request and its reply between two peers in memory, 1 and 16 at a time.
func BenchmarkCall(b *testing.B) {
	for _, n := range []int{1, 16} {
		b.Run(fmt.Sprintf("peers/at-once-%d", n), func(b *testing.B) {
			near, other := Pipe()
			server := New(near, &Options{Handler: func(context.Context, *Request) (any, error) {
				return json.RawMessage(`{"run_id":"run-0123456789","base_index":0,"count":1,"ok":true}`), nil
			}})
			client := New(other, nil)
			go server.Serve(context.Background())
			go client.Serve(context.Background())
			defer client.Close(CloseNormal, "")
			b.ReportAllocs()
			calls(b, n, func() error {
				var r json.RawMessage
				return client.Call(context.Background(), client.NewID(), "runs.record_turns", json.RawMessage(benchParams), &r)
			})
		})
		b.Run(fmt.Sprintf("naive/at-once-%d", n), func(b *testing.B) {
			near, other := Pipe()
			go naiveServer(near)
			client := newNaive(other)
			defer other.Close(CloseNormal, "")
			b.ReportAllocs()
			calls(b, n, func() error {
				_, err := client.call("runs.record_turns", json.RawMessage(benchParams))
				return err
			})
		})
	}
}

// calls makes b.N calls, n at a time.
func calls(b *testing.B, n int, call func() error) {
	b.ResetTimer()
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			for range (b.N + i) / n {
				if err := call(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
}

// naive is a peer as it is written first: encoding/json for each envelope, a goroutine a request, a lock around the writer.
type naive struct {
	s    Stream
	mu   sync.Mutex
	last int
	wait map[int]chan naiveFrame
}

type naiveFrame struct {
	JSONRPC string           `json:"jsonrpc"`
	ID      int              `json:"id"`
	Method  string           `json:"method,omitempty"`
	Params  *json.RawMessage `json:"params,omitempty"`
	Result  *json.RawMessage `json:"result,omitempty"`
	Error   *json.RawMessage `json:"error,omitempty"`
}

func naiveServer(s Stream) {
	var mu sync.Mutex
	for {
		b, _, err := s.Read()
		if err != nil {
			return
		}
		go func() {
			var f naiveFrame
			if json.Unmarshal(b, &f) != nil {
				return
			}
			result := json.RawMessage(`{"run_id":"run-0123456789","base_index":0,"count":1,"ok":true}`)
			out, _ := json.Marshal(naiveFrame{JSONRPC: "2.0", ID: f.ID, Result: &result})
			mu.Lock()
			defer mu.Unlock()
			_ = s.Write(out, false)
		}()
	}
}

func newNaive(s Stream) *naive {
	n := &naive{s: s, wait: map[int]chan naiveFrame{}}
	go func() {
		for {
			b, _, err := s.Read()
			if err != nil {
				return
			}
			var f naiveFrame
			if json.Unmarshal(b, &f) != nil {
				return
			}
			n.mu.Lock()
			ch := n.wait[f.ID]
			delete(n.wait, f.ID)
			n.mu.Unlock()
			ch <- f
		}
	}()
	return n
}

func (n *naive) call(method string, params json.RawMessage) (*json.RawMessage, error) {
	ch := make(chan naiveFrame, 1)
	n.mu.Lock()
	n.last++
	id := n.last
	n.wait[id] = ch
	out, err := json.Marshal(naiveFrame{JSONRPC: "2.0", ID: id, Method: method, Params: &params})
	if err == nil {
		err = n.s.Write(out, false)
	}
	n.mu.Unlock()
	if err != nil {
		return nil, err
	}
	f := <-ch
	return f.Result, nil
}

// BenchmarkParse takes an envelope apart.
func BenchmarkParse(b *testing.B) {
	frame := []byte(`{"jsonrpc":"2.0","id":17,"method":"runs.record_turns","params":` + benchParams + `}`)
	b.SetBytes(int64(len(frame)))
	b.ReportAllocs()
	var m message
	var s jsonscan.Scanner
	for b.Loop() {
		if err := m.parse(&s, frame); err != nil {
			b.Fatal(err)
		}
	}
}

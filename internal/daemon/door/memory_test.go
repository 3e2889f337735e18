package door

import (
	"context"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/jsonrpc"
	"github.com/tapedeck-dev/tapedeck/internal/jsonrpc/websock"
)

// TestMemoryOfAConnection measures what a silent connection costs, both of its ends and their goroutines in this process.
func TestMemoryOfAConnection(t *testing.T) {
	n := 100
	if os.Getenv("TAPEDECK_LONG") != "" {
		n = 2000
	}
	d := open(t, &Options{Listen: "127.0.0.1:0"})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for range n {
		s, err := websock.Dial(t.Context(), d.URL(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close(0, "")
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	heap := int64(after.HeapAlloc-before.HeapAlloc) / int64(n)
	stack := int64(after.StackInuse-before.StackInuse) / int64(n)
	t.Logf("%d connections: %d bytes of heap and %d of stacks each, with the client's end", n, heap, stack)
	if heap+stack > 64<<10 {
		t.Errorf("a silent connection takes %d bytes", heap+stack)
	}
}

// TestManyLongFrames sends long frames on many connections at once to handlers that keep them for a while: what they hold
// together stays within the budget, and every one is answered.
func TestManyLongFrames(t *testing.T) {
	const (
		limit  = 512 << 10
		total  = 4 << 20
		conns  = 20
		frames = 3
	)
	budget := jsonrpc.NewBudget(total)
	var most, now, answered atomic.Int64
	d := open(t, &Options{
		Listen: "127.0.0.1:0", WebSocket: websock.Options{Limit: limit, Budget: budget},
		Converse: func(ctx context.Context, s jsonrpc.Stream, _ Peer) {
			_ = jsonrpc.New(s, &jsonrpc.Options{Budget: budget, Handler: func(_ context.Context, r *jsonrpc.Request) (any, error) {
				n := now.Add(int64(len(r.Params)))
				for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
				}
				time.Sleep(time.Millisecond)
				now.Add(-int64(len(r.Params)))
				return 1, nil
			}}).Serve(ctx)
		},
	})
	params := []string{strings.Repeat("x", limit-1000)}
	var wg sync.WaitGroup
	for range conns {
		s, err := websock.Dial(t.Context(), d.URL(), nil)
		if err != nil {
			t.Fatal(err)
		}
		c := jsonrpc.New(s, nil)
		wg.Go(func() { _ = c.Serve(context.Background()) })
		wg.Go(func() {
			defer c.Close(jsonrpc.CloseNormal, "")
			var calls sync.WaitGroup
			for range frames {
				calls.Go(func() {
					if err := c.Call(context.Background(), c.NewID(), "x", params, nil); err != nil {
						t.Error(err)
						return
					}
					answered.Add(1)
				})
			}
			calls.Wait()
		})
	}
	wg.Wait()
	if answered.Load() != conns*frames || most.Load() > total {
		t.Errorf("%d answered, at most %d bytes at once of %d", answered.Load(), most.Load(), total)
	}
	for used, _ := budget.Used(); used != 0; used, _ = budget.Used() {
		time.Sleep(time.Millisecond) // the last answer leaves a moment before its request is forgotten
	}
}

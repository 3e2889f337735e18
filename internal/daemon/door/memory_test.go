package door

import (
	"os"
	"runtime"
	"testing"

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

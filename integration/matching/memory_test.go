package matching

import (
	"bytes"
	"hash/fnv"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"testing"
	"time"
)

// TestMemory records and replays a streamed answer that is much longer than the memory that may be used for it. The bound
// is wide: what the collector has not freed yet counts too.
func TestMemory(t *testing.T) {
	const bound = 32 << 20
	size := int64(sized(80<<20, 200<<20))
	piece := bytes.Repeat([]byte("data: what the model says, \"quoted\"\n\n"), 800)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for sent := int64(0); sent < size; sent += int64(len(piece)) {
			if _, err := w.Write(piece); err != nil {
				t.Errorf("upstream: %v", err)
				return
			}
		}
	}))
	t.Cleanup(srv.Close)
	recorded := record(t, srv.URL)
	want := download(t, recorded, size, bound)
	recorded.end()
	replay := recorded.replay(0)
	if got := download(t, replay, size, bound); got != want {
		t.Errorf("the replay gave other bytes: %v, want %v", got, want)
	}
	replay.end()
	if report := recorded.compare(replay); !report.Faithful() {
		t.Error(report)
	}
}

// got is how much came, and its hash.
type got struct {
	n   int64
	sum uint64
}

// download asks for the answer, of which it keeps nothing, and holds the growth of the heap meanwhile to bound, in bytes.
func download(t *testing.T, r *run, size, bound int64) got {
	t.Helper()
	debug.FreeOSMemory()
	peak := watchHeap()
	defer func() {
		if grown := peak(); grown > bound {
			t.Errorf("the heap grew by %d MiB for an answer of %d MiB", grown>>20, size>>20)
		} else {
			t.Logf("the heap grew by %d MiB for an answer of %d MiB", grown>>20, size>>20)
		}
	}()
	res, err := r.client("h1").Post("http://"+model+messagesPath, "application/json", bytes.NewReader([]byte(body([]message{said("go")}))))
	must(t, err)
	defer res.Body.Close()
	h := fnv.New64a()
	n, err := io.Copy(h, res.Body)
	must(t, err)
	if n < size {
		t.Errorf("%d bytes came, want %d", n, size)
	}
	return got{n, h.Sum64()}
}

// watchHeap samples the bytes of the heap's objects until the function that it returns is called, which says by how much
// they were more at most than they are now.
func watchHeap() (grown func() int64) {
	begun := heap()
	var most int64
	var wg sync.WaitGroup
	done := make(chan struct{})
	wg.Go(func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			most = max(most, heap()-begun)
			select {
			case <-tick.C:
			case <-done:
				return
			}
		}
	})
	return func() int64 {
		close(done)
		wg.Wait()
		return most
	}
}

func heap() int64 {
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64())
}

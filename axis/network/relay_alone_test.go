package network

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// A header that comes again passes on between the bytes of an answer, not while some are written (the race detector sees it).
func TestHeadAloneTakesTurns(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	x := &relay{w: w, rc: http.NewResponseController(w), a: &answer{}}
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() { _ = x.put(nil) })
		all.Go(func() { _ = x.put([]byte("x")) })
	}
	all.Wait()
	if n := w.Body.Len(); n != 100 {
		t.Errorf("%d bytes passed, want 100", n)
	}
}

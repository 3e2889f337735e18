//go:build kill

package kill

import (
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

var idForm = regexp.MustCompile(`id-\d-\d+;`)

// chunksOf are the chunks of the answer to a request, of which nothing but its id decides.
func chunksOf(id string) []string {
	h := fnv.New64a()
	io.WriteString(h, id)
	rng := rand.New(rand.NewPCG(h.Sum64(), 1))
	var out []string
	for i := range 1 + rng.IntN(40) {
		out = append(out, fmt.Sprintf("event: delta\ndata: {\"of\":\"%s\",\"n\":%d,\"text\":\"%s\"}\n\n", id, i, strings.Repeat("some words ", rng.IntN(120))))
	}
	return out
}

// answerTo is the whole answer.
func answerTo(id string) string { return strings.Join(chunksOf(id), "") }

// upstream answers models and items. Models stream.
func upstream(t *testing.T) *httptest.Server {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		id := idForm.FindString(r.URL.Path + string(body))
		if r.Method == http.MethodGet {
			w.Header().Set("Content-Type", "text/plain")
			w.Header().Set("Content-Length", strconv.Itoa(len(answerTo(id))))
			io.WriteString(w, answerTo(id))
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for _, c := range chunksOf(id) {
			if _, err := io.WriteString(w, c); err != nil {
				return
			}
			w.(http.Flusher).Flush()
			time.Sleep(time.Duration(rand.IntN(3)) * time.Millisecond) // a model takes its time
		}
	}))
	t.Cleanup(srv.Close)
	return srv
}

package network

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// message is about what a model's answer without streaming looks like.
type message struct {
	Model    string           `json:"model"`
	Messages []map[string]any `json:"messages"`
}

func benchBody(b *testing.B) []byte {
	b.Helper()
	m := message{Model: "model"}
	for range 20 {
		m.Messages = append(m.Messages, map[string]any{"role": "user", "content": strings.Repeat("words ", 100)})
	}
	body, err := json.Marshal(m)
	if err != nil {
		b.Fatal(err)
	}
	return body
}

// serveJSON is what a replayed answer competes with: a server that decodes the request and encodes the same JSON.
func serveJSON(w http.ResponseWriter, r *http.Request) {
	var m message
	if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(m)
}

func BenchmarkReplayedRequest(b *testing.B) {
	body := benchBody(b)
	g := newRig(b, upstreamOf(b, serveJSON))
	c := g.client("h1")
	for range b.N {
		ask(c, "POST", "http://api.example.com/v1", body)
	}
	c = replayRig(g, nil).client("h1")
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		if got := ask(c, "POST", "http://api.example.com/v1", body); got.status != http.StatusOK {
			b.Fatalf("got %+v", got)
		}
	}
}

func BenchmarkJSONServer(b *testing.B) {
	body := benchBody(b)
	l := listenLoopback(b)
	srv := &http.Server{Handler: http.HandlerFunc(serveJSON)}
	go srv.Serve(l)
	b.Cleanup(func() { srv.Close() })
	c := &http.Client{Transport: &http.Transport{}}
	url := "http://" + l.Addr().String() + "/v1"
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		if got := ask(c, "POST", url, body); got.status != http.StatusOK {
			b.Fatalf("got %+v", got)
		}
	}
}

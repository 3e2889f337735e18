package network

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/tapedeck-dev/tapedeck/internal/cputime"
)

// benchMessage is message n, JSON of about size bytes. No two are equal.
func benchMessage(n, size int) []byte {
	b, _ := json.Marshal(map[string]any{"type": "input", "n": n, "text": strings.Repeat("some words, ", size/12)[:size-40]}) // always marshals
	return b
}

// wsRate is how long it takes to have n messages echoed, with so many under way at a time.
func wsRate(b *testing.B, c *websocket.Conn, from, n, flight int) time.Duration {
	b.Helper()
	messages := make([][]byte, n)
	for i := range messages {
		messages[i] = benchMessage(from+i, 1024)
	}
	ctx := context.Background()
	credit := make(chan struct{}, flight)
	failed := make(chan error, 1)
	t0 := time.Now()
	go func() {
		for _, m := range messages {
			credit <- struct{}{}
			if err := c.Write(ctx, websocket.MessageText, m); err != nil {
				failed <- err
				return
			}
		}
		failed <- nil
	}()
	for _, want := range messages {
		_, got, err := c.Read(ctx)
		if err != nil || !bytes.Equal(got, want) {
			b.Fatalf("got %d bytes, %v", len(got), err)
		}
		<-credit
	}
	if err := <-failed; err != nil {
		b.Fatal(err)
	}
	return time.Since(t0)
}

// BenchmarkSocketEcho compares the rate at which messages of 1 KiB are echoed through the relay that records them, TLS on both sides,
// with that of the same program and the same server without it, over TLS on the loopback in one process, in turns. ratio is the
// recorded rate by the direct one.
func BenchmarkSocketEcho(b *testing.B) {
	for _, flight := range []int{1, 64} {
		b.Run(fmt.Sprintf("%d-in-flight", flight), func(b *testing.B) {
			up := httptest.NewTLSServer(wsEcho(nil))
			b.Cleanup(up.Close)
			pool := x509.NewCertPool()
			pool.AddCert(up.Certificate())
			bt := newBenchTap(b, false)
			g := newRig(b, func(cfg *Config) {
				sendTo(up.URL)(cfg)
				cfg.RootCAs, cfg.Tap = pool, bt.Tap
			})
			recorded, _, err := g.wsDial("wss://api.example.com/v1/echo", nil)
			if err != nil {
				b.Fatal(err)
			}
			client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
			direct, _, err := websocket.Dial(b.Context(), strings.Replace(up.URL, "https", "wss", 1), &websocket.DialOptions{HTTPClient: client})
			if err != nil {
				b.Fatal(err)
			}
			defer direct.CloseNow()
			wsRate(b, recorded, 0, 100, flight)
			wsRate(b, direct, 0, 100, flight)
			var spent, cpu [2]time.Duration
			b.ResetTimer()
			for done := 0; done < b.N; {
				n := min(500, b.N-done)
				for i, c := range []*websocket.Conn{recorded, direct} {
					before := cputime.Spent()
					spent[i] += wsRate(b, c, 1000+done, n, flight)
					cpu[i] += cputime.Spent() - before
				}
				done += n
			}
			b.ReportMetric(float64(cpu[1])/float64(cpu[0]), "cpu-ratio")
			b.ReportMetric(float64(spent[1])/float64(spent[0]), "ratio")
			b.ReportMetric(float64(spent[0].Microseconds())/float64(b.N), "recorded-µs/op")
			b.ReportMetric(float64(spent[1].Microseconds())/float64(b.N), "direct-µs/op")
		})
	}
}

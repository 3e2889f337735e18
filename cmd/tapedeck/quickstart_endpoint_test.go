package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
)

// The endpoint says where it is, answers as the provider does, and ends with its context.
func TestQuickstartEndpoint(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { // ends with ctx; awaited below
		defer w.Close()
		ended <- runQuickstartEndpoint(ctx, "127.0.0.1:0", &console{streams: streams{out: w, err: w}})
	}()
	line, _ := bufio.NewReader(r).ReadString('\n')
	_, url, ok := strings.Cut(strings.TrimSpace(line), "a scripted model at ")
	if !ok {
		t.Fatalf("it said %q: %v", line, <-ended)
	}
	body := `{"model":"claude-sonnet-4-5","max_tokens":64,"messages":[{"role":"user","content":"hello"}]}`
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/messages", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("x-api-key", "any")
	req.Header.Set("anthropic-version", "2023-06-01")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if b, err := io.ReadAll(res.Body); err != nil || res.StatusCode != http.StatusOK || !strings.Contains(string(b), `"type":"message"`) {
		t.Errorf("status %d, %v: %s", res.StatusCode, err, b)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("it ended with %v", err)
	}
}

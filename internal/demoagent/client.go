package demoagent

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	maxRetries   = 2
	firstBackoff = 500 * time.Millisecond
	maxBackoff   = 8 * time.Second
	maxErrorBody = 1 << 20 // bytes
)

// A client sends requests to the provider and retries as its SDKs do.
type client struct {
	http *http.Client
	base string
	key  string
}

// send returns the body of a successful answer; the caller closes it. A refusal is an *apiError.
func (c *client) send(ctx context.Context, q *request) (io.ReadCloser, error) {
	body, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	for attempt := 0; ; attempt++ {
		resp, err := c.post(ctx, body)
		if err == nil && resp.StatusCode == http.StatusOK {
			return resp.Body, nil
		}
		var header http.Header
		again := true // a connection that failed
		if err == nil {
			header, again = resp.Header, retryable(resp)
			err = refusal(resp)
		}
		if !again || attempt == maxRetries || ctx.Err() != nil {
			return nil, err
		}
		if err := sleep(ctx, backoff(attempt, header)); err != nil {
			return nil, err
		}
	}
}

func (c *client) post(ctx context.Context, body []byte) (*http.Response, error) {
	url := strings.TrimSuffix(c.base, "/") + "/v1/messages"
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Anthropic-Version", "2023-06-01")
	r.Header.Set("User-Agent", "demoagent/1")
	r.Header.Set("X-Api-Key", c.key)
	return c.http.Do(r)
}

// refusal reads and closes the body of an answer that is no success.
func refusal(resp *http.Response) error {
	defer resp.Body.Close()
	out := &apiError{Status: resp.StatusCode, Kind: "error", Message: http.StatusText(resp.StatusCode)}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	var e errorBody
	if err == nil && json.Unmarshal(raw, &e) == nil && e.Error.Message != "" {
		out.Kind, out.Message = e.Error.Type, e.Error.Message
	}
	return out
}

// retryable follows the provider's SDKs: the server's own word first, then the status.
func retryable(resp *http.Response) bool {
	switch resp.Header.Get("X-Should-Retry") {
	case "true":
		return true
	case "false":
		return false
	}
	switch resp.StatusCode {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests:
		return true
	}
	return resp.StatusCode >= 500
}

// backoff is what the server asks for, up to a minute, else it doubles with every attempt, less up to a quarter.
func backoff(attempt int, h http.Header) time.Duration {
	for name, unit := range map[string]time.Duration{"Retry-After-Ms": time.Millisecond, "Retry-After": time.Second} {
		if n, err := strconv.Atoi(h.Get(name)); err == nil && n >= 0 && time.Duration(n)*unit <= time.Minute {
			return time.Duration(n) * unit
		}
	}
	d := min(firstBackoff<<attempt, maxBackoff)
	return d - rand.N(d/4)
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

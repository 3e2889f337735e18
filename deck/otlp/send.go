package otlp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/visible"
)

// patience is how long a receiver may take for a request.
const patience = 30 * time.Second

// tracesPath is where a receiver takes spans whose address has no path.
const tracesPath = "/v1/traces"

// To posts requests to a receiver: http://HOST:4318, or the whole address of where it takes spans. headers are those that every request gets,
// written as OTEL_EXPORTER_OTLP_HEADERS has them: NAME=VALUE, percent-encoded, with commas between.
func To(ctx context.Context, address, headers string) (Sink, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%s: want the address of a receiver, as in http://localhost:4318", visible.WithoutUser(address))
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = tracesPath
	}
	h, err := parseHeaders(headers)
	if err != nil {
		return nil, err
	}
	h.Set("Content-Type", "application/json")
	client := &http.Client{Timeout: patience, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }} // which has the headers alone
	return func(request []byte) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), bytes.NewReader(request))
		if err != nil {
			return err
		}
		r.Header = h.Clone()
		answer, err := client.Do(r)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		return refusalOf(u.Redacted(), answer)
	}, nil
}

// maxAnswer is how much of a receiver's answer is read, in bytes.
const maxAnswer = 64 << 10

// refusalOf is why a receiver did not take all; nil where it did.
func refusalOf(address string, answer *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("%s: %w", address, err)
	}
	if answer.StatusCode/100 != 2 {
		return fmt.Errorf("%s does not take the spans: %s: %s; the same export again doubles none", address, answer.Status, bytes.TrimSpace(body[:min(len(body), 500)]))
	}
	var part struct {
		PartialSuccess struct {
			RejectedSpans json.Number `json:"rejectedSpans"`
			ErrorMessage  string      `json:"errorMessage"`
		} `json:"partialSuccess"`
	}
	if json.Unmarshal(body, &part) == nil {
		if n, err := part.PartialSuccess.RejectedSpans.Int64(); err == nil && n > 0 {
			return fmt.Errorf("%s rejected %d spans: %s", address, n, part.PartialSuccess.ErrorMessage)
		}
	}
	return nil
}

func parseHeaders(list string) (http.Header, error) {
	h := http.Header{}
	for pair := range strings.SplitSeq(list, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if name = strings.TrimSpace(name); !ok || err != nil || name == "" {
			return nil, errors.New("headers for a receiver: want NAME=VALUE, percent-encoded, with commas between") // not which: it may be a secret
		}
		h.Set(name, value)
	}
	return h, nil
}

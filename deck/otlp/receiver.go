package otlp

import (
	"bytes"
	"cmp"
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

// A Receiver takes spans over HTTP.
type Receiver struct {
	url     *url.URL
	headers http.Header
	client  http.Client
}

// patience is how long a receiver may take for a request.
const patience = 30 * time.Second

// tracesPath is where a receiver takes spans whose address has no path.
const tracesPath = "/v1/traces"

// FromEnv is what stands for an address that the environment has.
const FromEnv = "env"

// HeaderVars are the variables that have the headers of requests, the first that is there. Keys stand in them.
var HeaderVars = []string{"OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS"}

// To is the receiver at an address: http://HOST:4318, or the whole address of where it takes spans, or FromEnv for that of
// OTEL_EXPORTER_OTLP_TRACES_ENDPOINT or OTEL_EXPORTER_OTLP_ENDPOINT. The headers of every request are those of HeaderVars:
// NAME=VALUE, percent-encoded, with commas between.
func To(address string, getenv func(string) string) (*Receiver, error) {
	named := address
	if address == FromEnv {
		named = getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
		if base := getenv("OTEL_EXPORTER_OTLP_ENDPOINT"); named == "" && base != "" {
			named = strings.TrimRight(base, "/") + tracesPath
		}
		if named == "" {
			return nil, errors.New("neither OTEL_EXPORTER_OTLP_TRACES_ENDPOINT nor OTEL_EXPORTER_OTLP_ENDPOINT is set")
		}
	}
	u, err := url.Parse(named)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%s: want the address of a receiver, as in http://localhost:4318", visible.WithoutKeys(named))
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = tracesPath
	}
	h, err := parseHeaders(cmp.Or(getenv(HeaderVars[0]), getenv(HeaderVars[1])))
	if err != nil {
		return nil, err
	}
	h.Set("Content-Type", "application/json")
	return &Receiver{u, h, http.Client{
		Timeout: patience, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // which has the headers alone
	}}, nil
}

// String is its address, without its user and its query, which may be keys: *** stands for each.
func (r *Receiver) String() string {
	text := plainURL(r.url.String())
	if r.url.User != nil {
		text = strings.Replace(text, "://", "://***@", 1)
	}
	if r.url.RawQuery != "" {
		text += "?***"
	}
	return text
}

// failed is err of a request, without the address that net/http puts before it, whose query may be a key.
func (r *Receiver) failed(err error) error {
	if whole := (*url.Error)(nil); errors.As(err, &whole) {
		err = whole.Err
	}
	return fmt.Errorf("%s: %w", r, err)
}

// Send gives it a request. The error is a *Refusal where it answered, and did not take all.
func (r *Receiver) Send(ctx context.Context, request []byte) error {
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url.String(), bytes.NewReader(request))
	if err != nil {
		return r.failed(err)
	}
	q.Header = r.headers.Clone()
	answer, err := r.client.Do(q)
	if err != nil {
		return r.failed(err)
	}
	defer answer.Body.Close()
	return refusalOf(r.String(), answer)
}

// A Refusal is why a receiver did not take all.
type Refusal struct {
	Spans int // that it rejected; 0 for all
	text  string
	again bool // it may take them later
}

func (r *Refusal) Error() string { return r.text }

// maxAnswer is how much of a receiver's answer is read, and maxReason how much of what it says is told, in bytes.
const (
	maxAnswer = 64 << 10
	maxReason = 500
)

func refusalOf(address string, answer *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("%s: %w", address, err)
	}
	if status := answer.StatusCode; status/100 != 2 {
		text := fmt.Sprintf("%s does not take the spans: %s: %s", address, answer.Status, cutTo(maxReason, string(bytes.TrimSpace(body))))
		return &Refusal{0, strings.TrimSuffix(text, ": "), status == http.StatusTooManyRequests || status >= 500}
	}
	var part struct {
		PartialSuccess struct {
			RejectedSpans json.Number `json:"rejectedSpans"`
			ErrorMessage  string      `json:"errorMessage"`
		} `json:"partialSuccess"`
	}
	if json.Unmarshal(body, &part) == nil {
		if n, err := part.PartialSuccess.RejectedSpans.Int64(); err == nil && n > 0 {
			return &Refusal{int(n), strings.TrimSuffix(fmt.Sprintf("%s rejected %d spans: %s", address, n, cutTo(maxReason, part.PartialSuccess.ErrorMessage)), ": "), false}
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

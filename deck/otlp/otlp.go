// Package otlp gives a recording as spans in OpenTelemetry's protocol (OTLP 1, the JSON form), for who looks at traces elsewhere.
//
// A recording is one trace: the run, and below it each call of a model, request, message to a tool server and process. Which names and
// attributes they have stands in genai.go alone. Ids are made of the id of the recording and the number of the record, so that a second
// export of the same recording is the same spans. Times are those recorded.
//
// Content stays here: no prompt, no answer, no argument, no output is in a span. What a span has was scrubbed when it was recorded.
//
// Not goals: metrics, logs, spans of a run that goes on.
package otlp

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/deck/account"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/internal/version"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A Span is one span, in OTLP's JSON form.
type Span struct {
	TraceID    string     `json:"traceId"` // 32 hexadecimal digits
	SpanID     string     `json:"spanId"`  // 16
	ParentID   string     `json:"parentSpanId,omitempty"`
	Name       string     `json:"name"`
	Kind       int        `json:"kind"`
	Start      string     `json:"startTimeUnixNano"`
	End        string     `json:"endTimeUnixNano"`
	Attributes Attributes `json:"attributes"`
	Status     Status     `json:"status"`
}

// What a span is of.
const (
	kindInternal = 1
	kindClient   = 3
)

// Status says whether what a span is of failed.
type Status struct {
	Code int `json:"code,omitempty"` // statusError; 0 where it did not
}

const statusError = 2

// Attributes are what is known of a span or its program, in order.
type Attributes []attribute

type attribute struct {
	Key   string         `json:"key"`
	Value map[string]any `json:"value"`
}

// text adds an attribute; an empty one says nothing and is left out.
func (a *Attributes) text(key, value string) {
	if value != "" {
		*a = append(*a, attribute{key, map[string]any{"stringValue": value}})
	}
}

// number adds one, which is a string in this form of JSON.
func (a *Attributes) number(key string, value int64) {
	*a = append(*a, attribute{key, map[string]any{"intValue": strconv.FormatInt(value, 10)}})
}

// cost adds one in US dollars, where it is known.
func (a *Attributes) cost(value *float64) {
	if value != nil {
		*a = append(*a, attribute{"tapedeck.cost_usd", map[string]any{"doubleValue": *value}})
	}
}

// A request is an ExportTraceServiceRequest.
type request struct {
	ResourceSpans []resourceSpans `json:"resourceSpans"`
}

type resourceSpans struct {
	Resource struct {
		Attributes Attributes `json:"attributes"`
	} `json:"resource"`
	ScopeSpans []scopeSpans `json:"scopeSpans"`
	SchemaURL  string       `json:"schemaUrl"`
}

type scopeSpans struct {
	Scope struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	} `json:"scope"`
	Spans []Span `json:"spans"`
}

// most is how many spans a request has.
const most = 1000

// A Sink takes requests: the JSON of each, without a newline.
type Sink func(request []byte) error

// ToFile gives requests a line each, as an OpenTelemetry Collector reads files.
func ToFile(w io.Writer) Sink {
	return func(request []byte) error {
		_, err := w.Write(append(request, '\n'))
		return err
	}
}

// Export gives the spans of a finished recording to a sink and returns how many they were. nil prices are those that are built in.
func Export(rec *recording.Recording, prices *llm.Prices, to Sink) (spans int, err error) {
	t, err := rec.OpenTape()
	if err != nil {
		return 0, err
	}
	defer t.Close()
	m := mapper{rec: rec.Manifest, book: account.NewBook(t.Store, prices), store: t.Store, spawns: make(map[uint64]uint64), program: math.MaxUint64}
	if err := m.processes(rec); err != nil {
		return 0, err
	}
	var part []Span
	for r, err := range t.Records() {
		if err != nil {
			return spans, err
		}
		s, ok := m.span(r)
		if !ok {
			continue
		}
		spans++
		if part = append(part, *s); len(part) == most {
			if err := m.give(part, to); err != nil {
				return spans, err
			}
			part = part[:0]
		}
	}
	return spans + 1, m.give(append(part, *m.run()), to)
}

// processes notes which record each process has: a child's comes before its parent's.
func (m *mapper) processes(rec *recording.Recording) error {
	for r, err := range rec.Records() {
		if err != nil {
			return err
		}
		if k, ok := r.Kind.(*tape.ProcessSpawn); ok && k.SpawnID != 0 {
			if m.spawns[k.SpawnID] = r.Seq; k.ParentSpawnID == 0 {
				m.program = r.Seq
			}
		}
		m.last = max(m.last, r.MonotonicMS)
	}
	return nil
}

// give gives spans as one request.
func (m *mapper) give(spans []Span, to Sink) error {
	r := resourceSpans{ScopeSpans: []scopeSpans{{Spans: spans}}, SchemaURL: schema}
	r.Resource.Attributes = m.resource()
	r.ScopeSpans[0].Scope.Name, r.ScopeSpans[0].Scope.Version = "tapedeck", version.Version
	b, err := json.Marshal(request{[]resourceSpans{r}})
	if err != nil {
		return err
	}
	return to(b)
}

// idOf makes an id of so many bytes of what it is of.
func idOf(size int, of ...any) string {
	sum := sha256.Sum256([]byte(fmt.Sprintln(append([]any{"tapedeck span"}, of...)...)))
	return hex.EncodeToString(sum[:size])
}

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

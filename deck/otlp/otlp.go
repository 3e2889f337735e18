// Package otlp gives runs as spans in OpenTelemetry's protocol (OTLP 1 over HTTP, the JSON form), for who looks at traces elsewhere: a
// recording that is finished (Export) or that is being made (Live), and the runs of a daemon (Runs).
//
// A recording is one trace: the run, and below it each call of a model, request, message to a tool server and process. Which names and
// attributes they have stands in genai.go alone. Ids are made of the id of the recording and the number of the record or process, so that
// a second export of the same recording, or one after it was sent live, is the same spans. Times are those recorded.
//
// Content stays here unless Options ask for it: no prompt, no answer, no argument, no output is in a span. What a span has was scrubbed
// when it was recorded.
//
// What is sent live goes through a Queue, which is bounded and never holds up who adds to it: what a receiver does not take in time is
// dropped, and counted.
//
// Not goals: metrics, logs, gRPC.
package otlp

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/internal/version"
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
	Spans []json.RawMessage `json:"spans"`
}

// most is how many spans a request has, and maxRequest how many bytes of them, but for one that has more.
const (
	most       = 1000
	maxRequest = 4 << 20
)

// A Sink takes requests: the JSON of each, without a newline.
type Sink func(request []byte) error

// ToFile gives requests a line each, as an OpenTelemetry Collector reads files.
func ToFile(w io.Writer) Sink {
	return func(request []byte) error {
		_, err := w.Write(append(request, '\n'))
		return err
	}
}

// Options say how a recording becomes spans. nil and zero work.
type Options struct {
	Prices  *llm.Prices // those that are built in when nil
	Content bool        // prompts, answers, arguments and what tools gave are in the spans, as far as bounds allow
}

// Export gives the spans of a finished recording to a sink and returns how many they were.
func Export(rec *recording.Recording, o *Options, to Sink) (spans int, err error) {
	t, err := rec.OpenTape()
	if err != nil {
		return 0, err
	}
	defer t.Close()
	m := newMapper(rec.Manifest, t.Store, o)
	var part []json.RawMessage
	size := 0
	for r, err := range t.Records() {
		if err != nil {
			return spans, err
		}
		s, ok := m.span(r)
		if !ok {
			continue
		}
		spans++
		b := s.encoded()
		if len(part) == most || len(part) > 0 && size+len(b) > maxRequest {
			if err := to(requestOf(m.resource(), part)); err != nil {
				return spans, err
			}
			part, size = part[:0], 0
		}
		part, size = append(part, b), size+len(b)
	}
	return spans + 1, to(requestOf(m.resource(), append(part, m.run().encoded())))
}

func (s *Span) encoded() json.RawMessage {
	b, _ := json.Marshal(s) // texts and numbers: it cannot fail
	return b
}

// requestOf is a request of spans of one resource.
func requestOf(resource Attributes, spans []json.RawMessage) []byte {
	r := resourceSpans{ScopeSpans: []scopeSpans{{Spans: spans}}, SchemaURL: schema}
	r.Resource.Attributes = resource
	r.ScopeSpans[0].Scope.Name, r.ScopeSpans[0].Scope.Version = "tapedeck", version.Version
	b, _ := json.Marshal(request{[]resourceSpans{r}})
	return b
}

// idOf makes an id of so many bytes of what it is of.
func idOf(size int, of ...any) string {
	sum := sha256.Sum256([]byte(fmt.Sprintln(append([]any{"tapedeck span"}, of...)...)))
	return hex.EncodeToString(sum[:size])
}

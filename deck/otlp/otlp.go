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
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/deck/follow"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/internal/version"
	"github.com/tapedeck-dev/tapedeck/runtrace"
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

// A Live sends the spans of a recording while it is made: those of Export, but for what becomes known as a secret later than it was sent.
// One goroutine reads the tape, from Begin to End.
type Live struct {
	m      *mapper
	q      *Queue
	cancel context.CancelFunc
	done   chan struct{} // closed when the goroutine has ended
	err    error         // why it ended too early; set before done is closed
}

// Begin begins to send the recording in dir, whose recorder is at work. End must be called.
func Begin(dir string, o *Options, to *Receiver) (*Live, error) {
	rec, err := recording.Open(dir)
	if err != nil {
		return nil, err
	}
	store, err := rec.Store()
	if err != nil {
		return nil, err
	}
	l := &Live{m: newMapper(rec.Manifest, store, o), done: make(chan struct{})}
	l.q = NewQueue(to, l.m.resource())
	var ctx context.Context
	ctx, l.cancel = context.WithCancel(context.Background())
	go func() {
		defer close(l.done)
		_, l.err = follow.Follow(ctx, rec, &follow.Options{Record: func(r *tape.Record) error {
			if s, ok := l.m.span(r); ok {
				l.q.Add(s)
			}
			return nil
		}})
	}()
	return l, nil
}

// End sends what is left and the span of the run itself, once the recorder has ended; rec is what it left, nil where it failed. It takes
// so long at most.
func (l *Live) End(rec *recording.Recording, within time.Duration) Tally {
	deadline := time.Now().Add(within)
	late := time.AfterFunc(within, l.cancel)
	<-l.done
	late.Stop()
	l.cancel()
	if rec != nil {
		l.m.rec = rec.Manifest
	}
	if l.err == nil {
		l.q.Add(l.m.run())
	}
	t := l.q.Close(time.Until(deadline))
	if l.err != nil {
		t.Dropped++ // the run itself, and who knows what else
		t.Err = fmt.Errorf("the tape could not be read to its end in time: %w", l.err)
	}
	return t
}

// Runs sends the spans of a daemon's runs while they go on. Its methods wait neither for the receiver nor for each other: a span is made,
// and secrets taken out of it, outside the lock.
type Runs struct {
	q       *Queue
	content func([]byte) []byte // takes secrets out, for several callers at once; nil where content stays

	mu   sync.Mutex
	open map[runtrace.ID]*openRun
}

// An openRun is what is known of a run that has not ended.
type openRun struct {
	started         *runtrace.Started
	begun, last     time.Time // last is when something was told of it
	turns, verdicts int
}

// NewRuns begins to send to a receiver. content takes secrets out of what the spans then have of content, for several callers at once; nil
// leaves all of it out. Close must be called.
func NewRuns(to *Receiver, host string, content func([]byte) []byte) *Runs {
	return &Runs{q: NewQueue(to, daemonResource(host)), content: content, open: make(map[runtrace.ID]*openRun)}
}

// of returns what is known of a run, and when what is told of it now began: with what was told before it. One that is not known is kept
// where it is starting: another one is of before the daemon's start, or has ended, and nobody would remove it. r.mu is held.
func (r *Runs) of(id runtrace.ID, starting bool) (run *openRun, from, now time.Time) {
	now = time.Now()
	if run = r.open[id]; run == nil {
		run = &openRun{begun: now, last: now}
		if starting {
			r.open[id] = run
		}
	}
	from, run.last = run.last, now
	return run, from, now
}

// Started is told of a new run.
func (r *Runs) Started(s *runtrace.Started) {
	r.mu.Lock()
	defer r.mu.Unlock()
	run, _, _ := r.of(s.ID(), true)
	run.started = s
}

// Turns is told of turns, of which the first has the index base. They may be told after the end of their run.
func (r *Runs) Turns(id runtrace.ID, base int, turns []runtrace.Turn) {
	r.mu.Lock()
	run, from, now := r.of(id, false)
	run.turns = base + len(turns)
	r.mu.Unlock()
	for i := range turns {
		if r.q.room() {
			r.q.Add(turnSpan(id, base+i, &turns[i], from, now, r.content))
		}
	}
}

// Verdict is told of a policy's decision, as it is kept, on an action of a run or, with the zero id, of none.
func (r *Runs) Verdict(id runtrace.ID, verdict json.RawMessage) {
	r.mu.Lock()
	run, _, now := r.of(id, false)
	run.verdicts++
	number := fmt.Sprint(run.verdicts)
	if r.open[id] == nil {
		number = fmt.Sprint("at ", now.UnixNano())
	}
	r.mu.Unlock()
	if r.q.room() {
		r.q.Add(verdictSpan(id, number, verdict, now, r.content))
	}
}

// Ended is told of the end of a run.
func (r *Runs) Ended(id runtrace.ID, e *runtrace.Ended) {
	r.mu.Lock()
	run, _, now := r.of(id, false)
	delete(r.open, id) // nobody else has run from here on
	r.mu.Unlock()
	if r.q.room() {
		r.q.Add(runSpan(id, run, e, now, r.content))
	}
}

// Counts are how many spans the receiver has taken so far, and how many were dropped.
func (r *Runs) Counts() (sent, dropped int) {
	t := r.q.Tally()
	return t.Sent, t.Dropped
}

// Close sends what waits, for so long at most.
func (r *Runs) Close(within time.Duration) Tally { return r.q.Close(within) }

// Lost says in words what was not sent, "" for nothing.
func (t *Tally) Lost() string {
	if t.Dropped == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d spans were not sent: %v", t.Dropped, t.Dropped+t.Sent, t.Err)
}

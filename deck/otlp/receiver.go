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
	"sync"
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

// Bounds of what waits in a Queue, in spans and in bytes, and of the pauses before a receiver is tried again.
const (
	maxWaiting      = 10_000
	maxWaitingBytes = 16 << 20

	firstPause = 50 * time.Millisecond
	lastPause  = time.Second
)

// A Queue sends spans while they are made. Who adds one never waits: it is one goroutine, from NewQueue to Close, that talks to the
// receiver. One that is down or fails is tried again until Close, while the queue has room; what has none is dropped.
type Queue struct {
	to       *Receiver
	resource Attributes
	wake     chan struct{} // something waits; closed by Close
	ending   chan struct{} // closed by Close
	done     chan struct{} // closed when the goroutine has ended
	ctx      context.Context
	cancel   context.CancelFunc // ends what is being sent

	mu      sync.Mutex
	waiting []json.RawMessage
	bytes   int
	full    bool // something was dropped for want of room since the last was taken
	closed  bool
	tally   Tally
}

// A Tally is what became of spans.
type Tally struct {
	Sent, Dropped int
	Err           error // why some were not sent, the last reason; nil for none
}

// NewQueue begins to send to a receiver what is added. It must be closed.
func NewQueue(to *Receiver, resource Attributes) *Queue {
	q := &Queue{to: to, resource: resource, wake: make(chan struct{}, 1), ending: make(chan struct{}), done: make(chan struct{})}
	q.ctx, q.cancel = context.WithCancel(context.Background())
	go q.run()
	return q
}

var errFull = errors.New("the receiver is too slow")

// Add has a span sent, or dropped where there is no room for it.
func (q *Queue) Add(s *Span) {
	b := s.encoded()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || len(q.waiting) == maxWaiting || q.bytes+len(b) > maxWaitingBytes {
		q.full = true
		q.drop()
		return
	}
	q.waiting, q.bytes = append(q.waiting, b), q.bytes+len(b)
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// room says whether a span is worth making; where there is no room for it, it is counted as dropped.
func (q *Queue) room() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || q.full || len(q.waiting) == maxWaiting {
		q.drop()
		return false
	}
	return true
}

// drop counts a span that there is no room for. q.mu is held.
func (q *Queue) drop() {
	if q.tally.Dropped++; q.tally.Err == nil {
		q.tally.Err = errFull
	}
}

// Tally is what has become of what was added so far.
func (q *Queue) Tally() Tally {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.tally
}

// Close sends what waits, and drops what a receiver has not taken within so long, or does not take at once after it failed before.
func (q *Queue) Close(within time.Duration) Tally {
	q.mu.Lock()
	if !q.closed {
		q.closed = true
		close(q.ending)
		close(q.wake)
	}
	q.mu.Unlock()
	late := time.AfterFunc(within, q.cancel)
	<-q.done
	late.Stop()
	q.cancel()
	return q.Tally()
}

func (q *Queue) run() {
	defer close(q.done)
	for range q.wake {
		for batch := q.take(); len(batch) > 0; batch = q.take() {
			q.send(batch)
		}
	}
}

// take takes what fits in a request.
func (q *Queue) take() (batch []json.RawMessage) {
	q.mu.Lock()
	defer q.mu.Unlock()
	size, n := 0, 0
	for ; n < min(len(q.waiting), most) && (n == 0 || size+len(q.waiting[n]) <= maxRequest); n++ {
		size += len(q.waiting[n])
	}
	batch, q.waiting, q.bytes, q.full = q.waiting[:n:n], q.waiting[n:], q.bytes-size, false
	return batch
}

// send sends a batch until it is taken, refused for good, or the queue has been closed and one more attempt failed.
func (q *Queue) send(batch []json.RawMessage) {
	request := requestOf(q.resource, batch)
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		last := false
		select {
		case <-q.ending:
			last = true
		default:
		}
		err := q.to.Send(q.ctx, request)
		var no *Refusal
		if !errors.As(err, &no) {
			no = &Refusal{again: err != nil}
		}
		if err != nil {
			q.failed(err)
		}
		if !no.again || last {
			q.count(len(batch), err, no.Spans)
			if no.again {
				q.cancel() // it would not take the others either
			}
			return
		}
		select {
		case <-q.ending:
		case <-time.After(pause):
		}
	}
}

// count counts a batch that is done with: with an error so many of it were dropped, 0 for all.
func (q *Queue) count(batch int, err error, dropped int) {
	if err == nil {
		dropped = 0
	} else if dropped == 0 {
		dropped = batch
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.tally.Dropped += min(dropped, batch)
	q.tally.Sent += max(batch-dropped, 0)
}

// failed notes why something was not sent. The end of the patience tells less than what was before it.
func (q *Queue) failed(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.ctx.Err() == nil:
		q.tally.Err = err
	case q.tally.Err == nil:
		q.tally.Err = errors.New("the receiver does not answer")
	}
}
